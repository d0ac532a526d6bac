"""Settings: three sources, each value with its own, and faults that say where to look.

Never: the settings of the person who runs the tests.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from agent.settings import Settings, load_settings
from agent.yamlfile import UserFileError


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "WATCHKEEPER_HOME": str(tmp_path), "PATH": "/bin"}


def write(env: dict[str, str], text: str) -> Path:
    path = Path(env["WATCHKEEPER_HOME"]) / "config" / "config.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def fault(env: dict[str, str]) -> str:
    with pytest.raises(UserFileError) as caught:
        load_settings(env)
    return str(caught.value)


def source(settings: Settings, name: str) -> str:
    return next(d.source for d in settings.describe() if d.name == name)


def test_built_in_values_need_no_file(env: dict[str, str], tmp_path: Path) -> None:
    settings = load_settings(env)
    assert settings.database_url == f"sqlite:///{tmp_path}/state/watchkeeper.db"
    assert (settings.cluster, settings.workers, settings.sweep_s, settings.wave_s) == ("local", 4, 5.0, 1.0)
    assert {d.source for d in settings.describe()} == {"built-in"}
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_over_the_built_in_and_the_environment_over_both(env: dict[str, str]) -> None:
    file = write(env, "workers: 2\nsweep_s: 3\nmodel:\n  name: a\n  effort: medium\nkeyring: off\n")
    settings = load_settings(env | {"WATCHKEEPER_WORKERS": "8", "WATCHKEEPER_MODEL__NAME": "b"})
    assert (settings.workers, settings.sweep_s, settings.keyring) == (8, 3.0, "off")
    assert (settings.model.name, settings.model.effort) == ("b", "medium")
    assert source(settings, "workers") == "environment WATCHKEEPER_WORKERS"
    assert source(settings, "sweep_s") == f"{file}:2"
    assert source(settings, "model.name") == "environment WATCHKEEPER_MODEL__NAME"
    assert source(settings, "model.effort") == f"{file}:5"
    assert source(settings, "model.enabled") == "built-in"
    assert source(settings, "database_url") == "built-in"


def test_nested_options_reach_the_cluster_as_the_file_names_it(env: dict[str, str]) -> None:
    write(env, "clusters:\n  gpu-Farm:\n    partition: 007\n    gpus: 4\n")
    settings = load_settings(
        env | {"WATCHKEEPER_CLUSTERS__GPU_FARM__GPUS": "8", "WATCHKEEPER_CLUSTERS__LOCAL__MOUNTS": "[/a, /b]"}
    )
    assert settings.clusters == {
        "gpu-Farm": {"partition": "007", "gpus": 8},
        "local": {"mounts": ["/a", "/b"]},
    }


def test_a_whole_section_may_come_from_one_variable(env: dict[str, str]) -> None:
    write(env, "model: {name: a, effort: medium}\n")
    settings = load_settings(env | {"WATCHKEEPER_MODEL": "{name: 1.10}", "WATCHKEEPER_WORKERS": ""})
    assert (settings.model.name, settings.model.effort, settings.workers) == ("1.10", "low", 4)
    assert source(settings, "model.name") == "environment WATCHKEEPER_MODEL"
    assert source(settings, "model.effort") == "built-in"


def test_a_number_in_a_variable_stays_text_for_a_text_field(env: dict[str, str]) -> None:
    assert load_settings(env | {"WATCHKEEPER_CLUSTER": "1.10"}).cluster == "1.10"


def test_causes_files_are_found_beside_the_settings(env: dict[str, str], tmp_path: Path) -> None:
    write(env, "causes_files: [own.toml, /abs/other.toml]")
    assert load_settings(env).causes_files == (tmp_path / "config" / "own.toml", Path("/abs/other.toml"))


def test_an_unknown_setting_names_file_line_and_nearest(env: dict[str, str]) -> None:
    file = write(env, "# mine\nworkers: 2\nsweeps: 3\nmodel: {nmae: x}\n")
    assert fault(env).splitlines() == [
        f"{file}:3: unknown field 'sweeps'; did you mean 'sweep_s'?",
        f"{file}:4: unknown field 'nmae'; did you mean 'name'?",
    ]


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        (
            "WATCHKEEPER_WORKER",
            "2",
            "environment WATCHKEEPER_WORKER: unknown field 'worker'; did you mean 'workers'?",
        ),
        (
            "WATCHKEEPER_WORKERS",
            "two",
            "environment WATCHKEEPER_WORKERS: 'workers' must be a whole number, not 'two'",
        ),
        ("WATCHKEEPER_MODEL__NMAE", "x", "environment WATCHKEEPER_MODEL__NMAE: unknown field 'nmae'"),
        ("WATCHKEEPER_LANGUAGE", "de", "environment WATCHKEEPER_LANGUAGE: 'language' must be one of en, zh"),
        (
            "WATCHKEEPER_DATABASE_URL",
            "jobs.db",
            "environment WATCHKEEPER_DATABASE_URL: 'database_url': must be a URL",
        ),
        (
            "WATCHKEEPER_WORKERS",
            "0",
            "environment WATCHKEEPER_WORKERS: 'workers' must be greater than or equal to 1",
        ),
    ],
)
def test_a_wrong_variable_is_named(env: dict[str, str], variable: str, value: str, message: str) -> None:
    assert fault(env | {variable: value}).startswith(message)


def test_a_variable_takes_the_blame_for_what_it_overrides(env: dict[str, str]) -> None:
    file = write(env, "workers: 3\nlogging: {level: loud}\n")
    assert fault(env | {"WATCHKEEPER_WORKERS": "many"}).splitlines() == [
        "environment WATCHKEEPER_WORKERS: 'workers' must be a whole number, not 'many'",
        f"{file}:2: 'logging.level' must be one of debug, info, warning, error, not 'loud'",
    ]


def test_the_products_other_variables_are_no_settings(env: dict[str, str]) -> None:
    assert load_settings(env | {"WATCHKEEPER_JOB_ID": "7", "WATCHKEEPERS": "x"}).workers == 4


def test_describe_hides_credentials(env: dict[str, str]) -> None:
    write(env, "database_url: postgresql://wk:hunter22@db/jobs\nmodel: {headers: {x-api-key: abc123def}}\n")
    settings = load_settings(env | {"WATCHKEEPER_CLUSTERS__A__TOKEN": "qwertz123"})
    shown = {d.name: d.value for d in settings.describe()}
    assert shown["database_url"] == "postgresql://wk:[redacted:url-password]@db/jobs"
    assert shown["model.headers.x-api-key"] == "[redacted:x-api-key]"
    assert shown["clusters.a.token"] == "[redacted:token]"


def test_settings_do_not_change(env: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        load_settings(env).workers = 9  # type: ignore[misc]


def test_the_import_is_light() -> None:
    """A light command loads neither YAML nor a keyring nor pydantic-settings (issue 2, start-up budget)."""
    program = "import sys, agent.settings, agent.secrets; print(*sys.modules)"
    root = Path(__file__).parents[2]
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    heavy = {"yaml", "keyring", "pydantic_settings", "sqlmodel", "sqlalchemy", "anthropic", "rich", "difflib"}
    assert heavy & set(loaded.stdout.split()) == set()
