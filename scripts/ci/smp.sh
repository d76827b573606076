#!/bin/bash
# SPDX-License-Identifier: MIT
# The userspace library in a guest of which a few CPUs with high numbers are online: a minute.  The long run takes hours.
. "$(dirname "$0")/lib.sh"
with gcc
if [ -n "${CI_LONG:-}" ]; then
	form=--seconds=10 suites="unit conformance linear torture liburcu"
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
count_guests --smp "$form" --product "$plain"
finish
