#!/bin/bash
# SPDX-License-Identifier: MIT
# A program that was written for liburcu: as it is, with our objects of liburcu's names, and rebuilt with our headers.
#
#	cases/liburcu/run.sh [-b BUILD] [-d DIR] [-s SECONDS] [knot]
#
# Fetches the source of Knot DNS from Debian, builds it for liburcu and for us, and runs its tests with each of the three.  Then it serves
# a zone to clients that ask all the time, while another one replaces names one after the other: each
# replacement waits until the contents before are reclaimed, after all readers.  Last with grace periods that wait for nobody: then it has to crash, or the figures say nothing.
# BUILD is our build directory (build).  DIR is kept, and what is in it is used again; without -d a scratch directory is, which is removed.
# Exit status: 0 all three passed the same tests and served; 77 not possible here.
set -u -o pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build dir= seconds=5 rounds=3

usage() { sed -n 's/^#\t//p' "$0" >&2; exit 2; }
while getopts b:d:s: option; do
	case $option in
	b) build=$(cd "$OPTARG" && pwd) || exit 2 ;;
	d) dir=$OPTARG ;;
	s) seconds=$OPTARG ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ "${1:-knot}" = knot ] || usage
needs='gnutls:libgnutls28-dev lmdb:liblmdb-dev libedit:libedit-dev liburcu:liburcu-dev'

cannot() { echo "run.sh: $*" >&2; exit 77; }
fail() { echo "run.sh: $*" >&2; exit 1; }

face=$build/liburcu abi=$build/liburcu/abi
[ -e "$face/libquiesce-urcu.so" ] || cannot "no face in $build: make first"
[ -e "$abi/liburcu.so.8" ] || cannot "no objects of liburcu's names in $build: x86-64 only"
for tool in apt-get cc make pkg-config python3; do
	command -v "$tool" >/dev/null || cannot "there is no $tool"
done
missing=
for need in $needs; do
	pkg-config --exists "${need%%:*}" || missing+=" ${need##*:}"
done
if [ -n "$missing" ]; then
	# shellcheck disable=SC2086 # words are wanted
	[ "$(id -u)" = 0 ] && apt-get install -y -q --no-install-recommends $missing >/dev/null || cannot "install$missing"
fi

if [ -z "$dir" ]; then
	dir=$(mktemp -d) || exit 1
	trap 'rm -rf "$dir"' EXIT
fi
mkdir -p "$dir" && cd "$dir" && dir=$PWD || exit 1

# ---- building ----

[ -d source ] || PYTHONDONTWRITEBYTECODE=1 python3 "$root/tests/liburcu/package.py" knot source || cannot "its source package cannot be had"

# made NAME VARIABLE=VALUE...: built in a directory of its own.
made() {
	local name=$1
	shift
	[ -e "$name/done" ] && return
	rm -rf "$name" && cp -r source "$name" || return 1
	echo "building it: $name"
	(cd "$name" && env "$@" ./configure --disable-documentation --disable-fastparser --disable-xdp --disable-quic --disable-shared \
		--without-libnghttp2 --enable-systemd=no --enable-dnstap=no && make -j"$(nproc)" && touch done) >"$name.log" 2>&1 ||
		{ tail -20 "$name.log"; return 1; }
}
made theirs || fail "it does not build for liburcu"
made ours "liburcu_CFLAGS=-I$root/liburcu/include -I$root/include" \
	"liburcu_LIBS=-L$face -L$build/src -lquiesce-urcu -lquiesce -Wl,-rpath,$face:$build/src" || fail "it does not build with the face"
cc -O1 -shared -fPIC -pthread "$root/tests/liburcu/broken.c" -o broken.so || exit 1

# Which program, and how it is run.
tree() { case $1 in rebuilt) echo ours ;; *) echo theirs ;; esac; }
how() {
	case $1 in
	objects) echo "LD_LIBRARY_PATH=$abi:$build/src" ;;
	broken) echo "LD_LIBRARY_PATH=$abi:$build/src LD_PRELOAD=$dir/broken.so" ;;
	*) echo "LD_LIBRARY_PATH=" ;;
	esac
}
mapped() { env "$(how "$1")" ldd "$(tree "$1")/src/knotd"; }
mapped objects | grep -q "$abi/liburcu.so.8" || fail "our objects are not loaded"
mapped rebuilt | grep -q 'liburcu\.so' && fail "the rebuilt program loads liburcu"

# ---- its own tests ----

for way in liburcu objects rebuilt; do
	echo "its tests: $way"
	env "$(how $way)" make -C "$(tree $way)/tests" check >$way.check 2>&1 || { tail -20 $way.check; fail "its tests fail: $way"; }
	grep -E '^(All tests|Failed)' $way.check | tail -1
done

# ---- serving ----

port=$(python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
{ printf '$ORIGIN test.\n$TTL 60\n@ SOA ns hostmaster 1 3600 600 86400 60\n@ NS ns\nns A 127.0.0.1\n'
	for i in $(seq 0 999); do echo "n$i A 127.0.1.1"; done; } >test.zone
cat >knot.conf <<END
server:
    rundir: "$dir"
    listen: 127.0.0.1@$port
    udp-workers: 2
    tcp-workers: 1
    background-workers: 1
log:
  - target: stderr
    any: error
database:
    storage: "$dir/db"
acl:
  - id: any
    address: 127.0.0.1
    action: update
template:
  - id: default
    storage: "$dir"
    zonefile-sync: -1
    journal-content: none
zone:
  - domain: test.
    file: test.zone
    acl: any
END

server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; exit 130' INT TERM

# served WAY: figures of the load; fails if the server does not live to the end of it.
served() {
	local ok=0
	rm -rf db && mkdir db || return 1
	# Freed memory is overwritten, so that who reads it is found out.
	# shellcheck disable=SC2046 # words are wanted
	env $(how "$1") MALLOC_PERTURB_=85 "$(tree "$1")/src/knotd" -c knot.conf >"$1.knotd" 2>&1 &
	server=$!
	python3 "$root/cases/liburcu/load.py" --port "$port" --seconds "$seconds" >"$1.load" 2>&1 || ok=1
	kill "$server" 2>/dev/null || ok=1
	wait "$server" || ok=1
	server=
	return $ok
}
for round in $(seq $rounds); do
	for way in liburcu objects rebuilt; do
		served $way || { cat $way.load; fail "it does not serve: $way"; }
		printf '%-8s round %s: %s\n' $way "$round" "$(cat $way.load)"
	done
done
for _ in 1 2 3 4 5; do
	served broken || { echo "broken: it does not survive, as it must not"; exit 0; }
done
fail "nobody notices grace periods that wait for nobody: the figures above say nothing"
