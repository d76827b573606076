#!/bin/bash
# SPDX-License-Identifier: MIT
# Debian packages of the commit: built, checked by lintian, then installed and used in a fresh root, which is removed again.
#
#	deb.sh BUILD [--no-root]	a configured build directory; the packages come into BUILD/deb
#
# The root needs root's rights and a mirror of Debian; without them, or with --no-root, it is left out, with a message.
set -eu
cd "$(dirname "$0")/.."
. scripts/fresh-root.sh
build=$1 fresh=${2:-}
meson=${MESON:-meson}
version=$("$meson" introspect --projectinfo "$build" | sed 's/.*"version": "\([^"]*\)".*/\1/')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Programs of another user have to read the fresh root.
chmod 755 "$work"
seconds() {
	echo "deb: $* (${SECONDS} s)"
}
run() {
	"$@" >"$work/log" 2>&1 && return
	tail -n 60 "$work/log" >&2
	echo "deb: FAILED: $*" >&2
	exit 1
}

source=$work/quiesce-$version
mkdir "$source"
if git rev-parse --git-dir >/dev/null 2>&1; then
	git archive HEAD | tar -C "$source" -x
else
	tar -c --exclude=./build --exclude=./build-ci . | tar -C "$source" -x
fi
cp -r "$source/packaging/debian" "$source/debian"
(cd "$source" && run dpkg-buildpackage -jauto -us -uc -b)
seconds "built"
out=$build/deb
rm -rf "$out"
mkdir -p "$out"
cp "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$out"
lintian --allow-root --fail-on error,warning --suppress-tags bad-distribution-in-changes-file,unreleased-changes "$work"/*.changes
seconds "lintian is content"

leave() {
	echo "deb: not tried in a fresh root: $*"
	ls "$out"/*.deb
	exit 0
}
[ "$fresh" != --no-root ] || leave "not asked for"
root=$work/root
why=$(fresh_root "$root" apt) || leave "$why"
seconds "a fresh root"
try() {
	run in_root "$root" "$@"
}
try apt-get update -q
mkdir "$root/deb" "$root/try"
cp "$work"/*.deb "$root/deb"
cp packaging/debian/tests/* "$root/try"
for test in consumer tools; do
	depends=$(awk -v test="$test" '/^Tests:/ { ours = $2 == test } ours && sub(/^Depends:/, "") { gsub(",", ""); print }' \
		packaging/debian/tests/control)
	packages=()
	for package in $depends; do
		ours=$(cd "$work" && echo "$package"_*.deb)
		[ -e "$work/$ours" ] && packages+=("/deb/$ours") || packages+=("$package")
	done
	[ "$test" != consumer ] || packages+=("/deb/$(cd "$work" && echo libquiesce0*_*.deb | tr ' ' '\n' | grep -v dbgsym)")
	try apt-get install -y -q --no-install-recommends "${packages[@]}"
	try "/try/$test"
	seconds "$test: passed in the fresh root"
done
try apt-get purge -y -q quiesce-tools libquiesce-dev "$(cd "$work" && echo libquiesce0*_*.deb | tr ' ' '\n' | grep -v dbgsym | cut -d_ -f1)"
left=$(find "$root/usr" "$root/etc" -name '*quiesce*')
[ -z "$left" ] || { echo "deb: FAILED: left behind: $left" >&2; exit 1; }
seconds "nothing is left when they are removed"
ls "$out"/*.deb
