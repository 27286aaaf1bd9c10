"""What the API answers about approvals, as far as the commands show it."""

from pydantic import AwareDatetime, JsonValue

from agentjobs.commands.answers import Answer


class Approval(Answer):
    """A call that needs, or needed, an approval."""

    job_id: str
    step: str
    tool: str
    arguments: dict[str, JsonValue] | None = None
    fingerprint: str
    state: str
    is_open: bool = False
    requested_at: AwareDatetime | None = None
    expires_at: AwareDatetime | None = None
    decided_by: str | None = None
    note: str | None = None
