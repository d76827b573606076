#!/bin/bash
# SPDX-License-Identifier: MIT
# AddressSanitizer with leaks, and UndefinedBehaviorSanitizer; in the long run with both compilers.  With these checks gcc compiles templates
# for several times as long as clang.
# The quarantine makes a use after free visible: keep it large.
. "$(dirname "$0")/lib.sh"
export ASAN_OPTIONS="quarantine_size_mb=512 detect_stack_use_after_return=1 strict_string_checks=1 abort_on_error=0"
export UBSAN_OPTIONS="print_stacktrace=1"
suites="unit linear cases liburcu examples"
# The forms for debugging have the code of the others, and more.
without "$fences|$cpp_twice, (gcc|clang)"
for compiler in clang-19 ${CI_LONG:+gcc}; do
	with "$compiler" || { skip "$compiler is not installed"; continue; }
	# With gcc the flags of an addition of a thread-local offset are tested for zero, but the linker may
	# turn that addition into one that sets no flags, which causes false reports of null pointers.
	relaxed=
	[ "$compiler" = gcc ] && relaxed=" -fno-sanitize=null"
	step "build with $compiler" setup "$CI_BUILD/asan-$compiler" "$suites" --werror -Db_sanitize=address,undefined \
		-Db_lundef=false -Dtool=disabled -Dc_args="-fno-sanitize-recover=all$relaxed" || continue
	count_suites "$CI_BUILD/asan-$compiler" "$suites" --timeout-multiplier 3
done
finish
