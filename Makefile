# Every target sets up .venv by itself; nothing else is needed but Python 3.11 or newer.
.DEFAULT_GOAL := help
SHELL := /bin/sh
BIN := .venv/bin
# Scripts in a virtual environment hold its absolute path: a moved checkout needs a new one.
READY := .venv/ready-$(shell pwd | cksum | cut -d ' ' -f 1)

.PHONY: help setup demo serve test lint format lock openapi bench clean

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1|/p' Makefile | awk -F '|' '{printf "%-16s%s\n", $$1, $$2}'

setup: $(READY) ## Make .venv with everything in it

$(READY): requirements-dev.lock pyproject.toml
	@.ci/setup
	@touch $@

demo: $(READY) ## Examine a bundled set of conversations and show what was found
	@$(BIN)/forensic demo

serve: $(READY) ## Run the whole service on this machine until Ctrl-C
	@$(BIN)/forensic serve

test: $(READY) ## Run all tests
	@$(BIN)/pytest

lint: $(READY) ## Check style, types and layers
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

format: $(READY) ## Format the code
	@$(BIN)/ruff check --fix . && $(BIN)/ruff format .

lock: ## Lock the newest dependencies anew (needs uv)
	@.ci/lock

openapi: $(READY) ## Write openapi/openapi.json from the code
	@$(BIN)/python -m app.api.openapi > openapi/.new.json && mv openapi/.new.json openapi/openapi.json

bench: $(READY) ## Run the benchmarks
	@failed=0; for each in ingest judging pipeline storage; do $(BIN)/python -m benchmarks.$$each || failed=1; done; exit $$failed

clean: ## Remove what set-up and tests made
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
