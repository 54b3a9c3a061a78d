#!/bin/sh
# Mermaid, which the browser tests ask whether our diagrams parse; fetched once, never part of the package.
set -eu
cd "$(dirname "$0")/.."
version=11.12.0
test -f ".tools/node_modules/mermaid/dist/mermaid.min.js" && exit 0
if ! command -v npm >/dev/null; then
    echo "no npm: the Mermaid tests are skipped (Debian: apt-get install npm)" >&2
    exit 0
fi
# The bundle stands alone: the package is unpacked without what it would be built from.
mkdir -p .tools/node_modules/mermaid
archive=$(npm pack --silent --pack-destination .tools "mermaid@$version") &&
    tar -xzf ".tools/$archive" -C .tools/node_modules/mermaid --strip-components=1 package/package.json \
        package/LICENSE package/dist/mermaid.min.js && rm -f ".tools/$archive" ||
    echo "Mermaid could not be fetched: its tests are skipped" >&2
