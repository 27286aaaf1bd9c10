"""All settings of this process, read once into one frozen object.

Environment variables with the prefix AGENTJOBS_; Temporal's own connection is read by temporalio.envconfig
(TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TLS, TOML profiles), so it does not stand here.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, PostgresDsn, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentjobs.domain.approvals import APPROVAL_SECONDS, LONGEST_APPROVAL_SECONDS
from agentjobs.domain.bulk import APPROVAL_ABOVE
from agentjobs.domain.quotas import QUOTA_LIMIT, Limits
from agentjobs.domain.retention import CONTENT_DAYS, JOBS_DAYS, Days, RetentionPolicy


class Environment(StrEnum):
    """Where this process runs; failpoints are refused in production."""

    PRODUCTION = "production"
    DEV = "dev"
    TEST = "test"


class TrackerName(StrEnum):
    """Where tickets go."""

    POSTGRES = "postgres"
    ROUNDUP = "roundup"
    GITHUB = "github"


class SettingsError(Exception):
    """A setting is missing or unsafe. The message names the variable: correct it and start again."""


class StartError(Exception):
    """What the process depends on is not there. The message is one line that says what to check."""


class Settings(BaseSettings):
    """One process's settings; `load()` turns a bad value into one line that names the variable."""

    model_config = SettingsConfigDict(env_prefix="AGENTJOBS_", frozen=True, extra="ignore")

    environment: Environment = Environment.PRODUCTION
    database_url: PostgresDsn
    database_pool_size: Annotated[int, Field(ge=2, le=200)] = 10
    api_host: str = "127.0.0.1"
    api_port: Annotated[int, Field(ge=1, le=65535)] = 8080
    streams_per_tenant: Annotated[int, Field(ge=1, le=5_000)] = 400
    quota_in_flight: Annotated[int, Field(ge=0, le=QUOTA_LIMIT)] = 5
    quota_per_minute: Annotated[int, Field(ge=0, le=QUOTA_LIMIT)] = 120
    quota_queue_length: Annotated[int, Field(ge=0, le=QUOTA_LIMIT)] = 10_000
    temporal_ui_url: str | None = None
    temporal_namespace: Annotated[str, Field(validation_alias="TEMPORAL_NAMESPACE")] = "default"  # for links only
    model: str = "offline"
    fallback_models: str = ""
    model_background: bool = False
    model_requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    model_tokens_per_minute: Annotated[int, Field(ge=1)] | None = None
    model_calls_at_once: Annotated[int, Field(ge=1)] | None = None
    tracker: TrackerName = TrackerName.POSTGRES
    roundup_url: str | None = None
    roundup_user: str | None = None
    roundup_password: SecretStr | None = None
    github_repository: str | None = None
    github_token: SecretStr | None = None
    github_api_url: str = "https://api.github.com"
    alert_webhook_url: SecretStr | None = None  # some services put a secret into the path
    alert_webhook_secrets: SecretStr | None = None
    alert_webhook_private: bool = False
    alert_incidents: bool = False
    alert_links_url: str | None = None
    alert_escalate_after: str = "4h,24h"
    webhooks_private: bool = False
    dead_retention_days: Annotated[int, Field(ge=1, le=3650)] | None = None
    dead_retention_notice_days: Annotated[int, Field(ge=1, le=365)] = 3
    retention_content_days: Days = CONTENT_DAYS
    retention_jobs_days: Days = JOBS_DAYS
    redrive_approval_above: Annotated[int, Field(ge=0)] = APPROVAL_ABOVE
    approvals: str = ""
    task_queue: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")] = "agentjobs"
    failpoints: str = ""
    metrics_token: Annotated[SecretStr, Field(min_length=32)] | None = None
    # Of a worker or a relay: IP:PORT, where Prometheus finds its figures. (The API has them at its own address.)
    metrics_address: Annotated[str, Field(pattern=r"^([0-9.]{7,15}|\[[0-9a-f:]+\]):[0-9]{1,5}$")] | None = None
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = "INFO"

    # A worker takes at most this many activities at once: each holds at most one database connection for
    # milliseconds and one model call for seconds, so it may exceed the pool.
    worker_activities: Annotated[int, Field(ge=1, le=10_000)] = 100
    worker_workflow_tasks: Annotated[int, Field(ge=2, le=1_000)] = 40
    worker_cached_workflows: Annotated[int, Field(ge=0, le=100_000)] = 1_000

    @property
    def dsn(self) -> str:
        """The database address as asyncpg takes it."""
        return str(self.database_url)

    def required(self, field: str) -> str:
        """The text of a setting that another one makes necessary. Raises SettingsError naming its variable."""
        value = getattr(self, field)
        if value is None:
            raise SettingsError(f"AGENTJOBS_{field.upper()} is required by AGENTJOBS_TRACKER={self.tracker}")
        return value.get_secret_value() if isinstance(value, SecretStr) else str(value)

    @property
    def models(self) -> tuple[str, ...]:
        """The models to ask, in order: those after the first only where an earlier one is in trouble."""
        return (self.model, *(name.strip() for name in self.fallback_models.split(",") if name.strip()))

    @property
    def approval_seconds(self) -> dict[str, float]:
        """Tools whose calls a reviewer approves first, with the seconds for it. Raises SettingsError."""
        return dict(_approval(entry) for part in self.approvals.split(",") if (entry := part.strip()))

    @property
    def quotas(self) -> Limits:
        """The limits of tenants that have none of their own."""
        return Limits(
            in_flight=self.quota_in_flight or None,
            per_minute=self.quota_per_minute or None,
            queue_length=self.quota_queue_length or None,
        )

    @property
    def retention(self) -> RetentionPolicy:
        """How long what is kept. Raises SettingsError."""
        if self.retention_jobs_days < self.retention_content_days:
            raise SettingsError("AGENTJOBS_RETENTION_JOBS_DAYS: at least AGENTJOBS_RETENTION_CONTENT_DAYS")
        return RetentionPolicy(content_days=self.retention_content_days, jobs_days=self.retention_jobs_days)

    @property
    def metrics_secret(self) -> str | None:
        """The token that opens the API's /metrics."""
        return None if self.metrics_token is None else self.metrics_token.get_secret_value()

    @property
    def metrics_open(self) -> bool:
        """Whether the API's /metrics needs no token: never in production, nor where other machines reach it."""
        return self.environment is not Environment.PRODUCTION and self.api_host == "127.0.0.1"

    @property
    def failpoints_allowed(self) -> bool:
        """Only the dev stack and tests may name failpoints."""
        return self.environment is not Environment.PRODUCTION


class ClientSettings(BaseSettings):
    """What the client commands of starter.py need: where the API is, and a key for it."""

    model_config = SettingsConfigDict(env_prefix="AGENTJOBS_", frozen=True, extra="ignore")

    api: str | None = None
    api_key: SecretStr | None = None
    admin_key: SecretStr | None = None


def _approval(entry: str) -> tuple[str, float]:
    tool, _, seconds = entry.partition("=")
    if not seconds:
        return tool, APPROVAL_SECONDS
    if not (seconds.isascii() and seconds.isdecimal() and 0 < int(seconds) <= LONGEST_APPROVAL_SECONDS):
        raise SettingsError("AGENTJOBS_APPROVALS: write TOOL or TOOL=SECONDS, separated by commas")
    return tool, float(seconds)


def load() -> Settings:
    """Read the environment. Raises SettingsError naming each variable that is missing or unusable."""
    try:
        settings = Settings()  # the required fields come from the environment
    except ValidationError as error:
        raise SettingsError(_told(error)) from None
    if settings.failpoints and not settings.failpoints_allowed:
        raise SettingsError("AGENTJOBS_FAILPOINTS is for the dev stack and tests: unset it")
    if settings.webhooks_private and settings.environment is Environment.PRODUCTION:
        raise SettingsError(
            "AGENTJOBS_WEBHOOKS_PRIVATE lets tenants reach your own network: it is for the dev stack and tests"
        )
    _ = settings.approval_seconds, settings.retention  # checked here, so that every process says so at its start
    return settings


def _told(error: ValidationError) -> str:
    # The value itself is not repeated: a database address holds a password.
    return "; ".join(
        f"AGENTJOBS_{'_'.join(str(part) for part in problem['loc']).upper()}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_input=False)
    )
