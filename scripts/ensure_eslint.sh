#!/bin/sh
# ESLint and Prettier, which check the explorer's scripts; fetched once into node_modules, never part of the package.
# In CI a missing npm is an error; elsewhere the scripts go unchecked, and this says so.
set -eu
cd "$(dirname "$0")/.."
cmp -s package-lock.json node_modules/.installed-lock.json && exit 0
if ! command -v npm >/dev/null; then
    echo "no npm: JavaScript is not checked (Debian: apt-get install npm)" >&2
elif npm ci --ignore-scripts --no-audit --no-fund --silent; then
    cp package-lock.json node_modules/.installed-lock.json
    exit 0
else
    echo "ESLint could not be fetched: JavaScript is not checked" >&2
fi
[ "${CI:-}" != true ]
