#!/bin/bash
# SPDX-License-Identifier: MIT
# Other CPUs under qemu-user, and another libc: the library and the tests that need no other library.
. "$(dirname "$0")/lib.sh"
for ini in cross/*.ini; do
	name=$(basename "$ini" .ini)
	compiler=$(sed -n "s/^c = '\(.*\)'/\1/p" "$ini")
	wrapper=$(sed -n "s/^exe_wrapper = \['\([^']*\)'.*/\1/p" "$ini")
	if ! command -v "$compiler" >/dev/null || ! command -v "$wrapper" >/dev/null; then
		skip "$name: $compiler or $wrapper is not installed"
		continue
	fi
	more=()
	if [ "$name" = musl ] && step "cmocka for musl" scripts/ci/musl-cmocka.sh "$CI_BUILD/musl-cmocka"; then
		more=(--cross-file "$(realpath "$CI_BUILD/musl-cmocka/musl.ini")")
	fi
	step "$name builds" setup "$CI_BUILD/cross-$name" "unit linear" --cross-file "$ini" "${more[@]}" --werror -Dtool=disabled || continue
	count_suites "$CI_BUILD/cross-$name" "unit linear" --timeout-multiplier 10
done
step "the litmus files' AArch64 code is the compilers'" python3 tests/litmus/check_a64.py --include include
finish
