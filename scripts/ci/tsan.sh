#!/bin/bash
# SPDX-License-Identifier: MIT
# ThreadSanitizer, both compilers, no suppression file.
. "$(dirname "$0")/lib.sh"
# Tests that fork start threads in the child.
export TSAN_OPTIONS="die_after_fork=0 halt_on_error=1 second_deadlock_stack=1 history_size=4"
for compiler in gcc clang-19; do
	with "$compiler" || { skip "$compiler is not installed"; continue; }
	suites="unit linear cases liburcu examples"
	# The second compiler instruments the same code: the tests of each primitive show whether it does so correctly.  The long run has all.
	[ "$compiler" = gcc ] || [ -n "${CI_LONG:-}" ] || suites=unit
	step "build with $compiler" setup "$CI_BUILD/tsan-$compiler" "$suites" --werror -Db_sanitize=thread -Db_lundef=false \
		-Dtool=disabled || continue
	count_suites "$CI_BUILD/tsan-$compiler" "$suites" --timeout-multiplier 3
done
finish
