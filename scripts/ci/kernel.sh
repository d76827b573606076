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
step "a module of another project" tests/kernel/devel.sh
count_guests $short
finish
