# Everything from a clean clone: Python 3.11 or newer and make are all it takes.
# The first target that needs it makes .venv; after that nothing here needs a network.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Stamps of what is installed: the explorer alone, or everything.
EXPLORER := $(VENV)/explorer-installed
INSTALLED := $(VENV)/installed
EXTRAS := app,census,cluster,test,docs,dev
PACKAGES := tracer layouts app tokentrip.py pytest_tokentrip.py

.DEFAULT_GOAL := help
.PHONY: help setup app test tools fuzz lint lint-js types doctest docs site bench bench-ui load packages mutants licences constraints check-constraints clean

help:  ## say what there is to make
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' Makefile | expand -t 19

setup: $(INSTALLED)  ## install everything into .venv

$(BIN)/python:
	@python=$$(sh scripts/find_python.sh $(PYTHON)) && "$$python" -m venv $(VENV)

INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e

$(EXPLORER): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) '.[app]'
	@touch $@

$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) '.[$(EXTRAS)]'
	@touch $@ $(EXPLORER)

app: $(EXPLORER)  ## serve the explorer on this machine; installs what it needs alone
	$(BIN)/tokentrip app

# A file's tests stay together: what they share is made once. Browsers come last: two at a time keep two cores busy.
test: $(INSTALLED) tools  ## run the tests
	$(BIN)/pytest -m "not browser" --numprocesses=auto --dist=loadfile
	$(BIN)/pytest -m browser --numprocesses=2 --dist=loadfile

tools:
	@sh scripts/ensure_tools.sh
	@sh scripts/ensure_mermaid.sh
	@sh scripts/ensure_axe.sh

ifndef SEED
SEED := $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
endif

# A failure is repeated by make fuzz SEED=N, or for one test: pytest FILE --hypothesis-profile=fuzz --hypothesis-seed=N
fuzz: $(INSTALLED)  ## draw anew: 10,000 wrong inputs of each kind, and five times as many scenarios; repeat by SEED=N
	@echo "make fuzz SEED=$(SEED)"
	@$(BIN)/pytest -m "hypothesis and not browser" --hypothesis-profile=fuzz --hypothesis-seed=$(SEED) \
		--numprocesses=auto --dist=loadfile || { echo "to repeat: make fuzz SEED=$(SEED)"; exit 1; }

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
	@if command -v npm >/dev/null; then $(BIN)/tokentrip site docs/_build/html/site; \
	else echo "no npm: live meshes stay pictures (Debian: apt-get install nodejs npm)" >&2; fi

site: $(INSTALLED)  ## build the explorer as a folder of files into docs/_build/site
	$(BIN)/tokentrip site docs/_build/site

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

# Resolved by a Python of the oldest minor version, where there is one: pip reads markers for the one that runs it.
constraints:  ## write constraints.txt anew, from the newest releases, and check it
	sh scripts/constraints.sh "$$(sh scripts/find_python.sh python3.11 $(PYTHON))" write

check-constraints:  ## see that constraints.txt installs on every Python
	sh scripts/constraints.sh "$$(sh scripts/find_python.sh python3.11 $(PYTHON))" check

clean:  ## remove what was made
	rm -rf $(VENV) node_modules build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
