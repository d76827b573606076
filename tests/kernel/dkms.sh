#!/bin/bash
# SPDX-License-Identifier: MIT
# dkms.sh - add and build the modules by DKMS for a packaged kernel, in a directory of its own.
# Exit status: 0; 1 they do not build; 77 no DKMS or no package.
set -u
cd "$(dirname "$0")/../.." || exit 1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/quiesce-kernels
command -v dkms >/dev/null || { echo "dkms: skipped: dkms is not installed"; exit 77; }
scripts/kernel-packages.sh "$cache" standard || exit

release=$(cat "$cache/standard/release")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/src" "$work/tree"
make -s -C kernel dkms DESTDIR="$work/src" || exit 1
package=$(basename "$work"/src/quiesce-*)
run()
{
	dkms "$1" "${package%-*}/${package##*-}" --sourcetree "$work/src" --dkmstree "$work/tree" "${@:2}" >"$work/log" 2>&1 && return 0
	cat "$work/log" "$work"/tree/*/*/build/make.log 2>/dev/null
	return 1
}
run add || exit 1
run build -k "$release" --arch x86_64 --kernelsourcedir "$cache/standard/root/usr/src/linux-headers-$release" || exit 1
for module in shazptr hazptr; do
	[ -n "$(find "$work/tree" -name "$module.ko*" -print -quit)" ] || { echo "dkms: no $module.ko"; exit 1; }
done
echo "dkms: $package for $release"
