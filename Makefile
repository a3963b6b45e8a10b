# make run   set up, then start the agent on models that ship in packages
# make test  set up, then run every test
VENV := .venv
BIN := $(VENV)/bin
TORCH := torch==2.13.0
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null && echo $$p && break; done)
EXTRAS := server,local,test
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup run test test-unit test-long test-backends check format bench

help:
	@sed -n 's/^# //p' Makefile; echo "also: setup test-unit test-long test-backends check format bench"

setup: $(VENV)/.ready

# torch first: a loose requirement would bring a CUDA build of several GB where a CPU build is to be had.
$(VENV)/.ready: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed, and none was found on PATH."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet --editable '.[$(EXTRAS)]'
	@touch $@

run: setup
	@$(BIN)/python -m s2s.run serve $(ARGS)

test: setup
	$(BIN)/python -m pytest -m "not long" $(ARGS)

test-unit: setup
	$(BIN)/python -m pytest -m "not e2e and not long" $(ARGS)

test-long: setup
	$(BIN)/python -m pytest -m long --hypothesis-profile=random $(ARGS)

test-backends: setup
	$(BIN)/python tests/backends/run.py $(ARGS)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	@for bench in startup queue; do $(BIN)/python -m s2s.run bench $$bench --json --check $(ARGS) || exit 1; done
