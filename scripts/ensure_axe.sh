#!/bin/sh
# axe-core, which the browser tests ask about accessibility; fetched once, never part of the package.
set -eu
cd "$(dirname "$0")/.."
version=4.10.3
test -f ".tools/node_modules/axe-core/axe.min.js" && exit 0
if ! command -v npm >/dev/null; then
    echo "no npm: the accessibility tests are skipped (Debian: apt-get install npm)" >&2
    exit 0
fi
npm install --silent --no-save --no-audit --no-fund --prefix .tools "axe-core@$version" ||
    echo "axe-core could not be fetched: the accessibility tests are skipped" >&2
