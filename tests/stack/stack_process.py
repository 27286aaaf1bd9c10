"""A stack of dummy programs as its own process, to be signalled and killed; its argument is its StackOptions."""

import asyncio
import os
import sys

from agentjobs.stack.options import StackOptions
from agentjobs.stack.run import run_stack
from tests.stack.dummies import dummy_programs, prepare


async def main() -> int:
    options = StackOptions.model_validate_json(sys.argv[1])
    return await run_stack(options, prepare, programs=dummy_programs)


if __name__ == "__main__":
    sys.stdout.flush()
    os._exit(asyncio.run(main()))
