"""The sentences and translations that a model can be trained on: files, splits, vocabularies, licences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from . import datasets
from .datasets import Dataset, Download, SourceFile

_WMT = "Bojar et al. 2014, Findings of the 2014 workshop on statistical machine translation"
_TATOEBA = "Tatoeba, as tab-delimited pairs of manythings.org/anki"
_HUGGING_FACE = "https://huggingface.co/datasets/wmt"
_ELLIOTT = "Elliott et al. 2016, Multi30K; Elliott et al. 2017 for French"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFiles:
    """Sentences and, line by line, their translations; without a target the source has both in columns."""

    source: SourceFile
    target: SourceFile | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutFractions:
    """The fractions of a collection that are held out; a pair's split depends on its source alone."""

    dev: float = 0.05
    test: float = 0.20


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelCorpus(Dataset):
    """Pairs of sentences in two languages, in three splits.

    `files` has them by split, or all under "train" if fractions are held out. `pairs` is the approximate
    number of training pairs.
    """

    KIND: ClassVar[str] = "parallel corpus"

    languages: tuple[str, str]
    files: Mapping[str, tuple[PairFiles, ...]]
    held_out: HeldOutFractions | None = None
    pairs: int

    @property
    def sources(self) -> tuple[SourceFile, ...]:
        """The files of sentences, each once."""
        pairs = (each for files in self.files.values() for each in files)
        sides = (side for each in pairs for side in (each.source, each.target))
        return tuple(dict.fromkeys(side for side in sides if side is not None))


def register_parallel_corpus(corpus: ParallelCorpus) -> ParallelCorpus:
    """Add a corpus; a name that is taken raises ValueError."""
    return datasets.register(corpus)


def parallel_corpus_names() -> tuple[str, ...]:
    """The names of all parallel corpora, sorted."""
    return datasets.names(ParallelCorpus)


def require_parallel_corpus(name: str) -> ParallelCorpus:
    """The parallel corpus of that name; CorpusError with the nearest name if there is none."""
    return datasets.require(name, ParallelCorpus)


def _published(address: str, size: int, digest: str) -> Download:
    """An archive of WMT's training or test data at Hugging Face."""
    year, _, path = address.partition("/")
    name = path.rsplit("/", 1)[-1]
    url = f"{_HUGGING_FACE}/{year}/resolve/main-zip/{path}"
    return Download(name=name, urls=(url,), size=size, digest=f"sha256:{digest}")


def _archived(archive: str, path: str) -> PairFiles:
    """English and French files of one name within an archive."""
    english, french = (
        SourceFile(names=(path.format(language),), archive=archive) for language in ("en", "fr")
    )
    return PairFiles(source=english, target=french)


def _digested(
    names: tuple[tuple[str, ...], tuple[str, ...]],
    sizes: tuple[int, int],
    digests: tuple[str, str],
    archive: str | None = None,
) -> PairFiles:
    """Two files, each with its checksum."""
    source, target = (
        SourceFile(names=each, size=size, digest=f"sha256:{digest}", archive=archive)
        for each, size, digest in zip(names, sizes, digests, strict=True)
    )
    return PairFiles(source=source, target=target)


_NEWS_2013 = _digested(
    (("newstest2013.en", "dev/newstest2013.en"), ("newstest2013.fr", "dev/newstest2013.fr")),
    (332_974, 393_465),
    (
        "ace268a1d9724ca76f6d8e5c720ffdc08f01bdce45630ed8b269dc7918e1c16e",
        "909b63be5df3eb8c13e1d5967bf3f0adfdb9f6ed5e638c5bffff563ee2ff7f41",
    ),
    "dev.zip",
)
_NEWS_2014 = _digested(
    (
        ("newstest2014.en", "dev/newstest2014-fren-src.en.sgm"),
        ("newstest2014.fr", "dev/newstest2014-fren-ref.fr.sgm"),
    ),
    (375_106, 445_720),
    (
        "9a12cb6e8efb3509ebede627e4a9c83ee64935509d561ff70f4b7bd5f93f6096",
        "2bd07dc204f965bf88e90adb6223a8cb850f9bf9840df6af1f4945195936656e",
    ),
    "dev.zip",
)
_NEWS_LICENCE = "WMT news task: free for research"

register_parallel_corpus(
    ParallelCorpus(
        name="wmt14-en-fr",
        title="41 million pairs of the WMT 2014 translation task, English to French",
        languages=("en", "fr"),
        folder="wmt-enfr",
        downloads=(
            _published(
                "wmt13/training-parallel-europarl-v7.zip",
                658_092_427,
                "5b2d8b32c2396da739b4e731871c597fcc6e75729becd74619d0712eecf7770e",
            ),
            _published(
                "wmt13/training-parallel-commoncrawl.zip",
                918_734_483,
                "5ffe980072ea29adfd84568d099bea366d9f72772b988e670794ae851b4e5627",
            ),
            _published(
                "wmt13/training-parallel-un.zip",
                2_366_237_633,
                "74f07002e053c81bc7f73b4fdab58e7987e831338748f264cbda82a8b062d2e2",
            ),
            _published(
                "wmt14/training-parallel-nc-v9.zip",
                80_462_375,
                "ce199f93ec56ff480137ba29f0819f9a22e70d88be6d7458f112303d67d623d5",
            ),
            _published(
                "wmt10/training-giga-fren.zip",
                2_595_877_717,
                "9439f86523e5dff3f923526dbf6c6929da1786c18dbf64436d2b7564b83aaba3",
            ),
            _published(
                "wmt19/translation-task/dev.zip",
                38_714_274,
                "d796e363740fdc4261aa6f5a3d2f8223e3adaee7d737b7724863325b8956dfd1",
            ),
        ),
        files={
            "train": (
                _archived("training-parallel-europarl-v7.zip", "training/europarl-v7.fr-en.{}"),
                _archived("training-parallel-commoncrawl.zip", "commoncrawl.fr-en.{}"),
                _archived("training-parallel-un.zip", "un/undoc.2000.fr-en.{}"),
                _archived("training-parallel-nc-v9.zip", "training/news-commentary-v9.fr-en.{}"),
                _archived("training-giga-fren.zip", "giga-fren.release2.fixed.{}.gz"),
            ),
            "dev": (_NEWS_2013,),
            "test": (_NEWS_2014,),
        },
        pairs=40_800_000,
        licence=f"{_NEWS_LICENCE}; Europarl, UN and 10^9 corpus: research only",
        source=_WMT,
    )
)
register_parallel_corpus(
    ParallelCorpus(
        name="wmt-news-en-fr",
        title="13,573 pairs of news: WMT's test sets of 2008 to 2012, one behind the other",
        languages=("en", "fr"),
        folder="wmt-enfr",
        manual_instructions=(
            f"{_HUGGING_FACE}/wmt19/resolve/main-zip/translation-task/dev.zip is its dev and test set; "
            "news2008-2012.en and .fr are news-test2008, newssyscomb2009 and newstest2009 to newstest2012 "
            "of it, plain text, one behind the other"
        ),
        files={
            "train": (
                _digested(
                    (("news2008-2012.en",), ("news2008-2012.fr",)),
                    (1_778_625, 2_043_716),
                    (
                        "0bf3b3156dd27bd891514edf0cce483b4d77bfbcfc91e492086e1b8352f32b5a",
                        "40cfe66178d0963676ce185725120107d831993ad79fb45b66d2754b382eb0b3",
                    ),
                ),
            ),
            "dev": (_NEWS_2013,),
            "test": (_NEWS_2014,),
        },
        pairs=13_573,
        licence=_NEWS_LICENCE,
        source=_WMT,
    )
)


def _tatoeba(
    code: str, language: str, *, dated: str, pairs: int, size: int, digest: str, by_hand: str | None = None
) -> None:
    """The first pairs of one language's file at a date; the published file keeps growing."""
    columns = SourceFile(names=(f"eng-{code}.tsv", f"{code}.txt"), size=size, digest=f"sha256:{digest}")
    register_parallel_corpus(
        ParallelCorpus(
            name=f"tatoeba-eng-{code}",
            title=f"{pairs:,} short sentences in English and {language}, {dated}",
            languages=("eng", code),
            folder="tatoeba",
            manual_instructions=by_hand
            or f"https://www.manythings.org/anki/ has {code}-eng.zip of today only; of a copy of that date, "
            f"{code}.txt is what is needed",
            files={"train": (PairFiles(source=columns),)},
            held_out=HeldOutFractions(),
            pairs=pairs * 3 // 4,
            licence="CC BY 2.0 FR (Tatoeba)",
            source=_TATOEBA,
        )
    )


_tatoeba(
    "spa",
    "Spanish",
    dated="the first of the file of 13 May 2018",
    pairs=30_000,
    size=1_198_960,
    digest="96d7fc8943770cb8695bc338138619c119010a2f104325b509a3f953444208a4",
)
_tatoeba(
    "fra",
    "French",
    dated="the first of the file of 7 April 2019",
    pairs=30_000,
    size=1_216_165,
    digest="40287adc888d482b613a87a051a281de172111610212e28583185709df726567",
)
_tatoeba(
    "deu",
    "German",
    dated="the first of the file of 13 May 2018",
    pairs=30_000,
    size=1_228_143,
    digest="9b2a58ceee807101db4e4c93f0e96945cdbc78160d970358e80bd22097ef8a69",
)
_tatoeba(
    "ita",
    "Italian",
    dated="merged from the test sets of OPUS-MT and LASER, as the published file of that time is lost",
    pairs=18_300,
    size=1_159_687,
    digest="cd2f16f6689894767dd18f84823594ae966eaf57817d3c1b40754375ee7e422a",
    by_hand=(
        "it is eng-ita of https://github.com/Helsinki-NLP/OPUS-MT-testsets (tatoeba-test-*) and of "
        "https://github.com/facebookresearch/LASER (data/tatoeba/v1): without spaces at the ends and "
        "without repetitions, by the length of the English, then by text"
    ),
)

_CAPTIONS = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
_MULTI30K = {  # by split a file; by language bytes of its text, their sha256, and that of the packed file
    "train": (
        "train",
        {
            "en": (
                1_801_238,
                "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
                "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
            ),
            "de": (
                2_110_398,
                "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
                "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
            ),
            "fr": (
                2_111_303,
                "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
                "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
            ),
        },
    ),
    "dev": (
        "val",
        {
            "en": (
                63_297,
                "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
                "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
            ),
            "de": (
                75_981,
                "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
                "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
            ),
            "fr": (
                73_924,
                "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
                "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
            ),
        },
    ),
    "test": (
        "test_2016_flickr",
        {
            "en": (
                62_076,
                "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
                "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
            ),
            "de": (
                70_649,
                "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
                "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
            ),
            "fr": (
                72_261,
                "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
                "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
            ),
        },
    ),
}


def _multi30k(language: str, title: str) -> None:
    """Captions in English and another language; the test set is that of 2016."""
    downloads, files = [], {}
    for split, (name, texts) in _MULTI30K.items():
        sides = []
        for each in ("en", language):
            size, text, packed = texts[each]
            packed_name = f"{name}.{each}.gz"
            url = f"{_CAPTIONS}/{packed_name}"
            downloads.append(Download(name=packed_name, urls=(url,), digest=f"sha256:{packed}"))
            sides.append(SourceFile(names=(f"{name}.{each}",), size=size, digest=f"sha256:{text}"))
        files[split] = (PairFiles(source=sides[0], target=sides[1]),)
    register_parallel_corpus(
        ParallelCorpus(
            name=f"multi30k-en-{language}",
            title=title,
            languages=("en", language),
            folder="multi30k",
            downloads=tuple(downloads),
            files=files,
            pairs=29_000,
            licence="CC BY-NC-SA 4.0, captions of Flickr30k: not for commerce",
            source=_ELLIOTT,
        )
    )


_multi30k("de", "29,000 captions of photographs in English and German")
_multi30k("fr", "29,000 captions of photographs in English and French")
