# Everything from a clean clone: Python 3.11 or newer and make are all it takes.
# The first target that needs it makes .venv; after that nothing here needs a network.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
EXTRAS := app,census,cluster,test,docs,dev
PACKAGES := tracer layouts app pytest_tokentrip.py

.DEFAULT_GOAL := help
.PHONY: help setup app test tools fuzz properties lint lint-js types doctest docs bench bench-ui load packages mutants licences constraints clean

help:  ## say what there is to make
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14

setup: $(INSTALLED)  ## install everything into .venv

$(INSTALLED): pyproject.toml constraints.txt
	@python=$$(sh scripts/find_python.sh $(PYTHON)) && "$$python" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]' -c constraints.txt
	@touch $@

app: $(INSTALLED)  ## serve the explorer on this machine
	$(BIN)/tokentrip app

# A file's tests stay together: what they share is made once. Browsers come last: two at a time keep two cores busy.
test: $(INSTALLED) tools  ## run the tests
	$(BIN)/pytest -m "not browser" --numprocesses=auto --dist=loadfile
	$(BIN)/pytest -m browser --numprocesses=2 --dist=loadfile

tools:
	@sh scripts/ensure_tools.sh
	@sh scripts/ensure_mermaid.sh
	@sh scripts/ensure_axe.sh

fuzz: $(INSTALLED)  ## feed 10,000 wrong inputs of each kind to everything that reads one
	$(BIN)/pytest tests/fuzz --hypothesis-profile=fuzz

properties: $(INSTALLED)  ## run the property tests on many more scenarios
	$(BIN)/pytest -m "not browser" --ignore=tests/fuzz --hypothesis-profile=fuzz

lint: $(INSTALLED) lint-js  ## style, formatting, types, import order
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy $(PACKAGES)
	$(BIN)/lint-imports --no-cache --no-logo

lint-js:  ## the same for the explorer's scripts, where there is Node.js
	@sh scripts/ensure_eslint.sh
	@if cmp -s package-lock.json node_modules/.installed-lock.json; then npm run --silent lint; fi

doctest: $(INSTALLED)  ## run the examples in docstrings
	$(BIN)/pytest --doctest-modules $(PACKAGES)

docs: $(INSTALLED)  ## build the site into docs/_build
	$(BIN)/sphinx-build --quiet -W --keep-going -b html docs docs/_build/html

bench: $(INSTALLED)  ## ratios of the engine against named baselines
	$(BIN)/python -m benchmarks

bench-ui: $(INSTALLED) tools  ## frames and times of the explorer in a browser
	$(BIN)/python -m benchmarks.explorer

packages: $(INSTALLED)  ## install the wheel and the sdist in clean environments, on every Python here
	$(BIN)/python scripts/check_packages.py

mutants: $(INSTALLED)  ## change the engine's core one operator at a time, and see a test fail
	$(BIN)/python -m benchmarks.mutants

licences: $(INSTALLED)  ## what an installation brings along, and under which licence
	@$(BIN)/python scripts/licences.py

load: $(INSTALLED)  ## serve on loopback to 200 users for a minute, and kill a worker
	$(BIN)/python -m benchmarks.load --kill

constraints:  ## write constraints.txt anew, from the newest releases
	sh scripts/write_constraints.sh "$$(sh scripts/find_python.sh $(PYTHON))" '$(EXTRAS)'

clean:  ## remove what was made
	rm -rf $(VENV) node_modules build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
