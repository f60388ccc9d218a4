# Everything a developer does has a target here; `.ci/run` calls the same ones.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
# Hundreds of modules of tests, in each of four processes: to compile them anew each time is half of
# a quick run.
unexport PYTHONDONTWRITEBYTECODE
# Tests mostly wait for real processes, so that four at once fit two cores.
PYTEST := $(BIN)/python -m pytest --numprocesses 4 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help setup demo dashboard screenshots services adapters mcp-proofs test test-quick test-faults lint format bench constraints clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv, with everything a developer needs

# The build backend first and without isolation: so it is pinned like the rest.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) hatchling editables
	$(PIP) --no-build-isolation --editable '.[dev]'
	@touch $@

demo: $(STAMP) dashboard ## A handful of real jobs, a keeper killed in the middle, and the dashboard
	$(BIN)/python demo/demo.py

# Does nothing where what is built is built from what is in web/.
dashboard: $(STAMP) ## Build the dashboard into the package
	$(BIN)/python hatch_build.py

screenshots: $(STAMP) dashboard ## The pictures in docs/screenshots
	scripts/browser.sh
	$(BIN)/python demo/screenshots.py

services: $(STAMP) ## Servers that tests start (redis-server, PostgreSQL, PgBouncer)
	scripts/services.sh redis postgres pgbouncer

adapters: ## The frameworks that there are adapters for, in .adapters-venv
	PYTHON=$(PYTHON) scripts/adapters.sh

mcp-proofs: $(STAMP) ## Others' tests and clients of MCP against our server
	scripts/mcp_conformance.sh

# What cannot be installed is missed by the tests that need it: they fail and say so. The others run.
test: $(STAMP) ## The whole suite, with short campaigns
	-$(BIN)/python hatch_build.py
	-scripts/browser.sh
	-scripts/services.sh redis postgres pgbouncer
	-PYTHON=$(PYTHON) scripts/adapters.sh
	$(PYTEST) -m "not faults"

test-quick: $(STAMP) ## Under a minute
	$(PYTEST) -m "not slow and not faults"

# On a disk: what is written and not yet answered for is there for longer, and a kill finds it.
test-faults: export TMPDIR ?= /var/tmp
test-faults: $(STAMP) ## The long campaigns
	-scripts/services.sh redis postgres pgbouncer
	-PYTHON=$(PYTHON) scripts/adapters.sh
	$(PYTEST) -m faults --timeout 3600

lint: $(STAMP) adapters ## Style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/pyright --project examples
	$(BIN)/lint-imports --no-logo
	$(BIN)/python hatch_build.py --check

format: $(STAMP) ## Let ruff write what it can
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

# `make bench ARGS=peers` measures that part alone; `ARGS=--help` lists them.
bench: $(STAMP) ## Measure, as ratios
	$(BIN)/python -m bench $(ARGS)

constraints: ## Pin the newest versions anew, in constraints.txt
	PYTHON=$(PYTHON) scripts/constraints.sh

clean: ## Remove all that these targets made
	rm -rf $(VENV) .adapters-venv .bench-venv .services .pytest_cache .hypothesis .ruff_cache .import_linter_cache build dist
	rm -rf web/node_modules web/dist web/.building src/backburner/serve/static
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
