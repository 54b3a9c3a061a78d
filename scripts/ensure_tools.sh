#!/bin/sh
# Make sure that the tests find the programs they drive: Chromium, and Graphviz to read DOT back.
# Touches no network when both are there. What is missing is installed as root on a Debian system;
# elsewhere the script says what to install. In CI a missing one is an error, elsewhere its tests are skipped.
have_chromium() {
    for browser in ${CHROMIUM:-} chromium chromium-browser google-chrome-stable google-chrome; do
        command -v "$browser" >/dev/null && return 0
    done
    return 1
}

missing=
have_chromium || missing=chromium
command -v dot >/dev/null || missing="$missing graphviz"
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing for the tests: $missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086
    apt-get install -y -qq --no-install-recommends $missing >/dev/null </dev/null
    have_chromium && command -v dot >/dev/null && exit 0
fi

echo "missing: $missing. On Debian or Ubuntu: apt-get install $missing" >&2
echo "A Chromium that is not on the path: set CHROMIUM=/path/to/chromium." >&2
[ "${CI:-}" != true ]
