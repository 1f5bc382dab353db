# Everything runs in .venv, which is made from requirements.lock on first use and again when the lock
# or pyproject.toml changes. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# Small matrices: BLAS threads only compete with the two test workers.
export OMP_NUM_THREADS ?= 1
# Use the pyright release that the lock pins, never a newer one found on the network.
export PYRIGHT_PYTHON_FORCE_VERSION := $(shell sed -n 's/^pyright==\([^ ]*\).*/\1/p' requirements.lock)
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench oracle docs clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

demo: $(VENV)/.installed ## learn a prior from past runs and race it against a fixed GP
	$(BIN)/metaprior demo

test: $(VENV)/.installed ## the default test suite
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

lint: $(VENV)/.installed ## formatting, lint rules and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

oracle: $(VENV)/.oracle ## tests against GPyTorch and BoTorch (installs torch)
	$(BIN)/python -m pytest -m oracle

bench: $(VENV)/.oracle ## timings and regret against GPyTorch and BoTorch (installs torch)
	mkdir -p build
	$(BIN)/python -m benchmarks --figure build/cost.png

docs: $(VENV)/.installed ## the documentation, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean: ## remove what the other targets made, .venv included
	rm -rf $(VENV) build dist site .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "metaprior needs Python 3.11 or newer, but '$(PYTHON)' is missing or older." \
	    "Name another one: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet -r requirements.lock
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# torch comes first and by its exact version, so that no resolver ever picks another build of it.
$(VENV)/.oracle: requirements-oracle.lock $(VENV)/.installed
	$(PIP) install --quiet "$$(grep '^torch==' requirements-oracle.lock)"
	$(PIP) install --quiet -r requirements-oracle.lock
	@touch $@
