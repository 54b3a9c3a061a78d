#!/bin/sh
# Print a Python that is new enough: the one asked for, else the newest on the path.
for python in "$@" python3.14 python3.13 python3.12 python3.11; do
    # A version manager's shim may exist and yet run nothing, so ask each one.
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        command -v "$python"
        exit 0
    fi
done
echo "tokentrip needs Python 3.11 or newer; found none. Try: make PYTHON=/path/to/python3" >&2
exit 1
