"""How a run travels with Temporal's messages, and what an attempt's span is put around.

The SDK's own interceptors are not used: they put an exception's words into a span's status, make spans in
workflows, and cannot give a run one span over several processes (docs/adr/0017-tracing.md).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from temporalio import activity, client, worker, workflow
from temporalio.api.common.v1 import Payload
from temporalio.exceptions import ApplicationError

from agentjobs.tracing import spans
from agentjobs.tracing.runs import Attempt, Run, current

HEADER: Final = "agentjobs-run"
SHORT_STEPS: Final = "short_steps"
"""The type of the activity in which several steps are carried out."""

Headers = Mapping[str, Payload]


def with_run(headers: Headers, run: Run) -> Headers:
    """The headers of a message that is about this run."""
    payload = Payload(metadata={"encoding": b"json/plain"}, data=run.model_dump_json().encode())
    return {**headers, HEADER: payload}


def run_in(headers: Headers) -> Run | None:
    """The run that a message is about. What cannot be read is none: a job must not fail because of its trace."""
    payload = headers.get(HEADER)
    try:
        return None if payload is None else Run.model_validate_json(payload.data)
    except ValueError:
        return None


class Tracing(client.Interceptor, worker.Interceptor):
    """For a client whose words are told to jobs, and for the workers over it."""

    def intercept_client(self, next: client.OutboundInterceptor) -> client.OutboundInterceptor:
        """Words carry the run that they begin."""
        return _Words(next)

    def intercept_activity(self, next: worker.ActivityInboundInterceptor) -> worker.ActivityInboundInterceptor:
        """Attempts are spans."""
        return _Attempts(next)

    def workflow_interceptor_class(
        self,
        input: worker.WorkflowInterceptorClassInput,  # noqa: ARG002 - the SDK's signature
    ) -> type[worker.WorkflowInboundInterceptor]:
        """Workflows pass the run on."""
        return PassingOn


class _Words(client.OutboundInterceptor):
    async def start_workflow(self, input: client.StartWorkflowInput) -> client.WorkflowHandle[Any, Any]:
        input.headers = _with_current(input.headers)
        return await super().start_workflow(input)

    async def start_workflow_update(
        self, input: client.StartWorkflowUpdateInput
    ) -> client.WorkflowUpdateHandle[Any]:
        input.headers = _with_current(input.headers)
        return await super().start_workflow_update(input)


def _with_current(headers: Headers) -> Headers:
    run = current.get()
    return headers if run is None else with_run(headers, run)


class PassingOn(worker.WorkflowInboundInterceptor):
    """Takes the run from the word that began it, and gives it to each activity and to the next run of Temporal's.

    Deterministic: it reads messages and the workflow's clock, and makes no span.
    """

    run: Run | None = None

    def init(self, outbound: worker.WorkflowOutboundInterceptor) -> None:
        """Before anything is executed."""
        super().init(_Onward(outbound, self))

    async def execute_workflow(self, input: worker.ExecuteWorkflowInput) -> Any:
        """The start, or where another run of Temporal's left off."""
        self._take(input.headers)
        return await super().execute_workflow(input)

    async def handle_update_handler(self, input: worker.HandleUpdateInput) -> Any:
        """An order begins another run of the job."""
        self._take(input.headers)
        return await super().handle_update_handler(input)

    def _take(self, headers: Headers) -> None:
        run = run_in(headers)
        if run is not None:
            self.run = run.model_copy(update={"began_at": run.began_at or workflow.now()})


class _Onward(worker.WorkflowOutboundInterceptor):
    def __init__(self, next: worker.WorkflowOutboundInterceptor, inbound: PassingOn) -> None:
        super().__init__(next)
        self._inbound = inbound

    def start_activity(self, input: worker.StartActivityInput) -> workflow.ActivityHandle[Any]:
        input.headers = self._with_run(input.headers)
        return super().start_activity(input)

    def start_local_activity(self, input: worker.StartLocalActivityInput) -> workflow.ActivityHandle[Any]:
        input.headers = self._with_run(input.headers)
        return super().start_local_activity(input)

    def continue_as_new(self, input: worker.ContinueAsNewInput) -> NoReturn:
        input.headers = self._with_run(input.headers)
        super().continue_as_new(input)

    def _with_run(self, headers: Headers) -> Headers:
        run = self._inbound.run
        return headers if run is None else with_run(headers, run)


class _Attempts(worker.ActivityInboundInterceptor):
    async def execute_activity(self, input: worker.ExecuteActivityInput) -> Any:
        run = run_in(input.headers)
        if run is None:
            return await super().execute_activity(input)
        token = current.set(run)
        info = activity.info()
        try:
            if info.activity_type == SHORT_STEPS:  # each of them is an attempt
                return await super().execute_activity(input)
            with attempt_of(info.activity_type, info.activity_id, tried=_tried(input.args)):
                return await super().execute_activity(input)
        finally:
            current.reset(token)


@contextmanager
def attempt_of(activity_type: str, step: str, *, tried: int = 0) -> Iterator[None]:
    """The block is an attempt of this step of the current run, within the activity that is carried out here.

    tried: attempts that are not among those of the activity.
    """
    run = current.get()
    if run is None:
        yield
        return
    info = activity.info()
    attempt = Attempt(
        run=run,
        activity=activity_type,
        step=step,
        number=tried + info.attempt,
        workflow_run_id=info.workflow_run_id or "",
        started_at=info.started_time,
    )
    with spans.current(attempt.begun(), reason_of):
        yield


def reason_of(error: BaseException) -> str:
    """Why an activity failed: the reason that its workflow is told."""
    told = error.type if isinstance(error, ApplicationError) else None
    return told or spans.code_of(error)


def _tried(given: Sequence[Any]) -> int:
    return getattr(given[0], "tried", 0) if given else 0
