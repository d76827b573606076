#!/bin/bash
# SPDX-License-Identifier: MIT
# style.sh [BUILD] - checkpatch --strict and sparse on kernel/, for the packaged kernel that scripts/kernel-packages.sh unpacks.
# Exit status: 0; 1 a complaint, which is printed; 77 a tool or a package is not at hand.
set -u
cd "$(dirname "$0")/../.." || exit 1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/quiesce-kernels
build=$(realpath -m "${1:-build-kernel}")/sparse

for tool in perl sparse gcc make; do
	command -v $tool >/dev/null || { echo "style: skipped: $tool is not installed"; exit 77; }
done
scripts/kernel-packages.sh "$cache" standard source || exit

# Out of the kernel's tree a version has to be asked for; the API's names and typedef are those of the postings; a type in
# a table of types is a macro with whole statements.
ignore=LINUX_VERSION_CODE,CONSTANT_COMPARISON,NEW_TYPEDEFS,MACRO_ARG_UNUSED,MACRO_ARG_REUSE,COMPLEX_MACRO,EXPORT_SYMBOL,USLEEP_RANGE
ignore=$ignore,FILE_PATH_CHANGES,CONST_STRUCT
bad=0
out=$(find kernel -name '*.[ch]' -exec "$cache/source/scripts/checkpatch.pl" --strict --no-tree --terse --no-summary \
	--max-line-length=100 --ignore "$ignore" -f {} + 2>&1 | grep -E '^[^ ]+:[0-9]+: (ERROR|WARNING|CHECK)')
[ -z "$out" ] || { echo "$out"; bad=1; }

rm -rf "$build"
make -s -C kernel copy BUILD="$build" || exit 1
out=$("$cache/standard/kmake" "$build" -s modules QUIESCE_TESTS=1 W=1 C=2 2>&1)
[ -z "$out" ] || { echo "$out"; bad=1; }
exit $bad
