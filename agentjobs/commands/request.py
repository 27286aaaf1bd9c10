"""What `submit` asks of the API."""

from pydantic import BaseModel, ConfigDict


class JobRequest(BaseModel):
    """One request; what is not given is left to the API."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    text: str
    agent: str | None = None
    deadline_seconds: int | None = None
    priority: int | None = None

    def body(self) -> dict[str, object]:
        """The JSON body of POST /v1/jobs."""
        others = self.model_dump(exclude={"text"}, exclude_none=True)
        return {"input": {"text": self.text}, **others}
