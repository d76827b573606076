#!/bin/sh
# SPDX-License-Identifier: MIT
# Make a static library whose internal names cannot clash with a program's:
# link the objects into one, then make its hidden symbols local.  Objects that clang has
# left to link-time optimisation become machine code first, as not every linker takes them.
#
#	static-library.sh OUTPUT OBJCOPY AR COMPILER... -- OBJECT...
set -eu
output=$1 objcopy=$2 ar=$3
shift 3
compiler=
while [ "$1" != -- ]; do
	compiler="$compiler $1"
	shift
done
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ "$(head -c 2 "$1")" = BC ]; then
	for object; do
		shift
		# shellcheck disable=SC2086 # a compiler may be several words
		$compiler -x ir -O2 -fPIC -c -o "$work/$(basename "$object")" "$object"
		set -- "$@" "$work/$(basename "$object")"
	done
fi
# shellcheck disable=SC2086 # a compiler may be several words
$compiler -r -nostdlib -o "$work/libquiesce.o" "$@"
"$objcopy" --localize-hidden "$work/libquiesce.o"
rm -f "$output"
"$ar" crsD "$output" "$work/libquiesce.o"
