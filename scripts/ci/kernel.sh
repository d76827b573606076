#!/bin/bash
# SPDX-License-Identifier: MIT
# The kernel modules, on packaged kernels in QEMU: about five minutes.
. "$(dirname "$0")/lib.sh"
short=--short
[ -n "${CI_LONG:-}" ] && short=
packages()
{
	# Kernels that cannot be downloaded skip the stage; other errors fail it.
	scripts/kernel-packages.sh "" standard rt source
}
step "packages" packages || finish
step "checkpatch and sparse" tests/kernel/style.sh "$CI_BUILD/kernel"
litmus()
{
	python3 tests/litmus/run.py --fetch tests/litmus/RU1.litmus >/dev/null || return
	python3 tests/kernel/litmus.py --quiet
}
step "litmus tests in the kernel's form" litmus
step "DKMS" tests/kernel/dkms.sh
# run.py prints its own counts.
out=$CI_BUILD/kernel-run.log
python3 tests/kernel/run.py $short --build "$CI_BUILD/kernel" --logs "$CI_BUILD/kernel/logs" 2>&1 | tee "$out"
status=${PIPESTATUS[0]}
if [ "$status" -eq 77 ]; then
	skip "$(tail -n 1 "$out")"
	finish
fi
line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$out" | tail -n 1)
read -r p f s <<<"$(sed -E 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 \4/' <<<"$line")"
passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1})) skipped=$((skipped + ${s:-0}))
finish
