#!/bin/bash
# SPDX-License-Identifier: MIT
# Every mutant on its killer.
. "$(dirname "$0")/lib.sh"
step "build" plain_build || finish
python3 tests/litmus/run.py --fetch tests/litmus/RU1.litmus >/dev/null || true
python3 scripts/mutants.py --build "$plain" | tee "$CI_BUILD/mutants.out"
read -r all killed left <<<"$(sed -nE 's/^([0-9]+) mutants, ([0-9]+) killed(, ([0-9]+) not run)?$/\1 \2 \4/p' \
	"$CI_BUILD/mutants.out")"
if [ -z "${all:-}" ]; then
	failed=$((failed + 1))
else
	left=${left:-0}
	passed=$((passed + killed)) skipped=$((skipped + left)) failed=$((failed + all - killed - left))
fi
finish
