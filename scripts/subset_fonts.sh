#!/bin/sh
# Make layouts/svg/fonts anew: Inter, cut to the letters and signs that pictures use, so that a PNG or a GIF
# has its text on a host without fonts. Needs npm and pyftsubset (pip install fonttools).
set -eu
cd "$(dirname "$0")/.."
version=0.4.2
signs="U+0020-007E,U+00A0-017F,U+0192,U+02C6-02DD,U+0370-03FF,U+2010-2027,U+2030-205E,U+2070-209F,U+20AC,U+2122"
signs="$signs,U+2190-21FF,U+2200-22FF,U+2300-23FF,U+25A0-25FF,U+2713,U+2717"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
archive=$(npm pack --silent --pack-destination "$work" "@expo-google-fonts/inter@$version")
tar -xzf "$work/$archive" -C "$work"
for style in 400Regular 600SemiBold; do
    pyftsubset "$work/package/$style/Inter_$style.ttf" --unicodes="$signs" --no-hinting \
        --layout-features=kern,liga,tnum,ccmp,mark --output-file="layouts/svg/fonts/Inter-${style#?00}.ttf"
done
sed 's/[ \t]*$//' "$work/package/LICENSE_FONT" >layouts/svg/fonts/OFL.txt
