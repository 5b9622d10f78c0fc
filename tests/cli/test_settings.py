"""Settings: one place, frozen, secrets hidden, bad values named."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.settings import Settings, SettingsError, export_settings, read_settings, unknown_variables

SECRET = "a-secret-nobody-may-see"  # noqa: S105  # not one


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith(("FORENSIC_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_with_nothing_set_it_is_embedded_on_loopback(tmp_path: Path) -> None:
    settings = read_settings()
    assert (settings.host, settings.port) == ("127.0.0.1", 8000)
    assert settings.embedded
    assert settings.database == f"sqlite+aiosqlite:///{tmp_path / '.forensic' / 'forensic.sqlite3'}"
    assert settings.models == ()
    assert settings.judge_problem == "FORENSIC_JUDGE_MODEL is not set"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("postgres://u@h/d", "postgresql+asyncpg://u@h/d"),
        ("postgresql://u@h/d", "postgresql+asyncpg://u@h/d"),
        ("sqlite:///x.db", "sqlite+aiosqlite:///x.db"),
    ],
)
def test_a_database_url_needs_no_driver(monkeypatch: pytest.MonkeyPatch, given: str, used: str) -> None:
    monkeypatch.setenv("FORENSIC_DATABASE_URL", given)
    monkeypatch.setenv("FORENSIC_SECRET_KEY", SECRET)
    assert read_settings().database == used


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FORENSIC_PORT", "99999"),
        ("FORENSIC_PORT", "tcp://10.0.0.1:80"),
        ("FORENSIC_DATABASE_URL", f"mysql://u:{SECRET}@h/d"),
        ("FORENSIC_REDIS_URL", f"http://:{SECRET}@h"),
        ("FORENSIC_SECRET_KEY", "short"),
        ("FORENSIC_BOOTSTRAP_API_KEY", "short"),
        ("FORENSIC_JUDGE_BASE_URL", "judge.example"),
        ("FORENSIC_JUDGE_PRICES", "{"),
        ("FORENSIC_JUDGE_PRICES", '{"m": {"input": -1, "output": 1}}'),
        ("FORENSIC_WEBHOOK_ALLOW_CIDRS", "10.0.0.0/8,nowhere"),
        ("FORENSIC_LOG_LEVEL", "loud"),
        ("FORENSIC_LEASE_SECONDS", "0"),
    ],
)
def test_a_bad_value_names_its_variable_and_stays_hidden(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert [problem.startswith(name) for problem in caught.value.problems] == [True]
    assert SECRET not in str(caught.value)
    assert len(value) < 10 or value not in str(caught.value)


def test_every_bad_value_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORENSIC_PORT", "x")
    monkeypatch.setenv("FORENSIC_MAX_ATTEMPTS", "0")
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert len(caught.value.problems) == 2


def test_a_bad_fallback_is_named_as_what_it_falls_back_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "nonsense")
    with pytest.raises(SettingsError, match="FORENSIC_JUDGE_BASE_URL"):
        read_settings()


def test_a_database_server_needs_a_shared_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORENSIC_DATABASE_URL", "postgresql://db/forensic")
    with pytest.raises(SettingsError, match="FORENSIC_SECRET_KEY"):
        read_settings()


def test_secrets_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "FORENSIC_DATABASE_URL": f"postgresql://u:{SECRET}@h/d",
        "FORENSIC_REDIS_URL": f"redis://:{SECRET}@h",
        "FORENSIC_SECRET_KEY": SECRET,
        "FORENSIC_BOOTSTRAP_API_KEY": SECRET,
        "FORENSIC_JUDGE_API_KEY": SECRET,
    }.items():
        monkeypatch.setenv(name, value)
    settings = read_settings()
    assert SECRET not in repr(settings)
    assert SECRET not in str(settings)
    assert SECRET not in settings.model_dump_json()
    assert settings.secret() == settings.api_key() == SECRET


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        read_settings().port = 1  # type: ignore[misc]  # the point of the test


def test_the_judge_falls_back_to_the_openai_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://judge.example/v1")
    assert read_settings().models == ()
    assert "names no model" in (read_settings().judge_problem or "")
    monkeypatch.setenv("FORENSIC_JUDGE_MODEL", "large")
    monkeypatch.setenv("FORENSIC_JUDGE_MODELS", "small, large ,")
    settings = read_settings()
    assert settings.models == ("large", "small")
    assert settings.judge_base_url == "https://judge.example/v1"
    monkeypatch.setenv("FORENSIC_JUDGE_BASE_URL", "http://127.0.0.1:9/v1")
    assert read_settings().judge_base_url == "http://127.0.0.1:9/v1"


def test_a_model_without_an_endpoint_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORENSIC_JUDGE_MODEL", "large")
    assert read_settings().models == ()
    assert "FORENSIC_JUDGE_BASE_URL" in (read_settings().judge_problem or "")


def test_an_empty_variable_is_an_unset_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORENSIC_DATABASE_URL", "")
    monkeypatch.setenv("FORENSIC_PORT", "")
    assert read_settings() == Settings()


def test_made_secrets_are_kept_and_private(tmp_path: Path) -> None:
    settings = read_settings(data_dir=tmp_path / "data")
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: settings.api_key(), range(32)))
    assert keys == {read_settings(data_dir=tmp_path / "data").api_key()}
    assert settings.secret() not in keys
    files = sorted((tmp_path / "data").iterdir())
    assert [file.name for file in files] == ["api-key", "secret-key"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_exported_settings_are_read_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORENSIC_LOG_LEVEL", "debug")
    monkeypatch.setenv("FORENSIC_PORT", "1")
    export_settings({"port": "2"})
    assert (read_settings().port, read_settings().log_level) == (2, "debug")


def test_exported_settings_can_stand_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORENSIC_LOG_LEVEL", "debug")
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("FORENSIC_PORT", "1")
    export_settings({"port": "2"}, alone=True)
    assert read_settings() == Settings(port=2)


def test_a_misspelt_variable_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORENSIC_JUDGE_MODLE", "large")
    monkeypatch.setenv("FORENSIC_URL", "http://127.0.0.1")
    monkeypatch.setenv("FORENSIC_XYZ", "1")
    assert unknown_variables() == [
        "FORENSIC_JUDGE_MODLE is no setting and was ignored; did you mean FORENSIC_JUDGE_MODEL?",
        "FORENSIC_XYZ is no setting and was ignored.",
    ]


def test_a_login_in_the_judge_endpoint_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORENSIC_JUDGE_BASE_URL", "http://user:pw@127.0.0.1/v1")
    with pytest.raises(SettingsError, match=r"FORENSIC_JUDGE_BASE_URL: .*FORENSIC_JUDGE_API_KEY"):
        read_settings()
