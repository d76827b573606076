#!/bin/bash
# SPDX-License-Identifier: MIT
# devel.sh - build the example module against what make devel installs, as another project would; and the modules for a
# kernel that has hazard pointers of its own, for which DKMS must find an empty hazptr.ko.
# Exit status: 0; 1 it does not build, or does not name the modules that it needs; 77 no package.
set -u
cd "$(dirname "$0")/../.." || exit 1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/quiesce-kernels
scripts/kernel-packages.sh "$cache" standard || exit

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make -s -C kernel copy BUILD="$work/build" && "$cache/standard/kmake" "$work/build" -s modules || exit 1
make -s -C kernel devel BUILD="$work/build" DESTDIR="$work/usr/src" || exit 1
devel=$work/usr/src/quiesce-devel
cp -r "$devel/examples" "$work/other" || exit 1
"$cache/standard/kmake" "$work/other" -s modules W=1 KCFLAGS=-Werror KBUILD_EXTRA_SYMBOLS="$devel/Module.symvers" QUIESCE="$devel" || exit 1
needs=$(modinfo -F depends "$work/other/limits_example.ko" | tr , '\n' | sort | tr '\n' ' ')
[ "$needs" = "hazptr shazptr " ] || { echo "devel: the example needs '$needs'"; exit 1; }

make -s -C kernel copy BUILD="$work/own" && "$cache/standard/kmake" "$work/own" -s modules OWN_HAZPTR=yes || exit 1
[ -e "$work/own/hazptr.ko" ] && [ -e "$work/own/shazptr.ko" ] || { echo "devel: no modules where the kernel has its own"; exit 1; }
! grep -w hazptr "$work/own/Module.symvers" || { echo "devel: hazptr.ko exports what the kernel has itself"; exit 1; }
echo "devel: limits_example.ko for $(cat "$cache/standard/release")"
