#!/bin/bash
# SPDX-License-Identifier: MIT
# Litmus verdicts by herd7, unpacked beside the system if need be, and models by spin.
. "$(dirname "$0")/lib.sh"
python3 tests/litmus/run.py --fetch | tee "$CI_BUILD/litmus.out"
rc=${PIPESTATUS[0]}
count=$(sed -nE 's/^litmus: ([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$CI_BUILD/litmus.out")
if [ "$rc" -eq 77 ]; then
	skip "litmus verdicts: herd7 is out of reach"
elif [ -z "$count" ]; then
	failed=$((failed + 1))
else
	passed=$((passed + ${count% *})) failed=$((failed + ${count#* }))
fi
finish
