#!/bin/sh
# SPDX-License-Identifier: MIT
# Make the tarball of a release from the commit, then build and test its contents in a directory without git.
#
#	dist.sh BUILD		a configured build directory; the tarball and its checksum come into BUILD/meson-dist
set -eu
build=$1
meson=${MESON:-meson}
version=$("$meson" introspect --projectinfo "$build" | sed 's/.*"version": "\([^"]*\)".*/\1/')
# Between releases the first section is "Unreleased"; make release-check demands the version's.
grep -qE "^## ($version|Unreleased)" CHANGELOG.md || { echo "dist: CHANGELOG.md has no section $version" >&2; exit 1; }
"$meson" dist -C "$build" --no-tests --formats xztar
tarball=$build/meson-dist/quiesce-$version.tar.xz

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m tarfile -e "$tarball" "$work" # needs no xz
mkdir "$work/bin"
printf '#!/bin/sh\necho "git is not for released sources: git $*" >&2\nexit 127\n' >"$work/bin/git"
chmod +x "$work/bin/git"
PATH=$work/bin:$PATH
unset GIT_DIR GIT_WORK_TREE
try=$work/quiesce-$version/build
log=$work/log
run() {
	"$@" >"$log" 2>&1 || { tail -n 40 "$log" >&2; echo "dist: FAILED: $*" >&2; exit 1; }
}
run "$meson" setup "$try" "$work/quiesce-$version"
run ninja -C "$try" product
run "$try/quiesce" --version
run "$meson" test -C "$try" --suite style
run "$meson" test -C "$try" "exported symbols" "install and consumers" "headers alone" examples \
	"rcu, light fences" "srcu, light fences" "percpu_rwsem, light fences" "hazptr, light fences"
echo "dist: $tarball builds and passes without git"
