#!/bin/bash
# SPDX-License-Identifier: MIT
# Litmus verdicts by herd7, unpacked beside the system if need be, and models by spin.
. "$(dirname "$0")/lib.sh"
count() { # NAME COMMAND...: one that closes with "NAME: P passed, F failed"
	local name=$1 out=$CI_BUILD/$1.out rc line
	shift
	"$@" 2>&1 | tee "$out"
	rc=${PIPESTATUS[0]}
	line=$(sed -nE "s/^$name: ([0-9]+) passed, ([0-9]+) failed.*/\1 \2/p" "$out")
	if [ "$rc" -eq 77 ]; then
		skip "$name: $(tail -1 "$out")"
	elif [ -z "$line" ]; then
		failed=$((failed + 1))
	else
		passed=$((passed + ${line% *})) failed=$((failed + ${line#* }))
	fi
}
count litmus python3 tests/litmus/run.py --fetch
count model python3 tests/model/run.py
finish
