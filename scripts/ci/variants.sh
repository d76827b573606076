#!/bin/bash
# SPDX-License-Identifier: MIT
# gcc at other levels of optimisation, with link-time optimisation, and without optional packages.
. "$(dirname "$0")/lib.sh"
variant() {
	local name=$1
	shift
	step "$name builds" setup "$CI_BUILD/variant-$name" unit --werror -Ddebug=false "$@" || return
	count_suites "$CI_BUILD/variant-$name" unit
}
with gcc
# A compiler's mistake shows in one form of a test as in another; before a release all of them run.
others='(?<!debug), (full fences|without rseq|by CPU)$'
without "$others|$cpp_twice, gcc"
variant O0 -Doptimization=0 -Dtool=disabled -Dpeers=disabled
without "$others|$cpp_twice, debug"
variant lto-O3 -Db_lto=true -Doptimization=3 -Dtool=disabled
[ -z "${CI_LONG:-}" ] || variant small -Dtool=disabled -Dbuildtype=minsize
finish
