"""Everything that can be set from outside, so that nothing else reads the environment.

Entry points call ``read_settings`` once and hand the frozen value on. Each variable is ``FORENSIC_`` + the field's name
in capitals; with none of them set the service works on loopback and keeps its data under ``.forensic``. A value that
cannot be used is a ``SettingsError`` that names the variable and never repeats the value.
"""

import difflib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    IPvAnyNetwork,
    SecretStr,
    ValidationError,
    field_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict
from pydantic_settings import SettingsError as DecodingError

from app.keeping import kept_secret

PREFIX = "FORENSIC_"
OTHERS = frozenset({"FORENSIC_URL", "FORENSIC_API_KEY", "FORENSIC_TEST_POSTGRES_URL", "FORENSIC_TEST_REQUIRE"})
"""Variables that are no settings: what `forensic submit` and the tests read."""
SHORTEST_KEY = 16
DRIVERS = {
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
    "postgresql+asyncpg": "postgresql+asyncpg",
    "sqlite": "sqlite+aiosqlite",
    "sqlite+aiosqlite": "sqlite+aiosqlite",
}


class SettingsError(Exception):
    """Settings that cannot be used. ``problems`` holds one line a variable, each naming it."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Price(BaseModel):
    """What a million tokens of a judge model cost, in USD."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    output: float = Field(ge=0)


class Settings(BaseSettings):
    """The settings of one process, frozen. Secrets are ``SecretStr``: they do not show when printed."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="ignore", hide_input_in_errors=True,
        populate_by_name=True,
    )  # fmt: skip

    database_url: SecretStr | None = Field(
        default=None, description="`postgresql://…` or `sqlite:///…`; unset: a SQLite file in the data directory."
    )
    redis_url: SecretStr | None = Field(
        default=None, description="`redis://…`; unset: `forensic serve` runs a private one."
    )
    data_dir: Path = Field(default=Path(".forensic"), description="Where the embedded database and the made keys live.")
    host: str = Field(default="127.0.0.1", description="Address the API listens on.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port the API listens on; 0 takes a free one.")
    secret_key: SecretStr | None = Field(
        default=None,
        description="16 characters or more, the same in every process; required with PostgreSQL, else made in the "
        "data directory.",
    )
    bootstrap_api_key: SecretStr | None = Field(
        default=None,
        description="An API key of 16 characters or more that works from the start, in place of the one before; unset: "
        "`serve` makes one.",
    )
    judge_base_url: str | None = Field(
        default=None,
        validation_alias=AliasChoices("FORENSIC_JUDGE_BASE_URL", "OPENAI_BASE_URL"),
        description="Any OpenAI-compatible endpoint; falls back to `OPENAI_BASE_URL`.",
    )
    judge_api_key: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("FORENSIC_JUDGE_API_KEY", "OPENAI_API_KEY"),
        description="Its key; falls back to `OPENAI_API_KEY`.",
    )
    judge_model: str | None = Field(default=None, description="The model that judges. Without it no model is asked.")
    judge_models: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="Further models a client may choose, separated by commas."
    )
    judge_concurrency: int = Field(default=16, ge=1, le=1024, description="Judge calls in flight per worker process.")
    judge_timeout_seconds: float = Field(default=120, gt=0, description="Patience with one judge call.")
    judge_prices: Mapping[str, Price] = Field(
        default_factory=dict,
        description='USD per million tokens, `{"model": {"input": 1, "cached": 0.1, "output": 4}}`; unset: costs are '
        "unknown.",
    )
    worker_max_jobs: int = Field(default=8, ge=1, le=256, description="Conversations a worker judges at once.")
    lease_seconds: float = Field(
        default=30, ge=1, description="How long a silent worker keeps a conversation before another takes it."
    )
    max_attempts: int = Field(default=3, ge=1, description="How often a conversation is tried before it is failed.")
    retry_deadline_seconds: float = Field(
        default=86400, gt=0, description="How long an evaluation waits for a rate-limited judge endpoint."
    )
    in_flight_bytes: int = Field(
        default=134_217_728, ge=1_048_576, description="Request bodies in work at once, in bytes; beyond: 503."
    )
    webhook_allow_cidrs: Annotated[tuple[IPvAnyNetwork, ...], NoDecode] = Field(
        default=(), description="Private networks webhooks may reach, separated by commas."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe log line."
    )
    database_pool_size: int = Field(default=10, ge=1, description="Connections to PostgreSQL per process.")

    @field_validator("judge_models", "webhook_allow_cidrs", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value

    @field_validator("log_level", mode="before")
    @classmethod
    def _lower(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @field_validator("secret_key", "bootstrap_api_key")
    @classmethod
    def _long_enough(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value()) < SHORTEST_KEY:
            raise ValueError(f"must have at least {SHORTEST_KEY} characters")
        return value

    @field_validator("judge_base_url")
    @classmethod
    def _http(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        if value is not None and "@" in urlsplit(value).netloc:
            raise ValueError("must hold no login: FORENSIC_JUDGE_API_KEY takes the key")
        return value

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return None
        scheme, separator, rest = value.get_secret_value().partition("://")
        if not separator or scheme not in DRIVERS or (scheme.startswith("sqlite") and rest in {"", "/", "/:memory:"}):
            raise ValueError("must begin with postgresql:// or sqlite:///")
        try:
            _ = urlsplit(value.get_secret_value()).port
        except ValueError:
            raise ValueError("names a port or a host that cannot be one") from None
        return SecretStr(f"{DRIVERS[scheme]}://{rest}")

    @field_validator("redis_url")
    @classmethod
    def _known_queue(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not value.get_secret_value().startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("must begin with redis://, rediss:// or unix://")
        return value

    @property
    def database(self) -> str:
        """The database's URL with its asyncio driver. Contains the password: not for printing."""
        if self.database_url is not None:
            return self.database_url.get_secret_value()
        return f"sqlite+aiosqlite:///{self.data_dir.absolute() / 'forensic.sqlite3'}"

    @property
    def embedded(self) -> bool:
        """Whether the database is a file on this machine, so that made keys in ``data_dir`` reach every process."""
        return self.database.startswith("sqlite")

    @property
    def models(self) -> tuple[str, ...]:
        """The judge models a client may choose, the default first; empty when no endpoint is configured."""
        if self.judge_problem is not None or self.judge_model is None:
            return ()
        return tuple(dict.fromkeys((self.judge_model, *self.judge_models)))

    @property
    def judge_problem(self) -> str | None:
        """Why no judge model can be asked, as a clause for people; None when one can."""
        if self.judge_model is None:
            if self.judge_api_key is not None or self.judge_base_url is not None:
                return "an endpoint or a key is set, but FORENSIC_JUDGE_MODEL names no model"
            return "FORENSIC_JUDGE_MODEL is not set"
        if self.judge_api_key is None and self.judge_base_url is None:
            return "FORENSIC_JUDGE_MODEL is set, but neither FORENSIC_JUDGE_BASE_URL nor FORENSIC_JUDGE_API_KEY is"
        return None

    def secret(self) -> str:
        """Return the secret under which nonces are made, writing one into ``data_dir`` the first time."""
        return self._given_or_made(self.secret_key, "secret-key", "")

    def api_key(self) -> str:
        """Return the API key that works from the start, writing one into ``data_dir`` the first time."""
        return self._given_or_made(self.bootstrap_api_key, "api-key", "fk_")

    def make_data_dir(self) -> None:
        """Make the data directory and the embedded database's file, for this user's eyes: transcripts are private.

        Raises:
            SettingsError: naming the variable of what cannot be made.
        """
        with _blaming("FORENSIC_DATA_DIR"):
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.embedded:
            with _blaming(self._database_variable):
                # What SQLite keeps beside the file gets the file's mode.
                Path(self.database.partition(":///")[2].partition("?")[0]).touch(mode=0o600)

    def database_problem(self, reason: str) -> str:
        """Return why the database cannot be used as a line for people, with the variable to look at."""
        return f"{self._database_variable}: the database cannot be used: {reason}"

    @property
    def _database_variable(self) -> str:
        return "FORENSIC_DATA_DIR" if self.database_url is None else "FORENSIC_DATABASE_URL"

    def _given_or_made(self, given: SecretStr | None, name: str, prefix: str) -> str:
        if given is not None:
            return given.get_secret_value()
        with _blaming("FORENSIC_DATA_DIR"):
            return kept_secret(self.data_dir / name, prefix)


def read_settings(**changes: Any) -> Settings:
    """Read the environment; ``changes`` (by field name) win over it.

    Raises:
        SettingsError: naming each variable that cannot be used.
    """
    try:
        settings = Settings(**changes)
    except ValidationError as error:
        raise SettingsError(
            [f"{_variable(each['loc'])}: {each['msg'].removeprefix('Value error, ')}" for each in error.errors()]
        ) from None
    except DecodingError as error:
        field = str(error).split('"')[1]
        raise SettingsError([f"{_variable((field,))}: is not valid JSON"]) from None
    if settings.secret_key is None and not settings.embedded:
        # Every process behind one database has to agree on it, and they need not share a disk.
        raise SettingsError(["FORENSIC_SECRET_KEY: is required when FORENSIC_DATABASE_URL names a database server"])
    return settings


def unknown_variables() -> list[str]:
    """Return a line for each variable that looks like a setting and is none: most are misspelt."""
    known = [name.upper() for name in Settings.model_fields]
    settings = {PREFIX + name for name in known}
    lines = []
    for name in sorted(name for name in os.environ if name.startswith(PREFIX) and name not in settings | OTHERS):
        close = difflib.get_close_matches(name.removeprefix(PREFIX), known, 1)
        lines.append(
            f"{name} is no setting and was ignored" + (f"; did you mean {PREFIX}{close[0]}?" if close else ".")
        )
    return lines


def export_settings(changes: Mapping[str, str], *, alone: bool = False) -> None:
    """Set variables (by field name) for what this process loads or starts from now on.

    ``alone`` removes every other setting first, so that nothing set outside has a say.
    """
    if alone:
        for name in [name for name in os.environ if name.startswith((PREFIX, "OPENAI_"))]:
            del os.environ[name]
    os.environ.update({PREFIX + name.upper(): value for name, value in changes.items()})


@contextmanager
def _blaming(variable: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SettingsError([f"{variable}: cannot be made or written to: {error.strerror}"]) from None


def _variable(loc: tuple[int | str, ...]) -> str:
    """Name the variable a validation error is about, and the place inside it."""
    first, *inside = [str(part) for part in loc]
    name = first if first.isupper() else PREFIX + first.upper()
    return ".".join([name, *inside])
