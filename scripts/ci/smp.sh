#!/bin/bash
# SPDX-License-Identifier: MIT
# The userspace library in a guest of which a few CPUs with high numbers are online: a minute.  The long run takes hours.
. "$(dirname "$0")/lib.sh"
with gcc
if [ -n "${CI_LONG:-}" ]; then
	form=--seconds=60 suites="unit conformance"
else
	form=--short suites=
fi
packages()
{
	# A kernel that cannot be downloaded skips the stage; other errors fail it.
	scripts/kernel-packages.sh "" standard
}
step "packages" packages || finish
step "build" plain_build --suites "$suites" product tools/quiesce-torture tests/torture/many_threads || finish
# run.py prints its own counts.
out=$CI_BUILD/smp-run.log
python3 tests/kernel/run.py --smp "$form" --product "$plain" --build "$CI_BUILD/smp" --logs "$CI_BUILD/smp/logs" 2>&1 | tee "$out"
status=${PIPESTATUS[0]}
if [ "$status" -eq 77 ]; then
	skip "$(tail -n 1 "$out")"
	finish
fi
line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$out" | tail -n 1)
read -r p f s <<<"$(sed -E 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 \4/' <<<"$line")"
passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1})) skipped=$((skipped + ${s:-0}))
finish
