#!/bin/bash
# SPDX-License-Identifier: MIT
# Every mutant on its killer; then random ones.  All changes are judged by the same draw, and a change of the sources does not move
# the mutants of other code: so a new survivor is in changed code, or a test has become weaker.  The long run draws other mutants
# for every commit.
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

random=10 seed=1 minutes=2 # mutants that take longer, because all tests of their room pass, are for the long run
[ -z "${CI_LONG:-}" ] || minutes=0 random=300 seed=$((16#$(git rev-parse --short=8 HEAD 2>/dev/null || echo 1)))
python3 scripts/mutants.py --build "$plain" --random "$random" --seed "$seed" --minutes "$minutes" | tee "$CI_BUILD/random-mutants.out"
step "random mutants of seed $seed" test "${PIPESTATUS[0]}" -eq 0
finish
