#!/bin/bash
# SPDX-License-Identifier: MIT
# liburcu's own tests and benchmarks, rebuilt with our headers and with our objects; tests of grace periods have to fail with a library
# that does not wait.  Then processes whose host and plug-in are built for different flavours and libraries.
. "$(dirname "$0")/lib.sh"
with gcc
step "build" plain_build --suites liburcu product || finish
length=--short
[ -n "${CI_LONG:-}" ] && length=--long
out=$CI_BUILD/liburcu.out

# counted NAME SCRIPT ARGUMENTS...: run it and add its counts to the totals.
counted() {
	local name=$1 script=$2 rc line
	shift 2
	python3 "tests/liburcu/$script" --build "$plain" "$@" 2>&1 | tee "$out" | sed -E "s/^FAILED +[0-9.]+ s +/$stage: FAILED: /"
	rc=${PIPESTATUS[0]}
	if [ "$rc" -eq 77 ]; then
		skip "$name: $(tail -1 "$out")"
		return
	fi
	line=$(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' "$out")
	read -r p f s <<<"${line:-0 1 0}"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

counted "the face" suite.py --library=face $length
counted "objects of its names" suite.py --library=objects $length
# One at a time, so that readers run beside updaters; those of its torture always notice, others in most seconds.
for of in face objects; do
	counted "$of, grace periods that do not wait" suite.py --library=broken --of=$of --jobs=1 --only='rcutorture_urcu_m* stress *'
done
counted "hosts and plug-ins" mix.py
finish
