#!/bin/bash
# SPDX-License-Identifier: MIT
# liburcu's own tests and benchmarks, rebuilt with the face and with our objects; those of grace periods have to notice ones that do not wait.
. "$(dirname "$0")/lib.sh"
with gcc
step "build" plain_build || finish
length=--short
[ -n "${CI_LONG:-}" ] && length=--long
out=$CI_BUILD/liburcu.out

# suite NAME ARGUMENTS...: run it and add its counts to ours.
suite() {
	local name=$1 rc line
	shift
	python3 tests/liburcu/suite.py --build "$plain" "$@" 2>&1 | tee "$out" | sed -E "s/^FAILED +[0-9.]+ s +/$stage: FAILED: /"
	rc=${PIPESTATUS[0]}
	if [ "$rc" -eq 77 ]; then
		skip "$name: $(tail -1 "$out")"
		return
	fi
	line=$(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' "$out")
	read -r p f s <<<"${line:-0 1 0}"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

suite "the face" --library=face $length
suite "objects of its names" --library=objects $length
# One at a time, so that readers run beside updaters; those of its torture always notice, others in most seconds.
for of in face objects; do
	suite "$of, grace periods that do not wait" --library=broken --of=$of --jobs=1 --only='rcutorture_urcu_m* stress *'
done
finish
