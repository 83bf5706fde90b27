# `make run` shows Gradvet at work, `make test` checks everything. Both set up what they need in .venv and
# node_modules, once: each step leaves a file behind, and is done again only when what it depends on changes.

VENV := .venv
BIN := $(VENV)/bin
PYTHON := $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo "$$python" && break; done)

.DELETE_ON_ERROR:
.PHONY: run test check lint types contracts tests fuzz client docs wild mutate vsix vscode editors pictures clean

# How many random programs `make fuzz` runs, and the seed of the first.
N := 1000
SEED := 0

run: $(VENV)/installed
	@# There are findings, which is exit status 1 for scripts; here it is what should happen.
	$(BIN)/gradvet check examples/ || test $$? -eq 1

test: check tests

check: lint types contracts client

lint: $(VENV)/ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/ready
	$(BIN)/mypy

contracts: $(VENV)/ready
	$(BIN)/lint-imports --no-logo --no-cache

tests: $(VENV)/ready client/out/extension.js
	$(BIN)/python -m pytest -n auto

fuzz: $(VENV)/ready
	$(BIN)/python -m tools.fuzz $(N) --seed $(SEED)

client: client/out/extension.js
	npm run --silent check

docs: $(VENV)/ready
	$(BIN)/python -m tools.catalogue
	$(BIN)/python -m tools.readme

# Both download pinned packages into packages/, to be looked at and never to be run.
wild: $(VENV)/installed
	$(BIN)/python -m tools.wild

mutate: $(VENV)/installed
	$(BIN)/python -m tools.mutate

# The extension's packages, one for each platform, into dist/.
vsix: $(VENV)/installed node_modules/installed
	npm run --silent check
	$(BIN)/python -m tools.vsix

# Into the VS Code of this machine, with a package for just this machine.
vscode: $(VENV)/installed node_modules/installed
	$(BIN)/python -m tools.vsix.install

# The editors that the tests drive, into .cache/editors; `make tests` does it too.
editors: $(VENV)/installed node_modules/installed
	$(BIN)/python -m tools.editors

# What the README and the walkthrough show of VS Code.
pictures: $(VENV)/ready node_modules/installed
	$(BIN)/python -m tools.pictures

clean:
	rm -rf $(VENV) node_modules client/out dist .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find server tests tools examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Gradvet needs Python 3.10 or newer; none was found."; \
		echo "On Debian and Ubuntu: sudo apt install python3 python3-venv"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) has no venv module. On Debian and Ubuntu: sudo apt install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/ready: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --disable-pip-version-check --editable ".[dev]"
	@touch $@ $(VENV)/installed

node_modules/installed: package.json package-lock.json
	@command -v npm >/dev/null || { \
		echo "The editor extension needs Node 20 or newer, with npm; npm was not found."; \
		echo "On Debian and Ubuntu: sudo apt install nodejs npm"; exit 1; }
	npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

client/out/extension.js: node_modules/installed client/tsconfig.json $(wildcard client/src/*.ts)
	npm run --silent compile
	@touch $@
