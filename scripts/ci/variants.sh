#!/bin/bash
# SPDX-License-Identifier: MIT
# gcc at other levels of optimisation, with link-time optimisation, and without optional packages.
. "$(dirname "$0")/lib.sh"
variant() {
	local name=$1
	shift
	step "$name builds" setup "$CI_BUILD/variant-$name" unit --werror -Ddebug=false "$@" || return
	# A compiler's mistake shows in one form of a test as in another; before a release all of them run.
	local other='full fences|without rseq|by CPU' tests
	[ -z "${CI_LONG:-}" ] || other='none of them'
	mapfile -t tests < <(meson test -C "$CI_BUILD/variant-$name" --no-rebuild --list --suite unit 2>/dev/null |
		sed -n 's/^[^/]* \/ //p' | grep -vE ", ($other)\$")
	count_meson "$CI_BUILD/variant-$name" --no-rebuild --suite unit "${tests[@]}"
}
with gcc
variant O0 -Doptimization=0 -Dtool=disabled -Dpeers=disabled
variant lto-O3 -Db_lto=true -Doptimization=3 -Dtool=disabled
[ -z "${CI_LONG:-}" ] || variant small -Dtool=disabled -Dbuildtype=minsize
finish
