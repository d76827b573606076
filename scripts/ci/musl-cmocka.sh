#!/bin/bash
# SPDX-License-Identifier: MIT
# musl-cmocka.sh DIR - build the test framework for musl, which no package has, from Debian's source package.
#
# Afterwards DIR/musl.ini, given after cross/musl.ini, makes the unit tests part of the build.  Exit status 77: not available.
set -u
dir=$(realpath -m "$1")
ini=$dir/musl.ini
[ ! -e "$ini" ] || exit 0
command -v cmake >/dev/null && command -v apt-get >/dev/null || exit 77
mkdir -p "$dir/lists/partial" && cd "$dir" || exit 1

# This machine's own sources, for source packages, with lists of our own: the system is not changed.
for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
	[ -e "$file" ] || continue
	out=$dir/$(basename "$file")
	sed -E 's/^Types: .*/Types: deb-src/; s/^deb /deb-src /' "$file" >"$out"
	set -- -q -o Dir::Etc::sourcelist="$out" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$dir/lists"
	apt-get "$@" update >>log 2>&1 && apt-get "$@" source --download-only cmocka >>log 2>&1 && break
done
archive=$(ls cmocka_*.orig.tar.xz 2>/dev/null) || { tail -n 5 log; exit 77; }

mkdir -p source && tar -xf "$archive" -C source --strip-components 1 &&
	cmake -S source -B build -DCMAKE_C_COMPILER=musl-gcc -DCMAKE_INSTALL_PREFIX="$dir/root" -DCMAKE_INSTALL_LIBDIR=lib \
		-DWITH_STATIC_LIB=ON -DWITH_EXAMPLES=OFF >>log 2>&1 &&
	cmake --build build >>log 2>&1 && cmake --install build >>log 2>&1 || { tail -n 20 log; exit 1; }
# Only the static library, so that programs run in the build directory.
find root -name 'libcmocka.so*' -delete
mv "$(find build -name 'libcmocka*.a')" root/lib/libcmocka.a || exit 1
cat >"$ini" <<END
[binaries]
pkgconfig = 'pkg-config'
[properties]
pkg_config_libdir = '$dir/root/lib/pkgconfig'
END
