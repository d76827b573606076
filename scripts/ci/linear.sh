#!/bin/bash
# SPDX-License-Identifier: MIT
# Histories of containers, recorded while they are resized, checked by porcupine.
. "$(dirname "$0")/lib.sh"
operations=${1:-50000}
[ -n "${CI_LONG:-}" ] && operations=1000000
with gcc
step "build" plain_build recorders || finish
out=$CI_BUILD/linear.out
python3 tests/linear/run.py --build "$plain" --operations "$operations" 2>&1 | tee "$out"
if [ "${PIPESTATUS[0]}" -eq 77 ]; then
	skip "$(tail -1 "$out")"
else
	line=$(sed -nE 's/^linear: ([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$out")
	if [ -z "$line" ]; then
		failed=$((failed + 1))
	else
		passed=$((passed + ${line% *})) failed=$((failed + ${line#* }))
	fi
fi
finish
