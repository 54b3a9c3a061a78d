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
mkdir -p .tools/node_modules/axe-core
archive=$(npm pack --silent --pack-destination .tools "axe-core@$version") &&
    tar -xzf ".tools/$archive" -C .tools/node_modules/axe-core --strip-components=1 package/package.json \
        package/LICENSE package/axe.min.js && rm -f ".tools/$archive" ||
    echo "axe-core could not be fetched: its tests are skipped" >&2
