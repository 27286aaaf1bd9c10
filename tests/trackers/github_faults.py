"""What a test can make the double of GitHub do, one request each, in the order in which `will` is given them."""

from __future__ import annotations

import asyncio

from tests.trackers.github_double import Asked, Fault, GithubDouble, Told, message


def answer(status: int, text: str = "", **headers: str) -> Fault:
    """Refuse without executing; `retry_after="7"` becomes the header Retry-After."""

    async def fault(double: GithubDouble, asked: Asked) -> Told:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Told(status, {"message": text}, named)

    return fault


async def drop_the_reply(double: GithubDouble, asked: Asked) -> None:
    """Execute, then close the connection without a word."""
    double.respond(asked)


async def fail_after_executing(double: GithubDouble, asked: Asked) -> Told:
    """Execute, then say 502: a proxy on the way gave up."""
    double.respond(asked)
    return message(502, "Bad Gateway")


def land_late(landing: asyncio.Event) -> Fault:
    """Close the connection now, and execute when the event happens."""

    async def fault(double: GithubDouble, asked: Asked) -> None:
        double.execute_in_background(asked, landing)

    return fault


async def say_too_much(double: GithubDouble, asked: Asked) -> Told:
    """Execute, and answer with more than anybody reads."""
    told = double.respond(asked)
    return Told(told.status, raw=b'{"number": 1, "padding": "' + b"x" * (17 * 1024 * 1024) + b'"}')


async def say_nonsense(double: GithubDouble, asked: Asked) -> Told:
    """Execute, and answer with something that is no JSON."""
    return Told(double.respond(asked).status, raw=b"<html>Unicorn!</html>")


async def hang(double: GithubDouble, asked: Asked) -> None:
    """Execute, and never answer."""
    double.respond(asked)
    await asyncio.Event().wait()
