"""What a worker counts, beside the SDK's own figures and at the same address. Labels are closed sets: no ids.

An activity whose report was lost is carried out again, and counts again: exact numbers are the ledger's.
"""

from decimal import Decimal
from enum import StrEnum
from typing import Final

from temporalio import activity

from agentjobs.domain.budget import Usage
from agentjobs.domain.effects import EffectKind
from agentjobs.domain.failures import Category
from agentjobs.domain.states import JobState

NONE: Final = "none"
"""The category of what has not failed: a metric has the same labels always."""

_NANO: Final = Decimal(10) ** 9
"""Counters are whole numbers, and a call may cost less than a millionth of a dollar."""


class Ended(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ABANDONED = "abandoned"


def attempt_ended(kind: EffectKind, outcome: Ended, category: Category | None = None) -> None:
    """An attempt that the ledger let begin is over."""
    _add("agentjobs_attempts", 1, {"kind": kind, "outcome": outcome, "category": category or NONE})


def wait_begun(category: Category, seconds: float) -> None:
    """Another attempt follows, after so long."""
    waits = activity.metric_meter().create_histogram_float("agentjobs_wait", "Waits before a retry.", "seconds")
    waits.record(seconds, {"category": category})


def call_paid(usage: Usage, *, agent: str, model: str, budgeted: bool) -> None:
    """A model call has cost this. `budgeted`: its tenant has a limit for the month."""
    labels = {"agent": agent, "model": model, "tenant_class": "budgeted" if budgeted else "open"}
    _add("agentjobs_model_tokens", usage.tokens_in, {**labels, "direction": "in"})
    _add("agentjobs_model_tokens", usage.tokens_out, {**labels, "direction": "out"})
    _add("agentjobs_model_cost_nanodollars", int(usage.usd * _NANO), labels)


def job_ended(state: JobState, reason: str = NONE) -> None:
    """A job is over, or dead of this."""
    _add("agentjobs_jobs_ended", 1, {"state": state, "reason": reason})


def _add(name: str, number: int, labels: dict[str, str]) -> None:
    activity.metric_meter().create_counter(name, "See docs/metrics.md.").add(number, dict(labels))
