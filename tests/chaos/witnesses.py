"""What those saw who stand outside: the model, the destination for tickets, who is alerted, and clients."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelCall:
    """A model was asked. Times are of `time.time`."""

    key: str
    """The idempotency key that the request's text names."""

    stage: str
    """`plan`, `step` or `answer`."""

    at: float


@dataclass(frozen=True)
class TicketWord:
    """What the destination did with a request: `created`, `repeated` (refused by its key), or `closed`."""

    did: str
    operation_key: str
    tenant: str
    title: str
    at: float


@dataclass(frozen=True)
class Followed:
    """A client that followed a job to its end, over however many connections."""

    job_id: str
    seen: tuple[tuple[int, str], ...]
    """(seq, type), as they came."""

    connects: int


@dataclass(frozen=True)
class Peek:
    """A tenant asked for another tenant's job; `status` is what it heard."""

    job_id: str
    tenant: str
    status: int


@dataclass(frozen=True)
class QuotaSeen:
    """At one moment, in one snapshot of the ledger."""

    tenant: str
    user: str
    in_flight: int
    limit: int | None
    redriven: int
    """Redrives take a slot and are never refused: so many jobs more than the limit there may be."""


@dataclass(frozen=True)
class QuotaTold:
    """After quiescence: what the API says is in use, and what the ledger has."""

    tenant: str
    user: str
    told: int
    in_flight: int


@dataclass(frozen=True)
class Death:
    """A death on record, and which alerts tell of it."""

    job_id: str
    generation: int
    alert_ids: tuple[str, ...]


@dataclass(frozen=True)
class Witnesses:
    """All of them."""

    model_calls: tuple[ModelCall, ...] = ()
    ticket_words: tuple[TicketWord, ...] = ()
    followed: tuple[Followed, ...] = ()
    peeks: tuple[Peek, ...] = ()
    quotas_seen: tuple[QuotaSeen, ...] = ()
    quotas_told: tuple[QuotaTold, ...] = ()
    deaths: tuple[Death, ...] = ()
    alerts_taken: frozenset[str] = frozenset()
    """Ids in the log of whoever takes alerts."""

    leftovers: frozenset[str] = frozenset()
    """Jobs whose workflows the relay has ended, by its own log: they were over, and their workflows ran on."""

    unreplayable: tuple[tuple[str, str], ...] = ()
    """(job, why): histories that the present code does not replay."""
