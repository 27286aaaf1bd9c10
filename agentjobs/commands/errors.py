"""What ends a command early; each message is one line that says what to do.

CommandError
+-- WrongUsage          2  the command or a setting cannot be used as given
+-- ApiRefused          1  the API understood and said no
|   +-- OverQuota       1  ... for now: too much at once
+-- ApiUnreachable      3  nobody answers
|   +-- AnswerLost      3  asked, but the connection broke before the answer: it may have been done
|   +-- ApiUnavailable  3  the API (or what stands before it) answers that it cannot serve now
|   +-- NotOurApi       3  something answers, but it is not this API
+-- Interrupted       130  the user pressed Ctrl-C
"""

from typing import ClassVar


class CommandError(Exception):
    """The command ends. Show the message and exit with `exit_code`."""

    exit_code: ClassVar[int] = 1


class WrongUsage(CommandError):
    """Correct the option, the file or the variable that the message names."""

    exit_code = 2


class ApiRefused(CommandError):
    """Repeating it unchanged will be refused again, unless the status says otherwise."""

    def __init__(self, message: str, status: int, asked_seconds: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.asked_seconds = asked_seconds


class OverQuota(ApiRefused):
    """Wait for as long as the API asks, then repeat."""


class ApiUnreachable(CommandError):
    """Start the API, or correct its address."""

    exit_code = 3
    asked_seconds: float | None = None


class AnswerLost(ApiUnreachable):
    """Look before repeating what has no key."""


class ApiUnavailable(ApiUnreachable):
    """Nothing was done: repeat it later."""

    def __init__(self, message: str, asked_seconds: float | None) -> None:
        super().__init__(message)
        self.asked_seconds = asked_seconds


class NotOurApi(ApiUnreachable):
    """Correct the address."""


class Interrupted(CommandError):
    """Ctrl-C reached a command that had something to finish first."""

    exit_code = 130
