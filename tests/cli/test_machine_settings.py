import json
from pathlib import Path

import pytest

from activemem.cli import SETTING_NAMES, SettingsError, load_settings


def test_without_any_source_every_setting_has_its_default():
    found = load_settings()
    assert found.values.model_dump() == {
        "results": "results",
        "data": "data",
        "address": None,
        "cpus": 1.0,
        "gpus": "auto",
        "time_limit_s": None,
        "checkpoint_every": None,
        "format": "rich",
        "plugins": (),
        "track": {"tensorboard": None, "mlflow": None, "wandb": None, "trackio": None},
    }
    assert found.sources == dict.fromkeys(SETTING_NAMES, "default")
    assert (found.results, found.data) == ("results", Path("data"))


def test_the_command_line_goes_before_the_environment_and_that_before_the_file(tmp_path):
    Path("activemem.toml").write_text('results = "a"\ncpus = 2\nformat = "csv"\n', encoding="utf-8")
    environment = {"ACTIVEMEM_CPUS": "4", "ACTIVEMEM_FORMAT": "html"}
    found = load_settings({"format": "latex", "results": None}, environment=environment)
    assert (found.values.results, found.values.cpus, found.values.format) == ("a", 4.0, "latex")
    file = str(tmp_path / "activemem.toml")
    assert [found.sources[name] for name in ("results", "cpus", "format", "gpus")] == [
        file,
        "ACTIVEMEM_CPUS",
        "--format",
        "default",
    ]


def test_the_nearest_file_upward_holds(tmp_path):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "activemem.toml").write_text("cpus = 2\n", encoding="utf-8")
    assert load_settings(folder=deep).values.cpus == 2
    (tmp_path / "a" / "activemem.toml").write_text("cpus = 3\n", encoding="utf-8")
    assert load_settings(folder=deep).values.cpus == 3


def test_folders_in_the_settings_file_are_relative_to_it_and_others_are_not(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "activemem.toml").write_text('results = "kept"\ndata = "texts"\n', encoding="utf-8")
    assert load_settings(folder=inside).results == str(tmp_path / "kept")
    assert load_settings(folder=inside).data == tmp_path / "texts"
    assert load_settings({"data": "here"}, folder=inside).data == Path("here")
    assert load_settings({"results": "here"}, folder=inside).results == "here"
    assert load_settings(environment={"ACTIVEMEM_RESULTS": "there"}, folder=inside).results == "there"


def test_an_empty_variable_says_nothing():
    assert load_settings(environment={"ACTIVEMEM_ADDRESS": ""}).values.address is None


def test_all_faults_of_all_sources_are_reported_at_once(tmp_path, golden):
    text = 'cpu = 2\ngpus = 1.5  # too odd\nresults = 3\nformat = "word"\n'
    Path("activemem.toml").write_text(text, encoding="utf-8")
    environment = {"ACTIVEMEM_CPUS": "many", "ACTIVEMEM_TIME_LIMIT": "3"}
    with golden.raises(SettingsError):
        load_settings({"address": ""}, environment=environment)


@pytest.mark.parametrize(("given", "value"), [("auto", "auto"), ("0", 0.0), ("0.25", 0.25), ("1", 1.0)])
def test_a_trial_has_a_share_of_one_gpu_or_takes_one_where_it_is(given, value):
    assert load_settings(environment={"ACTIVEMEM_GPUS": given}).values.gpus == value


@pytest.mark.parametrize(
    "given",
    [
        "2.5",
        "-1",
        "all",
    ],
)
def test_more_than_one_gpu_is_refused_with_the_reason(given, golden):
    with golden.raises(SettingsError):
        load_settings(environment={"ACTIVEMEM_GPUS": given})


def test_a_file_that_is_no_toml_is_shown_where_it_breaks(tmp_path, golden):
    Path("activemem.toml").write_text("cpus = \n", encoding="utf-8")
    with golden.raises(SettingsError):
        load_settings()


def test_config_show_says_where_each_value_comes_from(run, tmp_path, monkeypatch):
    Path("activemem.toml").write_text("gpus = 0.25\n", encoding="utf-8")
    monkeypatch.setenv("ACTIVEMEM_RESULTS", "/kept")
    monkeypatch.setenv("ACTIVEMEM_DATA", "/texts")
    result = run("config", "show")
    assert result.stdout == (
        "results            /kept    ACTIVEMEM_RESULTS\n"
        "data               /texts   ACTIVEMEM_DATA\n"
        "address            –        default\n"
        "cpus               1        default\n"
        f"gpus               0.25     {tmp_path}/activemem.toml\n"
        "time_limit_s       –        default\n"
        "checkpoint_every   –        default\n"
        "format             rich     default\n"
        "plugins            –        default\n"
        "track              –        default\n"
    )
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30.0), ("5m", 300.0), ("1.5 h", 5400.0), ("90", 90.0)])
def test_times_have_a_unit_or_are_seconds(tmp_path, text, seconds):
    (tmp_path / "activemem.toml").write_text(f'checkpoint_every = "{text}"\n', encoding="utf-8")
    assert load_settings(folder=tmp_path, environment={}).values.checkpoint_every == seconds
    given = {"ACTIVEMEM_CHECKPOINT_EVERY": text}
    assert load_settings(folder=tmp_path, environment=given).values.checkpoint_every == seconds


def test_a_time_that_is_none_is_refused_with_what_was_expected(tmp_path, golden):
    with golden.raises(SettingsError):
        load_settings(folder=tmp_path, environment={"ACTIVEMEM_CHECKPOINT_EVERY": "often"})


def test_config_show_as_json_has_values_and_sources(run, tmp_path):
    page = json.loads(run("config", "show", "--json").stdout)["settings"]
    assert list(page) == list(SETTING_NAMES)
    assert page["results"] == {"value": str(tmp_path / "results"), "source": "default"}
    assert page["time_limit_s"] == {"value": None, "source": "default"}


def test_wrong_settings_end_config_show_with_status_two(run, monkeypatch):
    monkeypatch.setenv("ACTIVEMEM_GPU", "1")
    result = run("config", "show")
    assert (result.exit_code, result.stdout) == (2, "")
    assert (
        result.stderr == "environment: 1 fault\n\n  unknown variable ACTIVEMEM_GPU; nearest: ACTIVEMEM_GPUS\n"
    )


def test_the_settings_file_of_this_repository_sets_nothing_but_defaults(monkeypatch):
    folder = Path(__file__).parents[2]
    found = load_settings(folder=folder)
    defaults = load_settings()
    assert (found.values, found.results) == (defaults.values, str(folder / "results"))
    assert found.data == folder / "data"


@pytest.mark.parametrize("address", ["auto", "10.0.0.1:6379"])
def test_an_address_that_ray_can_connect_to_is_taken(address):
    assert load_settings({"address": address}).values.address == address


@pytest.mark.parametrize(
    "address",
    ["somewhere", "ray://head:10001"],
)
def test_an_address_that_means_nothing_to_ray_is_a_fault(address, golden):
    with golden.raises(SettingsError):
        load_settings({"address": address})


@pytest.mark.parametrize("address", ["s3://bucket/results", "gs://bucket", "az://box/a/b"])
def test_results_may_be_in_a_bucket_and_data_not(address, tmp_path, golden):
    (tmp_path / "activemem.toml").write_text(f'results = "{address}"', encoding="utf-8")
    assert load_settings(folder=tmp_path).results == load_settings({"results": address}).results == address
    with golden.raises(SettingsError):
        load_settings({"data": address})


@pytest.mark.parametrize("address", ["file:///tmp/results", "s3://", "s3:/bucket", "http://host/results"])
def test_an_address_of_no_bucket_is_not_taken_for_a_folder(address, golden):
    with golden.raises(SettingsError):
        load_settings({"results": address})


def test_the_cluster_of_ray_is_taken_where_no_other_is_named(tmp_path, monkeypatch):
    environment = {"RAY_ADDRESS": "10.0.0.1:6379"}
    found = load_settings(environment=environment)
    assert (found.values.address, found.sources["address"]) == ("10.0.0.1:6379", "RAY_ADDRESS")
    Path("activemem.toml").write_text('address = "10.0.0.2:6379"', encoding="utf-8")
    assert load_settings(environment=environment).values.address == "10.0.0.2:6379"
    assert load_settings({"address": "auto"}, environment=environment).values.address == "auto"


@pytest.mark.parametrize("address", ["", "local"])
def test_ray_on_this_machine_is_no_cluster(address):
    assert load_settings(environment={"RAY_ADDRESS": address}).values.address is None


def test_an_address_of_ray_that_means_nothing_is_a_fault(golden):
    with golden.raises(SettingsError):
        load_settings(environment={"RAY_ADDRESS": "ray"})


def test_folders_of_trackers_are_relative_to_the_settings_file(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "activemem.toml").write_text('[track]\ntensorboard = "runs"\n', encoding="utf-8")
    assert load_settings(folder=inside).track == {"tensorboard": str(tmp_path / "runs")}
    (tmp_path / "activemem.toml").write_text('[track]\ntensorbord = "runs"\n', encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert str(caught.value) == (
        f"{tmp_path}/activemem.toml: 1 fault\n\n"
        "  1 | [track]\n"
        "      ^^^^^^^  unknown tracker 'tensorbord'; nearest: tensorboard"
    )
