"""Temporal servers for tests, from their wheels: nothing is downloaded at run time."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.testing import WorkflowEnvironment

from agentjobs.temporal import DATA_CONVERTER, SEARCH_ATTRIBUTES

_PROGRAMS = Path(sys.executable).parent


def _development_server(*settings: str) -> dict[str, Any]:
    return {
        "data_converter": DATA_CONVERTER,
        "search_attributes": SEARCH_ATTRIBUTES,
        "dev_server_existing_path": str(_PROGRAMS / "temporal"),
        "dev_server_log_level": "error",
        "dev_server_extra_args": [word for one in settings for word in ("--dynamic-config-value", one)],
    }


@asynccontextmanager
async def real_temporal() -> AsyncIterator[WorkflowEnvironment]:
    """The development server, in memory."""
    fast = ("history.transferProcessorMaxPollRPS=1000", "history.timerProcessorMaxPollRPS=1000")
    async with await WorkflowEnvironment.start_local(**_development_server(*fast)) as environment:
        yield environment


@asynccontextmanager
async def skipping_real_temporal() -> AsyncIterator[WorkflowEnvironment]:
    """The development server with its own time skipping."""
    options = _development_server("frontend.WorkflowTimeSkippingEnabled=true")
    async with await WorkflowEnvironment.start_time_skipping_v2(**options) as environment:
        yield environment


@asynccontextmanager
async def time_skipping_server() -> AsyncIterator[WorkflowEnvironment]:
    """The time-skipping test server. It knows a search attribute only after it was registered."""
    environment = await WorkflowEnvironment.start_time_skipping(
        data_converter=DATA_CONVERTER, test_server_existing_path=str(_PROGRAMS / "temporal-test-server")
    )
    async with environment:
        await environment.client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                namespace="default",
                search_attributes={
                    key.name: IndexedValueType.ValueType(key.indexed_value_type) for key in SEARCH_ATTRIBUTES
                },
            )
        )
        yield environment
