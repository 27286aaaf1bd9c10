"""`watch` over the event stream: each event at once, resumed where it broke, without a stream by asking."""

import json
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import httpx
import pytest
from rich.console import Console
from rich.live import Live

from agentjobs.commands.answers import Job
from agentjobs.commands.beside import beside
from agentjobs.commands.event_lines import Event, Unreadable, told_by
from agentjobs.commands.following import Countdown, shown_on
from agentjobs.commands.outside import Outside
from agentjobs.commands.render import Screen
from tests.commands.conftest import CommandLine
from tests.commands.documents import Document, dead, job_document, succeeded
from tests.commands.fake_api import NOW, FakeApi, problem

RUNNING = job_document("a", "running", step="step-1.model", attempt=1)
USED = {**RUNNING, "usage": {"tokens_in": 900, "tokens_out": 80, "usd": "0.01"}}
WAITING = job_document("a", "retry_wait", step="step-1.model", attempt=1, next_attempt_at="2026-03-01T12:00:09Z")
AT = "2026-03-01T11:59:30Z"


def event(seq: int, type_: str, **data: Any) -> bytes:
    document = {"seq": seq, "type": type_, "at": AT, **data}
    return f"id: {seq}\nevent: {type_}\ndata: {json.dumps(document)}\n\n".encode()


def snapshot(seq: int, job: Document) -> bytes:
    return f"retry: 1500\n\nid: {seq}\nevent: snapshot\ndata: {json.dumps(job)}\n\n".encode()


class Broken(httpx.SyncByteStream):
    """A stream that breaks after its parts."""

    def __init__(self, *parts: bytes) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[bytes]:
        yield from self._parts
        raise httpx.ReadError("connection reset")


Stream = Callable[[], httpx.Response]


def ending(*parts: bytes) -> Stream:
    return lambda: httpx.Response(200, content=b"".join(parts), headers={"Content-Type": "text/event-stream"})


def breaking(*parts: bytes) -> Stream:
    return lambda: httpx.Response(200, stream=Broken(*parts), headers={"Content-Type": "text/event-stream"})


class StreamingApi(FakeApi):
    """With streams: one for each connection, then none more."""

    def __init__(self) -> None:
        super().__init__()
        self.streams: list[Stream] = []
        self.resumed_from: list[str | None] = []
        self.approvals: dict[str, list[Document]] = {}

    def _jobs(self, request: httpx.Request, rest: list[str]) -> httpx.Response:
        if rest[1:] == ["events"]:
            self.resumed_from.append(request.headers.get("Last-Event-ID"))
            return self.streams.pop(0)() if self.streams else httpx.Response(204)
        if rest[1:] == ["approvals"]:
            return httpx.Response(200, json={"items": self.approvals[rest[0]]})
        return super()._jobs(request, rest)


@pytest.fixture
def api() -> StreamingApi:
    return StreamingApi()


RETRY = event(
    *(6, "retry_scheduled"),
    step="step-1.model",
    attempt=1,
    category="rate_limited",
    next_attempt_at="2026-03-01T12:00:09Z",
)
DONE = event(7, "step_completed", step="step-1.model", kind="model", name="model")
END = event(9, "succeeded")


def test_each_event_is_a_line_with_what_it_tells(command_line: CommandLine, api: StreamingApi) -> None:
    api.jobs["a"] = [RUNNING, WAITING, USED, succeeded("a")]
    api.streams = [ending(snapshot(5, RUNNING), RETRY, b": still here\n\n", DONE, END)]

    result = command_line.run("watch", "a")

    assert result.exit_code == 0
    assert result.stdout.splitlines()[:4] == [
        "2026-03-01T11:59:00Z  running  step-1.model  attempt 1",
        f"{AT}  retry_scheduled  step-1.model  attempt 1  rate_limited  next attempt 2026-03-01T12:00:09Z (in 9s)",
        f"{AT}  step_completed  step-1.model  980 tokens, 0.01 USD so far",
        f"{AT}  succeeded",
    ]
    assert result.stdout.splitlines()[4].split(maxsplit=1) == ["answer", "A ticket is open."]


ASKED = event(
    *(6, "approval_requested"),
    step="step-1.create_ticket",
    tool="create_ticket",
    expires_at="2026-03-01T12:30:00Z",
)
DECIDED = event(7, "approval_decided", step="step-1.create_ticket", tool="create_ticket", decision="approved")
ASKING = job_document("a", "waiting_approval", step="step-1.create_ticket")
UNTIL = "until 2026-03-01T12:30:00Z (in 30m)"
HOW = "a reviewer decides: `python starter.py approvals show a`"


def test_a_call_that_waits_says_until_when_and_how_to_decide(command_line: CommandLine, api: StreamingApi) -> None:
    api.jobs["a"] = [RUNNING, ASKING, RUNNING, succeeded("a")]
    api.streams = [ending(snapshot(5, RUNNING), ASKED, DECIDED, END)]

    lines = command_line.run("watch", "a").stdout.splitlines()

    assert lines[1:3] == [
        f"{AT}  approval_requested  step-1.create_ticket  create_ticket  {UNTIL}  {HOW}",
        f"{AT}  approval_decided  step-1.create_ticket  create_ticket  approved",
    ]


@pytest.mark.parametrize("already", [False, True])
def test_a_terminal_counts_down_to_the_end_of_the_approval(
    command_line: CommandLine, api: StreamingApi, already: bool
) -> None:
    api.jobs["a"] = [ASKING if already else RUNNING, ASKING, ASKING, succeeded("a")]
    api.approvals["a"] = [
        {
            **{"job_id": "a", "step": "step-1.create_ticket", "tool": "create_ticket", "fingerprint": "f"},
            **{"state": "requested", "is_open": True, "expires_at": "2026-03-01T12:30:00Z"},
        }
    ]
    api.streams = [
        breaking(snapshot(6, ASKING)) if already else breaking(snapshot(5, RUNNING), ASKED),
        ending(END),
    ]

    shown = command_line.run("watch", "a", env={"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "120"}).stdout

    assert "waiting_approval: 30m left to decide  step-1.create_ticket" in shown


def test_a_terminal_shows_what_is_used_as_it_grows() -> None:
    written, shown = screen_of(100)

    shown.job(Job.model_validate(RUNNING))
    before = written.getvalue()
    shown.job(Job.model_validate(USED))

    assert "token" not in before
    assert "running for 2m  step-1.model  980 tokens, 0.01 USD" in written.getvalue()


def test_a_wait_that_is_over_is_due_and_not_below_zero() -> None:
    written, shown = screen_of(100)

    shown.job(Job.model_validate(WAITING | {"next_attempt_at": "2026-03-01T11:59:00Z"}))

    assert "retry_wait: next attempt is due" in written.getvalue()


def test_a_stream_that_breaks_is_gone_on_with_where_it_broke(command_line: CommandLine, api: StreamingApi) -> None:
    api.jobs["a"] = [RUNNING, WAITING, WAITING, USED, succeeded("a")]
    api.streams = [breaking(snapshot(5, RUNNING), RETRY, event(7, "x")[:9]), ending(DONE, END)]

    result = command_line.run("watch", "a")

    assert result.exit_code == 0
    assert api.resumed_from == [None, "6"]
    kinds = [line.split()[1] for line in result.stdout.splitlines() if line.startswith(AT)]
    assert kinds == ["retry_scheduled", "step_completed", "succeeded"]


def test_where_history_was_removed_it_goes_on_from_the_snapshot_that_comes_instead(
    command_line: CommandLine, api: StreamingApi
) -> None:
    api.jobs["a"] = [RUNNING, RUNNING, RUNNING, RUNNING, succeeded("a")]
    resync = b'event: resync\ndata: {"after":6}\n\n'
    api.streams = [
        breaking(snapshot(5, RUNNING), RETRY),
        breaking(resync, snapshot(20, RUNNING)),
        ending(event(21, "succeeded")),
    ]

    result = command_line.run("watch", "a")

    assert (result.exit_code, result.stderr) == (0, "")
    assert api.resumed_from == [None, "6", "20"]


def test_a_stream_refused_on_the_way_is_replaced_by_asking(command_line: CommandLine, api: StreamingApi) -> None:
    api.jobs["a"] = [RUNNING, RUNNING, RUNNING, succeeded("a")]
    too_many = problem(429, "Too many streams", "close some", {"Retry-After": "15"})
    api.streams = [breaking(snapshot(5, RUNNING), RETRY), lambda: too_many]

    result = command_line.run("watch", "a")

    assert (result.exit_code, result.stderr) == (0, "")
    assert api.resumed_from == [None, "6"]
    assert "succeeded" in result.stdout


def test_a_stream_that_never_gets_anywhere_is_asked_for_ever_more_slowly(
    command_line: CommandLine, api: StreamingApi
) -> None:
    api.jobs["a"] = [RUNNING] * 9 + [succeeded("a")]
    api.streams = [breaking()] * 20

    assert command_line.run("watch", "a").exit_code == 0
    assert command_line.waits == sorted(command_line.waits)
    assert command_line.waits[-1] == 2.0


@pytest.mark.parametrize("status", [404, 405, 429])
def test_without_a_stream_the_job_is_asked_after(
    command_line: CommandLine, api: StreamingApi, status: int
) -> None:
    api.jobs["a"] = [RUNNING, RUNNING, succeeded("a")]
    api.streams = [lambda: problem(status, "No", "no stream")]

    result = command_line.run("watch", "a")

    assert result.exit_code == 0
    assert "succeeded" in result.stdout
    assert api.resumed_from == [None]


def test_an_api_that_has_no_stream_to_spare_is_asked_meanwhile(
    command_line: CommandLine, api: StreamingApi
) -> None:
    api.jobs["a"] = [RUNNING, RUNNING, succeeded("a")]
    api.streams = [lambda: problem(503, "No more streams", "later"), ending(snapshot(5, RUNNING), END)]

    result = command_line.run("watch", "a")

    assert (result.exit_code, result.stderr) == (0, "")


def test_what_is_no_event_stream_is_not_believed(command_line: CommandLine, api: StreamingApi) -> None:
    api.jobs["a"] = [RUNNING, succeeded("a")]
    api.streams = [ending(b"id: 1\nevent: x\ndata: <html>\n\n")]

    result = command_line.run("watch", "a")

    assert (result.exit_code, result.exception) == (0, None)


def test_dead_ends_the_watch(command_line: CommandLine, api: StreamingApi) -> None:
    api.jobs["a"] = [RUNNING, dead("a")]
    api.streams = [ending(snapshot(5, RUNNING), event(6, "died", reason="access_denied", generation=1))]

    result = command_line.run("watch", "a")

    assert result.exit_code == 1
    assert f"{AT}  died  access_denied" in result.stdout
    assert "dead show a" in result.stdout


def test_text_is_no_line_of_its_own(command_line: CommandLine, api: StreamingApi) -> None:
    api.jobs["a"] = [RUNNING, succeeded("a")]
    api.streams = [ending(snapshot(5, RUNNING), event(6, "text", attempt_id=1, text="A tick"), END)]

    assert "A tick" not in command_line.run("watch", "a").stdout.replace("A ticket is open.", "")


def test_nothing_in_an_event_reaches_a_terminal_raw(command_line: CommandLine, api: StreamingApi) -> None:
    api.jobs["a"] = [RUNNING, succeeded("a")]
    api.streams = [ending(snapshot(5, RUNNING), event(6, "x\u001b]0;t\u0007", step="\u001b[2Jy\nz"), END)]

    result = command_line.run("watch", "a", env={"FORCE_COLOR": "1", "TERM": "xterm"})

    assert "\x1b]0" not in result.stdout
    assert "\x1b[2J" not in result.stdout


def screen_of(width: int) -> tuple[StringIO, Countdown]:
    written = StringIO()
    console = Console(file=written, force_terminal=True, width=width, color_system=None)
    live = Live(console=console, auto_refresh=False)
    live.start()
    return written, Countdown(console, Outside(now=lambda: NOW), live)


def piece(attempt: int, text: str) -> Event:
    return Event.model_validate({"seq": 1, "type": "text", "at": AT, "attempt_id": attempt, "text": text})


def test_a_terminal_shows_the_end_of_an_answer_as_it_is_written() -> None:
    written, shown = screen_of(20)
    shown.job(Job.model_validate(RUNNING))

    for word in ["one", "two", *("more",) * 40, "last"]:
        shown.text(piece(1, f" {word}"))

    last = written.getvalue().rpartition("running")[2]
    assert "last" in last
    assert "one" not in last


def test_text_of_an_attempt_that_failed_is_dropped() -> None:
    written, shown = screen_of(80)
    job = Job.model_validate(RUNNING)
    shown.job(job)
    shown.text(piece(1, "a wrong begin"))
    failed = Event.model_validate({"seq": 2, "type": "retry_scheduled", "at": AT})
    before = len(written.getvalue())

    shown.event(failed, job)
    shown.text(piece(2, "a right one"))

    after = written.getvalue()[before:]
    assert "a right one" in after
    assert "wrong" not in after


def test_text_of_another_attempt_replaces_what_was_written() -> None:
    written, shown = screen_of(80)
    shown.job(Job.model_validate(RUNNING))
    shown.text(piece(1, "a wrong begin"))
    before = len(written.getvalue())

    shown.text(piece(2, "a right one"))

    assert "wrong" not in written.getvalue()[before:]


def test_as_documents_each_event_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(lambda: NOW, as_json=True)
    given = Event.model_validate({"seq": 6, "type": "text", "at": AT, "text": "a\nb", "new_field": [1]})

    with shown_on(screen.beside, screen, Outside(now=lambda: NOW), documents=True) as shown:
        shown.text(given)
        shown.event(given, Job.model_validate(RUNNING))

    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"seq": 6, "type": "text", "at": AT, "text": "a\nb", "new_field": [1]}
    ] * 2


@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_a_stream_is_read_the_same_however_it_is_cut(size: int) -> None:
    whole = snapshot(5, RUNNING) + event(6, "text", text="日本\u2028\u0085 x") + b": c\n\n" + END
    whole = whole.replace(b"\n", b"\r\n") if size == 1_000 else whole

    told = list(told_by(whole[start : start + size] for start in range(0, len(whole), size)))

    assert [one.id for one in told] == ["5", "6", "9"]
    assert told[1].event is not None
    assert told[1].event.text == "日本\u2028\u0085 x"


@pytest.mark.parametrize("line", [b"data: []", b"data: {}", b"data: nonsense", b'data: {"seq": "x"}'])
def test_an_event_without_its_fields_is_unreadable(line: bytes) -> None:
    with pytest.raises(Unreadable):
        list(told_by([b"id: 1\nevent: x\n" + line + b"\n\n"]))


def test_a_stream_without_an_end_of_line_does_not_fill_the_memory() -> None:
    with pytest.raises(Unreadable):
        list(told_by(b"x" * 1_000_000 for _ in range(1_000)))


def test_what_is_read_beside_arrives_in_order_with_its_error() -> None:
    def items() -> Iterator[int]:
        yield from range(1_000)
        raise KeyError

    got: list[int | None] = []
    with pytest.raises(KeyError):
        got.extend(item for item in beside(items(), 10.0))

    assert got == list(range(1_000))


def test_a_reader_that_is_given_up_stops_reading() -> None:
    read: list[int] = []

    def items() -> Iterator[int]:
        for number in range(1_000_000):
            read.append(number)
            yield number

    for item in beside(items(), 10.0):
        if item == 10:
            break

    assert len(read) < 1_000
