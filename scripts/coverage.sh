#!/bin/bash
# SPDX-License-Identifier: MIT
# Lines and branches of src/ that the unit and fault tests reach: scripts/coverage.sh [BUILD]
#
# A report without a limit.  The counts of a process are lost when it ends by _exit(), abort()
# or a signal, as most forked children here do: the figures are lower bounds.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build-coverage}

[ -f "$build/build.ninja" ] || meson setup "$build" -Db_coverage=true -Dbuildtype=debug -Dtool=disabled >/dev/null
ninja -C "$build" >/dev/null
find "$build" -name '*.gcda' -delete
meson test -C "$build" --no-rebuild --suite unit --suite faults 2>&1 | grep -E '^(Ok|Fail|Timeout|Skipped)' || true
python3 scripts/coverage.py "$build"
