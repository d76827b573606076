#!/bin/bash
# SPDX-License-Identifier: MIT
# Real threads for longer than the suite: plain, with delays inside every operation, and under AddressSanitizer.
. "$(dirname "$0")/lib.sh"
seconds=15
[ -n "${CI_LONG:-}" ] && seconds=3600
with gcc
step "build" setup "$CI_BUILD/torture" --werror || finish
[ -x "$CI_BUILD/torture/quiesce" ] || { skip "the tool is not built"; finish; }
step "torture" "$CI_BUILD/torture/quiesce" torture --type=rcu --seconds=$seconds
for rate in 20 1000; do
	step "torture, $rate of 65536 accesses held up" \
		"$CI_BUILD/torture/tools/quiesce-torture" torture --type=rcu --seconds=$seconds --perturb=$rate
done
for sanitizer in address,undefined; do
	dir=$CI_BUILD/torture-${sanitizer%,*}
	step "build with -fsanitize=$sanitizer" setup "$dir" -Db_sanitize=$sanitizer -Db_lundef=false || continue
	step "torture with -fsanitize=$sanitizer" "$dir/quiesce" torture --type=rcu --seconds=$seconds
done
finish
