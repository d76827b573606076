#!/bin/bash
# SPDX-License-Identifier: MIT
# The page of a quick `quiesce report`, checked in a browser; and the tests that draw, whose packages `make test` does not install.
. "$(dirname "$0")/lib.sh"
with gcc
plain_build product || { failed=1; finish; }
rm -rf "$CI_BUILD/report"
if ! python3 -c 'import matplotlib, jinja2' 2>/dev/null && ! /usr/bin/python3 -c 'import matplotlib, jinja2' 2>/dev/null; then
	skip "matplotlib or Jinja is not installed"
	finish
fi
count_meson "$plain" --no-rebuild "reports" "figures of hash tables"
step "quiesce report --quick" "$plain/tools/quiesce" report --quick --output "$CI_BUILD/report" || finish
out=$(mktemp)
python3 tests/report/browser.py "$CI_BUILD/report" | tee "$out"
read -r p f s <<<"$(sed -nE 's/^report: ([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' "$out")"
rm -f "$out"
passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1})) skipped=$((skipped + ${s:-0}))
finish
