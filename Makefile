# Watchkeeper: every command a person or a machine needs. Wants Python 3.11 or newer and make, nothing else.
# Each step leaves a stamp in the environment, so nothing is done twice.

VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --no-input
# The first Python that is new enough; `make PYTHON=/path/to/python3.12` chooses another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
            $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

# --no-compile: only what is used gets compiled, when it is first used; that halves the set-up time. So Python may write
# its bytecode here, whatever the environment says: without it each process would compile everything anew.
INSTALL := $(PIP) install -qq --no-compile
export PYTHONDONTWRITEBYTECODE :=

# The demo keeps its jobs in .demo/ here and leaves the person's own store alone.
DEMO     := $(CURDIR)/.demo
DEMO_ENV  = PATH="$(abspath $(BIN)):$$PATH" XDG_CONFIG_HOME="$(DEMO)/config" XDG_DATA_HOME="$(DEMO)/data" \
            XDG_STATE_HOME="$(DEMO)/state" XDG_CACHE_HOME="$(DEMO)/cache" XDG_RUNTIME_DIR="$(DEMO)/run"

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-worlds test-real test-again engines test-slow fuzz soak bench lint format check lock docs sbom release audit clean

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/run.stamp ## Delegate two real training runs to this machine and watch them to the end
	rm -rf .demo examples/digits/runs
	mkdir -p -m 700 .demo/run
	$(DEMO_ENV) $(BIN)/wk run examples/digits/job.yaml
	$(DEMO_ENV) $(BIN)/wk run examples/digits/stall.yaml

# Some tests wait for processes, so more than the cores; each worker collects all tests first, so not many more.
WORKERS ?= 3

test: $(VENV)/dev.stamp ## Run the tests that need nothing but Python, but for the simulation's own
	$(BIN)/python -m pytest -q -n $(WORKERS) -m "not slow and not real and not worlds"

test-worlds: $(VENV)/dev.stamp ## Run the tests of the simulation, which play some worlds drawn from seeds
	$(BIN)/python -m pytest -q -n $(WORKERS) -m "worlds and not slow"

test-real: $(VENV)/dev.stamp ## Run the tests on real engines (Slurm, Ray, PostgreSQL, Chromium), where there are some
	$(BIN)/python -m pytest -q -n 4 -m "real and not slow"

test-again: $(VENV)/dev.stamp ## Run what failed last time once more, alone
	$(BIN)/python -m pytest -q --last-failed --last-failed-no-failures none

engines: .engines/ray.stamp ## Install what tests of real engines need and no package manager has (Ray)

.engines/ray.stamp: tests/clusters/ray/requirements.lock
	$(PYTHON) -m venv .engines/ray
	.engines/ray/bin/python -m pip install --disable-pip-version-check --no-input -qq --require-hashes -r $<
	touch $@

# The limit after which a test counts as hung (pyproject.toml) is of minutes; ten thousand worlds take longer.
test-slow: $(VENV)/dev.stamp ## Run the tests that take minutes
	$(BIN)/python -m pytest -q -m slow -o faulthandler_timeout=7200

fuzz: $(VENV)/fuzz.stamp ## Fuzz what reads the texts of others (SECONDS=60 for each target)
	$(BIN)/python -m tests.security.fuzz --seconds $(or $(SECONDS),60)

# Without atheris (no wheel for this Python or machine) texts are drawn instead of steered.
$(VENV)/fuzz.stamp: tests/security/requirements.lock $(VENV)/dev.stamp
	-$(INSTALL) --require-hashes --only-binary :all: -r $<
	touch $@

soak: $(VENV)/dev.stamp ## Run real jobs for MINUTES=120 while everything is killed at random; figures into the docs
	$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),120) --seed $(or $(SEED),1) --write docs/reliability.md

bench: $(VENV)/dev.stamp ## Print the figures of the benchmarks
	$(BIN)/python -m tests.benchmarks

lint: $(VENV)/dev.stamp ## Check style, types and the dependency rule
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/dev.stamp ## Put the code into the house's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

check: lint test test-worlds test-real ## Everything that CI runs

docs: $(VENV)/dev.stamp ## Write the generated pages under docs/ anew
	$(BIN)/python docs/generate.py

$(VENV)/lock/bin/uv: | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet uv

sbom: $(VENV)/lock/bin/uv ## Write dist/watchkeeper.cdx.json: what a release is made of (CycloneDX)
	mkdir -p dist
	$< export --quiet --frozen --no-emit-project --no-dev --all-extras --format cyclonedx1.5 \
	  --preview-features sbom-export --output-file dist/watchkeeper.cdx.json

release: sbom ## Build the distributions into dist/, with their bill of materials beside them
	$(VENV)/lock/bin/uv build --quiet --out-dir dist

audit: | $(BIN)/python ## Look the locked dependencies up in the advisory database (needs the internet)
	$(BIN)/python -m venv $(VENV)/audit
	$(VENV)/audit/bin/python -m pip install --quiet pip-audit
	$(VENV)/audit/bin/pip-audit --strict --disable-pip --require-hashes -r requirements-dev.lock

EXPORT = $(VENV)/lock/bin/uv export --quiet --no-emit-project --no-header --no-annotate --group build

lock: $(BIN)/python ## Pin the dependencies anew (UPGRADE=--upgrade takes the newest)
	$(BIN)/python -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet uv
	$(VENV)/lock/bin/uv lock $(UPGRADE)
	$(EXPORT) --extra demo --extra postgres --output-file requirements.lock
	$(EXPORT) --all-extras --output-file requirements-dev.lock

clean: ## Remove the environment, the caches and what the demo wrote
	rm -rf $(VENV) .engines .demo .fuzz build dist examples/*/runs
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find agent states prompts tests examples docs -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# --- the environment ---------------------------------------------------------------------------------------

$(BIN)/python:
	@test -n "$(PYTHON)" || { \
	  echo "make: no Python 3.11 or newer found. Install one, or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: requirements.lock pyproject.toml | $(BIN)/python
	$(INSTALL) --require-hashes -r requirements.lock
	$(INSTALL) --no-deps --no-build-isolation --editable .
	touch $@

$(VENV)/dev.stamp: requirements-dev.lock $(VENV)/run.stamp
	$(INSTALL) --require-hashes -r requirements-dev.lock
	touch $@
