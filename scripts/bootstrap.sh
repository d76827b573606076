#!/bin/bash
# SPDX-License-Identifier: MIT
# Install the missing packages that a make target needs.
#
#	scripts/bootstrap.sh run|test|linear|report|deb|kernel|kernels|arm64|rust|environments|ci
#
# On Debian and its children packages come from apt-get, as root or through a
# sudo that asks no password.  Everywhere else, and when that fails, the missing
# packages are listed and the exit status is 1.  Without an optional one (a peer to
# compare with, a further compiler) a row or a stage is missing, not the build.
set -u

level=${1:-run}
levels="run|test|linear|report|deb|kernel|kernels|arm64|rust|environments|ci"
case "|$levels|" in *"|$level|"*) ;; *) echo "usage: $0 $levels" >&2; exit 2 ;; esac

# Each row: level, "!" if it is needed or "-" if it is only wanted, probe, package.
table='
run  ! cmd:gcc gcc
run  ! lib:c libc6-dev
run  ! cmd:make make
run  ! cmd:pkg-config pkg-config
run  ! cmd:python3 python3
run  ! cmd:ninja ninja-build
run  ! cmd:meson meson
run  ! pc:jansson libjansson-dev
run  ! file:/usr/include/xxhash.h libxxhash-dev
run  - dpkg:systemtap-sdt-dev systemtap-sdt-dev
run  - pc:liburcu liburcu-dev
run  - pc:ck libck-dev
run  - cmd:g++ g++
run  - file:/usr/include/cds/gc/hp.h libcds-dev
run  - pc:tbb libtbb-dev
run  - file:/usr/include/mimalloc.h libmimalloc-dev
run  - pc:jemalloc libjemalloc-dev
run  - file:/usr/include/libcuckoo/cuckoohash_map.hh libcuckoo-dev
run  - file:/usr/include/concurrentqueue/concurrentqueue.h libconcurrentqueue-dev
run  - file:/usr/include/boost/lockfree/queue.hpp libboost-dev
test ! pc:cmocka libcmocka-dev
test ! cmd:g++ g++
test ! cmd:objdump binutils
test ! cmd:patch patch
test - file:/usr/share/dict/words wamerican
test - file:/usr/share/publicsuffix/public_suffix_list.dat publicsuffix
test - pc:libmicrohttpd libmicrohttpd-dev
test - cmd:wrk wrk
test - cmd:valgrind valgrind
test - cmd:mandoc mandoc
test - cmd:cmake cmake
test - file:/usr/include/rapidcheck.h librapidcheck-dev
test - cmd:spin spin
linear - cmd:go golang-go
linear - file:/etc/ssl/certs/ca-certificates.crt ca-certificates
report - pc:libmicrohttpd libmicrohttpd-dev
report - cmd:wrk wrk
report - file:/usr/share/publicsuffix/public_suffix_list.dat publicsuffix
report ! python:matplotlib,jinja2 python3-matplotlib
report ! python:matplotlib,jinja2 python3-jinja2
deb  ! dpkg:build-essential build-essential
deb  ! pc:liburcu liburcu-dev
deb  ! pc:ck libck-dev
deb  ! file:/usr/include/cds/gc/hp.h libcds-dev
deb  ! pc:tbb libtbb-dev
deb  ! file:/usr/include/mimalloc.h libmimalloc-dev
deb  ! pc:jemalloc libjemalloc-dev
deb  ! cmd:dh debhelper
deb  ! cmd:dh_dkms dh-dkms
deb  ! pc:cmocka libcmocka-dev
deb  ! cmd:lintian lintian
deb  - cmd:mmdebstrap mmdebstrap
ci   - cmd:mmdebstrap mmdebstrap
ci   - cmd:gdb gdb
ci   - cmd:bpftrace bpftrace
ci   - cmd:abidiff abigail-tools
kernel ! cmd:gcc gcc
kernel ! lib:c libc6-dev
kernel ! cmd:make make
kernel ! cmd:python3 python3
kernel - cmd:qemu-system-x86_64 qemu-system-x86
kernel - file:/usr/share/seabios/bios-256k.bin seabios
kernel - cmd:busybox busybox-static
kernel - cmd:cpio cpio
kernel - cmd:modinfo kmod
kernel - cmd:pahole pahole
kernel - cmd:perl perl
kernel - cmd:xz xz-utils
kernel - cmd:sparse sparse
kernel - cmd:dkms dkms
kernel - cmd:unshare util-linux
arm64 ! cmd:python3 python3
arm64 ! cmd:ninja ninja-build
arm64 ! cmd:meson meson
arm64 ! cmd:pkg-config pkg-config
arm64 ! file:/usr/include/xxhash.h libxxhash-dev
arm64 ! cmd:patch patch
arm64 - cmd:aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
arm64 - cmd:aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
arm64 - lib:aarch64-linux-gnu libc6-dev-arm64-cross
arm64 - cmd:qemu-system-aarch64 qemu-system-arm
arm64 - cmd:qemu-aarch64-static qemu-user-static
arm64 - cmd:cpio cpio
environments - cmd:redis-server redis-server
environments - cmd:redis-cli redis-tools
environments - cmd:psql postgresql
environments - file:/usr/include/postgresql/15/server/postgres.h postgresql-server-dev-all
environments - file:/usr/share/nginx/src/configure nginx-dev
environments - cmd:nginx nginx
environments - cmd:curl curl
environments - cmd:apachectl apache2
environments - cmd:javac default-jdk-headless
environments - cmd:go golang-go
environments - cmd:rustc rustc
environments - file:/usr/include/lua5.4/lua.h liblua5.4-dev
environments - cmd:lua5.4 lua5.4
environments - dpkg:libffi-platypus-perl libffi-platypus-perl
environments - cmd:ruby ruby
environments - cmd:php php-cli
environments - file:/usr/include/sqlite3ext.h libsqlite3-dev
environments - cmd:sqlite3 sqlite3
environments - file:/usr/include/uv.h libuv1-dev
environments - dpkg:libjemalloc2 libjemalloc2
environments - dpkg:libmimalloc2.0 libmimalloc2.0
environments - dpkg:libtcmalloc-minimal4 libtcmalloc-minimal4
environments - cmd:gdb gdb
environments - cmd:strace strace
environments - cmd:valgrind valgrind
environments - cmd:faketime faketime
environments - cmd:fakeroot fakeroot
environments - cmd:eatmydata eatmydata
environments - cmd:proot proot
environments - cmd:qemu-x86_64-static qemu-user-static
environments - cmd:clang-19 clang-19
environments - file:/usr/lib/llvm-19/bin/ld.lld lld-19
environments - cmd:ld.lld lld
environments - cmd:mold mold
rust ! cargo:1.77 cargo-web
rust ! cmd:gcc gcc
rust ! lib:c libc6-dev
rust - file:/etc/ssl/certs/ca-certificates.crt ca-certificates
rust - file:/usr/lib/llvm-14/lib/libclang.so.1 libclang1-14
kernels - cmd:flex flex
kernels - cmd:bison bison
kernels - cmd:bc bc
kernels - file:/usr/include/libelf.h libelf-dev
kernels - cmd:tc iproute2
ci   - cmd:chromedriver chromium-driver
ci   - cmd:chromium chromium
ci   - python:selenium python3-selenium
ci   - cmd:clang-19 clang-19
ci   - file:/usr/lib/llvm-19/include/c++/v1/vector libc++-19-dev
ci   - rt:19 libclang-rt-19-dev
ci   - cmd:aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
ci   - cmd:aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
ci   - lib:aarch64-linux-gnu libc6-dev-arm64-cross
ci   - cmd:s390x-linux-gnu-gcc gcc-s390x-linux-gnu
ci   - lib:s390x-linux-gnu libc6-dev-s390x-cross
ci   - cmd:riscv64-linux-gnu-gcc gcc-riscv64-linux-gnu
ci   - lib:riscv64-linux-gnu libc6-dev-riscv64-cross
ci   - cmd:qemu-aarch64-static qemu-user-static
ci   - cmd:musl-gcc musl-tools
ci   - file:/usr/include/linux/membarrier.h linux-libc-dev
'

have() {
	case $1 in
	cmd:*) command -v "${1#cmd:}" >/dev/null ;;
	pc:*) command -v pkg-config >/dev/null && pkg-config --exists "${1#pc:}" ;;
	lib:c) echo '#include <stdio.h>' | gcc -E -x c - >/dev/null 2>&1 ;;
	lib:*) [ -e "/usr/${1#lib:}/include/stdio.h" ] ;;
	rt:*) [ -n "$(find /usr/lib/llvm-"${1#rt:}"/lib/clang -name 'libclang_rt.tsan*' -print -quit 2>/dev/null)" ] ;;
	cargo:*) printf '%s\n' "${1#cargo:}" "$(cargo --version 2>/dev/null | cut -d' ' -f2)" | sort -CV ;; # Debian 12's cargo is older, its cargo-web is not
	python:*) python3 -c "import ${1#python:}" 2>/dev/null || /usr/bin/python3 -c "import ${1#python:}" 2>/dev/null ;;
	file:*) [ -e "${1#file:}" ] ;;
	dpkg:*) dpkg-query -W -f '${Status}' "${1#dpkg:}" 2>/dev/null | grep -q ' installed$' ;;
	esac
}

wanted() {
	case $level:$1 in ci:deb|ci:environments) return 1 ;; run:run|test:run|test:test|linear:run|linear:test|linear:linear|report:run|report:report|deb:run|deb:deb|kernel:kernel|kernels:kernels|arm64:arm64|rust:rust|environments:run|environments:environments|ci:*) return 0 ;; esac
	return 1
}

missing() { # $1: ! for needed packages, - for the optional ones, too; prints each once
	while read -r lvl need probe package; do
		[ -n "$lvl" ] && wanted "$lvl" && ! have "$probe" && echo "$need $package"
	done <<<"$table" | awk -v need="$1" '$1 == "!" { must[$2] } !(($1, $2) in line) { line[$1, $2]; row[n++] = $0 }
		END { for (i = 0; i < n; i++) if (split(row[i], at) && at[1] == need && (need == "!" || !(at[2] in must))) print at[2] }'
}

root=()
as_root() {
	[ "$(id -u)" = 0 ] && return 0
	command -v sudo >/dev/null && sudo -n true 2>/dev/null && root=(sudo -n) && return 0
	return 1
}

install_packages() { # packages; all at once
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -q --no-install-recommends "$@" >"$log" 2>&1
}

must=$(missing '!' | tr '\n' ' ')
may=$(missing - | tr '\n' ' ')
[ -z "$must$may" ] && exit 0

if command -v apt-get >/dev/null && as_root; then
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	echo "bootstrap: installing $must$may"
	"${root[@]}" apt-get update -q >"$log" 2>&1 ||
		echo "bootstrap: apt-get update failed; going on with the lists there are"
	# All in one call, which saves a second or two for each; a package that does not exist makes the whole call fail.
	# shellcheck disable=SC2086 # words are wanted
	if ! install_packages $must $may; then
		[ -z "$must" ] || install_packages $must || tail -5 "$log" >&2
		for package in $may; do
			install_packages "$package" || echo "bootstrap: $package cannot be had; going on without"
		done
	fi
	# Meson remembers missing packages: the Makefile configures again when it finds this file.
	[ ! -f "${BUILD:-build}/build.ninja" ] || touch "${BUILD:-build}/packages-changed"
else
	[ -z "$may" ] || [ -n "$must" ] || echo "bootstrap: not installed, going on without: $may"
fi

must=$(missing '!' | tr '\n' ' ')
[ -z "$must" ] && exit 0
echo "bootstrap: missing packages: $must" >&2
if command -v apt-get >/dev/null; then
	echo "bootstrap: install them as root: apt-get install $must" >&2
fi
exit 1
