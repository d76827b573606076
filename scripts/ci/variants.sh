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
variant O0 -Doptimization=0 -Dtool=disabled -Dpeers=disabled
variant lto-O3 -Db_lto=true -Doptimization=3 -Dtool=disabled
[ -z "${CI_LONG:-}" ] || variant small -Dtool=disabled -Dbuildtype=minsize
finish
