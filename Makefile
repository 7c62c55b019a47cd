# Everything a person types. Each target makes the environment it needs, once; see CONTRIBUTING.md.

SHELL := /bin/bash
BIN := .venv/bin
ARGS ?=

# The first Python on the PATH that is new enough; `make PYTHON=/path/to/python3 ...` picks another.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

# Nothing is fetched while the tools run: pyright uses the JavaScript and the node that came with it.
export PYRIGHT_PYTHON_GLOBAL_NODE := false
export PYRIGHT_PYTHON_IGNORE_WARNINGS := true

.DEFAULT_GOAL := help
.PHONY: help demo test check format bench data lock full clean python

help:
	@echo "make demo     count a real corpus, no key, no network after the install, no compiler"
	@echo "make test     all tests (compiles llama-cpp-python once, a few minutes)"
	@echo "make check    format, lint, types, contracts, house rules: all static"
	@echo "make format   let ruff rewrite what it can"
	@echo "make bench    the benchmark tables"
	@echo "make data     fetch the research corpora that the benchmarks use"
	@echo "make lock     resolve the requirements again and write the locks"
	@echo "make clean    remove environment, caches and build products"

python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer on the PATH. On Debian or Ubuntu:"; \
		echo "    apt-get install -y make python3-venv g++"; exit 1; } >&2

demo: python
	@$(PYTHON) tools/environment.py demo
	@$(BIN)/python examples/demo.py $(ARGS)

full: python
	@$(PYTHON) tools/environment.py full

test: full
	$(BIN)/python -m pytest $(ARGS)

check: full
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest -q tests/house

format: full
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: full
	$(BIN)/python tests/bench/run.py $(ARGS)

data: full
	$(BIN)/python tests/bench/fetch.py $(ARGS)

lock: full
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tools/lock.py $(ARGS)

clean:
	rm -rf .venv build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
