#!/bin/bash
# SPDX-License-Identifier: MIT
# Every mutant on its killer; in the long run then random ones, others for every commit.  (make random-mutants draws some at any time.)
. "$(dirname "$0")/lib.sh"
step "build" plain_build --suites sim || finish
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

if [ -n "${CI_LONG:-}" ]; then
	seed=$((16#$(git rev-parse --short=8 HEAD 2>/dev/null || echo 1)))
	python3 scripts/mutants.py --build "$plain" --random 300 --seed "$seed" --minutes 0 | tee "$CI_BUILD/random-mutants.out"
	step "random mutants of seed $seed" test "${PIPESTATUS[0]}" -eq 0
fi
finish
