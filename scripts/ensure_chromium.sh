#!/bin/sh
# Make sure that the browser tests find a Chromium. Touches no network when one is there.
# Without one: as root on a Debian system install it; elsewhere say what to install.
# A missing browser is an error in CI; elsewhere the tests that need it are skipped.
for browser in ${CHROMIUM:-} chromium chromium-browser google-chrome-stable google-chrome; do
    command -v "$browser" >/dev/null && exit 0
done

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing chromium for the browser tests"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends chromium >/dev/null </dev/null
    command -v chromium >/dev/null && exit 0
fi

echo "no Chromium: the browser tests need one. On Debian or Ubuntu: apt-get install chromium." >&2
echo "One that is not on the path: set CHROMIUM=/path/to/chromium." >&2
[ "${CI:-}" != true ]
