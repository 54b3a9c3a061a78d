#!/bin/sh
# Write constraints.txt anew and check it (or `check` alone). Arguments: a Python, and what to do.
# In an environment of its own: the one of the project may not be there, or may not install.
set -eu
cd "$(dirname "$0")/.."
venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
"$1" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade pip packaging
"$venv/bin/python" scripts/constraints.py "$2"
