#!/bin/bash
# SPDX-License-Identifier: MIT
# The tests, built with clang at -O3; and the libraries with link-time optimisation.
. "$(dirname "$0")/lib.sh"
with clang-19 || { skip "clang-19 is not installed"; finish; }
# Left out: tests of `sources`, which choose their compilers themselves, of `formats`, which no compiler changes, and slow tests, which check
# tables that do not change.  In the short run also what the stage `test` does with gcc, and whose result is not the compiler's: peers, the
# library for ThreadSanitizer, what is installed; and the C++ tests for debugging, which asan.sh has clang compile.
without "$fences|$cpp_twice, debug|^(peers|install and consumers|start)$"
more=(-Dtsan=disabled -Dpeers=disabled)
[ -z "${CI_LONG:-}" ] || more=()
step "build with clang" setup "$CI_BUILD/clang" "build unit" --werror -Doptimization=3 "${more[@]}" || finish
count_suites "$CI_BUILD/clang" "build unit" --no-suite slow --no-suite sources --no-suite formats
step "shared fields are not stored plainly" python3 scripts/check-plain.py .
libraries()
{
	local dir=$CI_BUILD/clang-lto
	rm -rf "$dir"
	meson setup "$dir" --werror -Db_lto=true -Dtool=disabled -Dpeers=disabled >"$dir.log" 2>&1 &&
		ninja -C "$dir" src/libquiesce.a >>"$dir.log" 2>&1 && return 0
	tail -40 "$dir.log"
	return 1
}
step "libraries with link-time optimisation" libraries &&
	count_meson "$CI_BUILD/clang-lto" "exported symbols" "layout and copies" "rcu, light fences"
finish
