"""What a running stack tells the outside: the contents of stack.json, and the keys of its tenant `dev`."""

from pydantic import BaseModel, ConfigDict


class DevKeys(BaseModel):
    """The API keys of the dev tenant, in plain text: they open nothing but this home's own stack."""

    model_config = ConfigDict(frozen=True)

    api_key: str
    admin_key: str


class StackInfo(BaseModel):
    """stack.json: where everything listens, how to get in, which process is which."""

    model_config = ConfigDict(frozen=True)

    api: str
    console: str
    temporal: str
    temporal_ui: str
    database: str
    api_key: str
    admin_key: str
    pids: dict[str, int]
    metrics: dict[str, str]
    """Where Prometheus finds the figures of each of our processes."""
