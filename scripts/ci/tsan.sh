#!/bin/bash
# SPDX-License-Identifier: MIT
# ThreadSanitizer, no suppression file; in the long run with both compilers, which instrument the same accesses.
. "$(dirname "$0")/lib.sh"
# Tests that fork start threads in the child.
export TSAN_OPTIONS="die_after_fork=0 halt_on_error=1 second_deadlock_stack=1 history_size=4"
suites="unit linear cases liburcu examples"
# The checks of the forms for debugging would put orderings between threads that the others lack.
without "$fences|$cpp_twice, debug"
for compiler in gcc ${CI_LONG:+clang-19}; do
	with "$compiler" || { skip "$compiler is not installed"; continue; }
	step "build with $compiler" setup "$CI_BUILD/tsan-$compiler" "$suites" --werror -Db_sanitize=thread -Db_lundef=false \
		-Dtool=disabled || continue
	count_suites "$CI_BUILD/tsan-$compiler" "$suites" --timeout-multiplier 3
done
finish
