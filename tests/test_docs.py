"""What README, Makefile, Docker files and CI say is what there is."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic_core import PydanticUndefined
from typer.main import get_command

from app.cli.main import cli
from app.judges.catalogue import JUDGES
from app.settings import PREFIX, Settings

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
COMMANDS = set(getattr(get_command(cli), "commands", {}))
TARGETS = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
SETTINGS = {PREFIX + name.upper(): field for name, field in Settings.model_fields.items()}


def setting_row(name: str) -> str:
    field = SETTINGS[name]
    default = field.get_default(call_default_factory=True) if field.default_factory is None else None
    empty = default is None or default is PydanticUndefined or default == ()
    return f"| `{name}` | {'' if empty else f'`{default}`'} | {field.description} |"


def test_the_settings_table_is_the_settings() -> None:
    table = re.findall(r"^\| `FORENSIC_.*$", README, re.MULTILINE)
    assert table == [setting_row(name) for name in SETTINGS]


def test_every_variable_that_readme_names_exists() -> None:
    others = {"FORENSIC_URL", "FORENSIC_API_KEY", "FORENSIC_TEST_POSTGRES_URL", "FORENSIC_TEST_REQUIRE"}
    assert set(re.findall(r"FORENSIC_[A-Z_]+[A-Z]", README)) <= set(SETTINGS) | others


def test_the_judges_table_is_the_catalogue() -> None:
    section = README.partition("## What is judged")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `(\w+)` \| (\w+) \| (\w+) \|", section, re.MULTILINE)
    assert named == [(judge.name, judge.family, judge.method) for judge in JUDGES]


def test_every_make_target_that_readme_names_exists() -> None:
    assert {"demo", "test", "serve"} <= TARGETS
    assert set(re.findall(r"\bmake ([a-z]+)\b", README)) <= TARGETS


def test_every_command_is_in_readme_and_every_command_there_exists() -> None:
    assert set(re.findall(r"\bforensic ([a-z]+)\b", README)) >= COMMANDS
    assert set(re.findall(r"`forensic ([a-z]+)\b", README)) <= COMMANDS


def test_every_path_of_the_api_is_in_readme() -> None:
    paths = json.loads((ROOT / "openapi" / "openapi.json").read_text("utf-8"))["paths"]
    section = README.partition("## The API")[2].partition("\n## ")[0]
    ends = {[part for part in path.split("/") if "{" not in part][-1] for path in paths}
    assert [end for end in sorted(ends) if f"/{end}" not in section] == []


def test_there_is_one_version() -> None:
    (version,) = re.findall(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert json.loads((ROOT / "openapi" / "openapi.json").read_text("utf-8"))["info"]["version"] == version
    assert {COMPOSE["services"][name]["image"] for name in ("api", "worker")} == {f"forensic-evals:{version}"}
    assert f"\n## {version}\n" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_paths_readme_links_to_exist() -> None:
    links = re.findall(r"\]\((?!http|#)([^)#]+)", README)
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_make_says_what_it_can_do() -> None:
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^  make (\w+) ", shown, re.MULTILINE)) == TARGETS - {"help"} | {"help"}


def test_ci_runs_the_two_commands() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert [line for line in lines if line.startswith("make ")] == ["make test", "make demo"]


def test_the_image_copies_what_exists_and_is_let_in() -> None:
    let_in = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE)
    sources = {source for line in copied for source in line.split()}
    assert sources == let_in
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_the_image_runs_a_command_that_exists_as_a_user_of_its_own() -> None:
    assert re.findall(r'^CMD \["(\w+)"\]$', DOCKERFILE, re.MULTILINE) == ["serve"]
    assert 'ENTRYPOINT ["forensic"]' in DOCKERFILE
    assert DOCKERFILE.index("USER 10001") < DOCKERFILE.index("ENTRYPOINT")
    assert set(re.findall(r"FORENSIC_[A-Z_]+", DOCKERFILE)) <= set(SETTINGS)


@pytest.mark.parametrize("name", ["api", "worker"])
def test_the_composition_runs_commands_with_settings_that_exist(name: str) -> None:
    service = COMPOSE["services"][name]
    (command,) = service["command"]
    assert command in COMMANDS
    # The image has its own host, port and data directory.
    assert set(service["environment"]) == set(SETTINGS) - {"FORENSIC_HOST", "FORENSIC_PORT", "FORENSIC_DATA_DIR"}
    assert set(service["depends_on"]) <= set(COMPOSE["services"])


def test_the_composition_waits_for_what_it_needs() -> None:
    services = COMPOSE["services"]
    for service in services.values():
        for needed, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}
            assert needed == "api" or "test" in services[needed]["healthcheck"]
    assert "HEALTHCHECK" in DOCKERFILE  # what "api" is asked


def test_the_composition_keeps_no_secret() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    for name in ("POSTGRES_PASSWORD", "FORENSIC_SECRET_KEY", "FORENSIC_BOOTSTRAP_API_KEY"):
        assert f"${{{name}:?" in text


def test_the_lock_has_a_hash_for_everything_and_names_no_host() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text()
        assert "://" not in text
        entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
        assert len(entries) > 60
        assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_the_lock_covers_what_the_project_asks_for() -> None:
    asked = re.findall(
        r'^  "([A-Za-z0-9_.-]+)', (ROOT / "pyproject.toml").read_text().partition("[tool.")[0], re.MULTILINE
    )
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements-dev.lock").read_text(), re.MULTILINE))
    assert {re.sub(r"[-_.]+", "-", name).lower() for name in asked} <= locked
