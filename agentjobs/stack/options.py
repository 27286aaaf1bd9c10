"""What `python starter.py dev` lets its user choose."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from agentjobs.stack.ports import LOOPBACK

Port = Annotated[int, Field(ge=1, le=65535)]


class StackOptions(BaseModel):
    """One stack's home, ports and number of workers."""

    model_config = ConfigDict(frozen=True)

    home: Path = Path(".agentjobs")
    api_port: Port = 8080
    temporal_port: Port = 7233
    ui_port: Port = 8233
    postgres_port: Port = 55432
    workers: Annotated[int, Field(ge=0, le=64)] = 1
    extra_env: Mapping[str, str] = {}

    @property
    def ports(self) -> dict[str, int]:
        """Each port under the option that changes it."""
        return {
            "--postgres-port": self.postgres_port,
            "--temporal-port": self.temporal_port,
            "--ui-port": self.ui_port,
            "--api-port": self.api_port,
        }

    @property
    def api_url(self) -> str:
        """Where the HTTP API answers."""
        return f"http://{LOOPBACK}:{self.api_port}"

    @property
    def temporal_address(self) -> str:
        """Where Temporal's clients and workers connect."""
        return f"{LOOPBACK}:{self.temporal_port}"

    @property
    def temporal_ui_url(self) -> str:
        """Where the Temporal UI answers."""
        return f"http://{LOOPBACK}:{self.ui_port}"
