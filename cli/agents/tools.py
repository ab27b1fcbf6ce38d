"""What an agent can ask: recipes, studies, results, and whether an idea is new and worth its noise."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from ...errors import ActivememError
from ...grammar import ModelConfig, Recipe, RecipeError, Space, parse
from ...grammar.recipe import MAX_LENGTH
from ...reporting.noise_floor import noise_floor
from ...reporting.recipes.display import show_recipe
from ...reporting.recipes.nearest import nearest_recipes
from ...reporting.results import StudyResults
from ...studies.last_run import load_last_run
from ...studies.planning.status import study_outcomes, study_status
from ...studies.resolve.costs import max_training_flops, parameter_count, step_flops
from ...studies.schema.settings import TrialSettings
from ...studies.study import Study
from ..machine_settings import ResolvedSettings
from ..plan_costs import plan_here
from ..plan_json import plan_page
from ..schemas import SCHEMA
from ..schemas.recipes import nearest_page
from ..schemas.search_points import answer_line, metrics_over_seeds, proposal_line
from ..views.settings import settings_to_dict
from ..views.status import status_to_dict
from ..views.studies import studies_with_status

Page = dict[str, Any]


class AgentTools:
    """Answers about recipes and about the studies of a machine's store.

    Each is a page with the number of its form.
    """

    def __init__(self, settings: ResolvedSettings) -> None:
        self._settings, self._store = settings, settings.store

    def recipe_check(
        self,
        recipe: str,
        d_model: int | None = None,
        vocab: int | None = None,
        length: int | None = None,
        causal: bool = False,
    ) -> Page:
        """Check a recipe: its canonical text and id, its holes and choices, how many architectures it is.

        With d_model, vocab and length also what each part costs and how far it sees. What is wrong is told
        as faults, each with its place.
        """
        try:
            found = parse(recipe)
        except RecipeError as error:
            faults = [{"start": one.start, "end": one.end, "message": one.message} for one in error.faults]
            return {"schema": SCHEMA, "text": error.text[:MAX_LENGTH], "faults": faults}
        page: Page = {
            "schema": SCHEMA,
            "recipe": found.text,
            "id": found.id,
            "holes": list(found.holes),
            "dimensions": [name for name, _ in found.dimensions],
            "architectures": str(Space(found).count),
            "faults": [],
        }
        if d_model is not None and vocab is not None and length is not None:
            config = ModelConfig(d_model=d_model, vocab=vocab, causal=causal)
            page["costs"] = show_recipe(found, config, length=length).as_data()
        return page

    def recipe_nearest(
        self, recipe: str, count: int = 5, task: str | None = None, metric: str | None = None
    ) -> Page:
        """The stored recipes that are nearest to one, with their results: mean, spread and seeds."""
        return {
            **nearest_page(
                recipe, nearest_recipes(recipe, self._store, count=count, task=task, metric=metric)
            )
        }

    def study_list(self) -> Page:
        """All studies, with how far each is."""
        entries = [
            {"study": name, "error": str(one)}
            if isinstance(one, ActivememError)
            else {"study": name, "title": one[0], **status_to_dict(one[1])}
            for name, one in studies_with_status(self._store).items()
        ]
        return {"schema": SCHEMA, "studies": entries}

    def study_show(self, study: str) -> Page:
        """Every setting of a study, the text of its file, and the dimensions that its search chooses."""
        found = load_last_run(study, self._store)
        return {"schema": SCHEMA, **settings_to_dict(found), "file": found.text}

    def study_plan(self, study: str) -> Page:
        """What a run of a study would train, and what that costs in parameters, FLOPs and time."""
        found = load_last_run(study, self._store)
        return {"schema": SCHEMA, **plan_page(found, plan_here(found, self._settings), self._settings)}

    def study_status(self, study: str) -> Page:
        """How far a study is, why trials failed, and the best points of a search."""
        found = load_last_run(study, self._store)
        best = [
            {"values": point.values, "means": point.means}
            for point in StudyResults(found, self._store).best_points
        ]
        return {"schema": SCHEMA, "study": found.name, **self._status(found), "best": best}

    def study_results(
        self, study: str, table: str | None = None, form: Literal["markdown", "csv"] = "markdown"
    ) -> Page:
        """The tables of a study as text, and what its claims came to.

        `overrides` are other than in its file; `ours` are settings that are neither its paper's nor its
        program's.
        """
        results = StudyResults(load_last_run(study, self._store), self._store)
        tables = results.tables(table) if results.study.tables else []
        claims = results.check_claims() if results.study.claims and table is None else ()
        return {
            "schema": SCHEMA,
            "study": results.study.name,
            "overrides": results.study.overrides,
            "ours": results.study.source_sheet.names("ours"),
            "tables": [{"name": each.table.name, "text": each.render(form)} for each in tables],
            "claims": [{"name": each.spec.name, "verdict": each.verdict.value} for each in claims],
        }

    def search_propose(self, study: str, count: int = 1) -> Page:
        """The points that a study's search would try next; nothing is trained or stored."""
        from ...engine.run.search.proposals import SearchDesk

        desk = SearchDesk(load_last_run(study, self._store), self._store)
        return {"schema": SCHEMA, "proposals": [proposal_line(each) for each in desk.propose(count)]}

    def idea_check(self, study: str, recipe: str, values: dict[str, Any] | None = None) -> Page:
        """Hold an idea against a study before anything is trained.

        Says its canonical form; of a search whether it is one of its points, with the reasons if it is not,
        and whether it is known, with its results; what it costs; the noise floor, which is the smallest
        difference that the study's spread over seeds lets one see; and what is nearest to it. `values` are
        those of dimensions that the recipe does not tell.
        """
        found, idea = load_last_run(study, self._store), parse(recipe)
        page: Page = {"schema": SCHEMA, "study": found.name, "recipe": idea.text, "id": idea.id}
        settings = self._look_up(found, idea, values or {}, page)
        rows = study_outcomes(found, self._store.trials())
        page["noise"] = {name: self._noise(rows, name, len(found.seeds)) for name in _metrics(found)}
        page["cost"] = None if settings is None else self._cost(settings, rows)
        page["nearest"] = nearest_page(idea.text, nearest_recipes(idea, self._store, count=3))["nearest"]
        return page

    def search_tell(
        self, study: str, recipe: str | None = None, values: dict[str, Any] | None = None
    ) -> Page:
        """Hand in a point of a study's search, by its recipe, its values or both; study_run trains it.

        It is accepted, waiting, known with its results, or refused with the reasons.
        """
        from ...engine.run.search.proposals import SearchDesk

        line = {**({"recipe": recipe} if recipe else {}), **({"values": values} if values else {})}
        desk = SearchDesk(load_last_run(study, self._store), self._store)
        return {**answer_line(1, desk.hand_in(line))}

    def _look_up(
        self, study: Study, idea: Recipe, values: dict[str, Any], page: Page
    ) -> TrialSettings | None:
        """Tell whether an idea is a point of a study, and what is known of it; the settings it would have."""
        if study.search is not None:
            from ...engine.run.search.proposals import SearchDesk

            answer = SearchDesk(study, self._store).look_up({"recipe": idea.text, "values": values})
            told = {**answer_line(1, answer)}
            page |= {"answer": "new" if answer.answer == "accepted" else answer.answer.value}
            page |= {name: told[name] for name in ("values", "results", "trials", "faults") if name in told}
            return answer.point.trials[0].settings if answer.point else None
        same = [trial for trial in study.trials if parse(trial.settings.model.recipe) == idea]
        stored = {row["trial"]: row for row in self._store.trials().iter_rows(named=True)}
        done = [stored[trial.id] for trial in same if stored.get(trial.id, {}).get("status") == "done"]
        page["answer"] = ("known" if len(done) == len(same) else "waiting") if same else "refused"
        page["faults"] = [] if same else [f"{study.name} is a grid, and has no cell of this recipe"]
        page["results"] = metrics_over_seeds(
            [{each["name"]: each["value"] for each in row["metrics"]} for row in done]
        )
        like = (same or study.trials)[0].settings
        model = like.model.model_copy(update={"recipe": idea.text})
        return like.model_copy(update={"model": model})

    def _cost(self, settings: TrialSettings, rows: Any) -> Page:  # noqa: ANN401 -- a frame of Polars
        """What one training of an idea costs; seconds by those of the study's trainings, null without any."""
        flops, spent = max_training_flops(settings), float(rows["flops"].sum())
        rate = float(rows["seconds"].sum()) / spent if spent else None
        return {
            "parameters": parameter_count(settings),
            "step_flops": step_flops(settings),
            "training_flops": flops,
            "seconds": None if rate is None else flops * rate,
        }

    def _noise(self, rows: Any, metric: str, seeds: int) -> Page | None:  # noqa: ANN401 -- as above
        found = noise_floor(rows, metric, max(seeds, 1))
        return None if found is None else asdict(found)

    def _status(self, study: Study) -> Page:
        return status_to_dict(study_status(study, self._store))


def _metrics(study: Study) -> list[str]:
    """What an idea is judged by: the objectives of a search, or what the tables of a grid show."""
    if study.search is not None:
        return [objective.name for objective in study.search.objectives]
    return list(dict.fromkeys(name for spec in study.tables for name in spec.value))
