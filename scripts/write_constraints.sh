#!/bin/sh
# Write constraints.txt: what a fresh install of all extras holds. Arguments: a Python, the extras.
set -eu
venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
"$1" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check ".[$2]"
{
    echo "# The versions that CI runs. Written by make constraints."
    "$venv/bin/python" -m pip freeze --exclude tokentrip
} >constraints.txt
