# What a person types here. `make` alone explains itself.
#
# Everything happens in .venv, made from requirements.lock: every package pinned, every file checked by its
# sha256 (the nats-server binary among them). A second run reuses it until a pin changes.

SHELL := /bin/sh
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.set-up
# The first of these that is new enough; `make setup PYTHON=/path/to/python3` chooses another one.
PYTHON ?= $(shell for candidate in python3 python3.13 python3.12 python3.11; do \
	if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	then echo $$candidate; break; fi; done)
PIP := "$(PY)" -m pip --disable-pip-version-check --quiet --quiet
ARGS ?=
# How far pip is, a line for every 20 packages; all that it said where it failed.
define SHOWN
/^(Collecting|Processing) / { if (++n % 20 == 0 || n == all) { print "  " n " of " all " packages are here"; fflush() } }
/^Installing collected / { print "  installing them ..."; fflush() }
/^ended / { code = $$2; next }
{ said = said $$0 "\n" }
END { if (code) printf "%s", said > "/dev/stderr"; exit code }
endef
export SHOWN
# What Python compiled is kept, also where the environment says otherwise: nodes and commands are processes, hundreds in
# a run of the tests, and compiling anew is a fifth of a second for each.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test damage faults properties statements lint format check bench screenshots docs lock clean

help: ## explain these commands
	@echo 'Knowledge Ledger: the two to start with are `make demo` and `make test`.'
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## prepare .venv with .venv/bin/kledger (the others do it when it is needed)

$(STAMP): pyproject.toml requirements.lock
	@if [ -z "$(PYTHON)" ] || ! "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "Python 3.11 or newer is needed, and $$(python3 --version 2>/dev/null || echo 'no python3') was found."; \
		echo "Install one, or say where it is: make setup PYTHON=/path/to/python3.11"; exit 1; fi >&2
	@echo "Setting up $(VENV) (about a minute, once) ..."
	@"$(PYTHON)" -m venv "$$("$(PYTHON)" -c 'import os; print(os.path.realpath("$(VENV)"))')" || { \
		echo "The venv module of Python is missing; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@{ "$(PY)" -m pip --disable-pip-version-check --no-color install --progress-bar off --require-hashes --no-deps \
		-r requirements.lock 2>&1; echo "ended $$?"; } | awk -v all="$$(grep -c '==' requirements.lock)" "$$SHOWN"
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@"$(PY)" -m pip --disable-pip-version-check check
	@touch "$@"

demo: $(STAMP) ## a node, real knowledge, search in two languages, history, a rebuild: the product in a minute
	@"$(PY)" -m producers.cli.demo $(ARGS)

test: $(STAMP) ## the whole test suite, on every core; ARGS="-k name" for a part of it, ARGS="-n 0" for one process
	@"$(PY)" -m pytest $(ARGS)

damage: $(STAMP) ## damage copies of a stream's files in 200 ways: an audit has to find each
	@KLEDGER_DAMAGES=200 "$(PY)" -m pytest tests/integrity/test_damaged_files.py $(ARGS)

lint: $(STAMP) ## style, format, types, and who may import what
	@"$(PY)" -m ruff check .
	@"$(PY)" -m ruff format --check .
	@"$(PY)" -m mypy
	@"$(VENV)/bin/lint-imports" --no-cache

format: $(STAMP) ## put the code into its format
	@"$(PY)" -m ruff check --fix --select I .
	@"$(PY)" -m ruff format .

check: lint test ## lint and test

faults: $(STAMP) ## 200 kills between any two steps, every promise checked after each; ARGS="--points 20 --seed 7"
	@"$(PY)" -m tests.faults.harness $(ARGS)
	@KLEDGER_EVERY_KILL=1 "$(PY)" -m pytest tests/reactors/test_killed_models.py

properties: $(STAMP) ## every property on examples drawn by chance; ARGS="--hypothesis-seed=7" draws the same again
	@KLEDGER_EXPLORE=1 "$(PY)" -m pytest $$(grep -rl "^from hypothesis" tests --include="test_*.py") $(ARGS)

statements: $(STAMP) ## 20,000 statements as an adversary makes them: no stall, no odd answer; ARGS="--count 2000 --seed 7"
	@"$(PY)" -m tests.attacks.statements $(ARGS)

bench: $(STAMP) ## ours against the raw libraries, one table and one JSON file; ARGS="--only append"
	@"$(PY)" -m bench $(ARGS)

screenshots: $(STAMP) ## write the pictures of the pages in docs/images/page again; needs chromium and fonts-noto-cjk
	@"$(PY)" -m tests.browser.screenshots

docs: $(STAMP) ## write docs/reference again from the code
	@"$(PY)" -m docs.generate

lock: ## write requirements.lock again after a change of pyproject.toml
	@"$(PYTHON)" -m venv "$(VENV)/lock"
	@"$(VENV)/lock/bin/python" -m pip --disable-pip-version-check --quiet install pip-tools==7.6.2
	@"$(VENV)/lock/bin/python" -m piptools compile --quiet --generate-hashes --extra node --extra dev --build-deps-for editable \
		--allow-unsafe --strip-extras --no-header --no-emit-index-url --no-emit-find-links \
		--no-emit-trusted-host --no-emit-options --output-file requirements.lock pyproject.toml

clean: ## remove .venv and every cache; data in .kledger stays
	rm -rf "$(VENV)" .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
