#!/bin/bash
# SPDX-License-Identifier: MIT
# A program that was written for liburcu: as it is, with our objects of liburcu's names, and rebuilt with our headers.
#
#	cases/liburcu/run.sh [-b BUILD] [-d DIR] [-s SECONDS] NAME
#
# NAME is one of cases/liburcu/programs.  Fetches its source from Debian, builds it for liburcu and for us, and runs its own tests with each of the
# three, whose results must be the same.  Then it works, or serves under load, while its data changes and is reclaimed after a grace period; three
# rounds by turns.  The last run has grace periods that wait for no reader: then it has to crash or to answer wrongly, or the figures mean nothing; where
# no test could detect that, the program's file gives the reason, and so does the output.
# BUILD is our build directory (build).  SECONDS, a whole number, a run lasts (5).  DIR is kept, and what is in it is used again; without -d a scratch directory is, which is removed.
# Exit status: 0 all three passed the same tests and did the same work; 77 not possible here.
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$root/build dir= seconds=5 rounds=3

usage() {
	sed -n 's/^#\t//p' "$0"
	for program in "$here"/programs/*.sh; do
		basename "$program" .sh
		sed -n '3s/^#/	/p' "$program"
	done
}
while getopts b:d:s:h option; do
	case $option in
	b) build=$(cd "$OPTARG" && pwd) || exit 2 ;;
	d) dir=$OPTARG ;;
	s) seconds=$OPTARG ;;
	h) usage; exit 0 ;;
	*) usage >&2; exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# = 1 ] && [ -e "$here/programs/$1.sh" ] || { usage >&2; exit 2; }

# A program's file says which package it is and what that needs (pkg-config's name:Debian's name, or Debian's name), and how it is
# compiled for the tests and the load.  It may name more ways to do so with our headers; the third argument of compile() is the way.
# A server has arguments(), and load WAY, which asks it at $port.  Another program has work WAY instead; it prints its figures, and
# fails if the program does.
# It may leave these as they are; blind is the reason why no test could detect grace periods that wait for no reader, preloads() prints
# the libraries that each way preloads:
suites= needs= more= blind=
prepare() { :; }
preloads() { :; }
work() { served "$1"; }
# shellcheck source=cases/liburcu/programs/knot.sh
. "$here/programs/$1.sh"

cannot() { echo "run.sh: $*" >&2; exit 77; }
fail() { echo "run.sh: $*" >&2; exit 1; }

face=$build/liburcu abi=$build/liburcu/abi
[ -e "$face/libquiesce-urcu.so" ] || cannot "no face in $build: make first"
[ -e "$abi/liburcu.so.8" ] || cannot "no objects of liburcu's names in $build: x86-64 only"
for tool in apt-get cc make pkg-config python3; do
	command -v "$tool" >/dev/null || cannot "there is no $tool"
done
missing=
for need in liburcu:liburcu-dev $needs; do
	case $need in
	*:*) pkg-config --exists "${need%%:*}" ;;
	*) dpkg-query -W -f '${Status}' "$need" 2>/dev/null | grep -q ' installed$' ;;
	esac || missing+=" ${need##*:}"
done
if [ -n "$missing" ]; then
	# shellcheck disable=SC2086 # words are wanted
	[ "$(id -u)" = 0 ] && apt-get install -y -q --no-install-recommends $missing >/dev/null || cannot "install$missing"
fi

server=
ended() {
	[ -z "$server" ] || kill "$server" 2>/dev/null
	[ -z "$scratch" ] || rm -rf "$scratch"
}
scratch=
[ -n "$dir" ] || { dir=$(mktemp -d) && scratch=$dir; } || exit 1
trap ended EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir -p "$dir" && cd "$dir" && dir=$PWD || exit 1

# ---- building ----

# shellcheck disable=SC2086 # words are wanted
[ -d source ] || PYTHONDONTWRITEBYTECODE=1 python3 "$root/tests/liburcu/package.py" "$package" source $suites ||
	cannot "its source package cannot be had"
echo "$package $(cat source/package-version)"

# built TREE CFLAGS LIBS: compiled in a directory of its own; CFLAGS and LIBS are empty for liburcu.
built() {
	local tree=$1 urcu_cflags=$2 urcu_libs=$3
	[ -e "$tree/done" ] && return
	rm -rf "$tree" && cp -rp source "$tree" || return 1
	echo "building it: $tree"
	(cd "$tree" && compile "$urcu_cflags" "$urcu_libs" "$tree" && touch done) >"$tree.log" 2>&1 || { tail -20 "$tree.log"; return 1; }
}
built theirs "" "" || fail "it does not build for liburcu"
for tree in ours $more; do
	built "$tree" "-I$root/liburcu/include -I$root/include" "-L$face -L$build/src -lquiesce-urcu -lquiesce -Wl,-rpath,$face:$build/src" ||
		fail "it does not build with the face: $tree"
done
cc -O1 -shared -fPIC -pthread "$root/tests/liburcu/broken.c" -o broken.so || exit 1

# These functions choose the program, and how it is run.
tree() {
	case $1 in
	liburcu | objects | broken) echo theirs ;;
	rebuilt) echo ours ;;
	*) echo "$1" ;;
	esac
}
how() {
	local preload
	preload=$(preloads)
	case $1 in
	objects) echo "LD_LIBRARY_PATH=$abi:$build/src LD_PRELOAD=$preload" ;;
	broken) echo "LD_LIBRARY_PATH=$abi:$build/src LD_PRELOAD=$preload:$dir/broken.so QUIESCE_URCU_PACE_MS=0" ;;
	*) echo "LD_LIBRARY_PATH= LD_PRELOAD=$preload" ;;
	esac
}
# shellcheck disable=SC2046 # words are wanted
mapped() { env $(how "$1") ldd "$(tree "$1")/$program" | grep 'liburcu[-a-z]*\.so'; }
mapped liburcu >/dev/null || fail "it does not load liburcu"
mapped objects | grep -v -e -common -e -cds | grep -qv "$abi/" && fail "it loads liburcu in the place of our objects"
for way in rebuilt $more; do
	mapped "$way" | grep -qv -e -common -e -cds && fail "the rebuilt program loads liburcu: $way"
done

# ---- its own tests ----

for way in liburcu objects rebuilt $more; do
	echo "its tests: $way"
	# shellcheck disable=SC2046 # words are wanted
	(cd "$(tree $way)" && export $(how $way) && check) >$way.check 2>&1
	results <$way.check | sort >$way.results
	grep -qiE ' (ok|pass)$' $way.results || { tail -20 $way.check; fail "none of its tests passes: $way"; }
	cut -d' ' -f2- <$way.results | sort | uniq -c
	diff liburcu.results $way.results || fail "the results are not those with liburcu: $way.check"
done

# ---- at work ----

port=$(python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
prepare || exit 1

# The function stopped succeeds if the server ends within 20 s of the request.
stopped() {
	kill "$server" 2>/dev/null || return
	for _ in $(seq 200); do
		kill -0 "$server" 2>/dev/null || break
		sleep 0.1
	done
	kill -9 "$server" 2>/dev/null && echo "it does not end when it is asked to"
	wait "$server" || [ $? = 143 ] # some end by the signal that they were sent
}

# served WAY: figures of the load; fails if the server does not live to the end of it.
served() {
	local ok=0
	# Freed memory is overwritten, so that a late read of it is detected.
	# shellcheck disable=SC2046 # words are wanted
	env $(how "$1") MALLOC_PERTURB_=85 "$(tree "$1")/$program" $(arguments) >"$1.server" 2>&1 &
	server=$!
	load "$1" || ok=1
	stopped || ok=1
	server=
	return $ok
}
for round in $(seq $rounds); do
	for way in liburcu objects rebuilt $more; do
		work $way >$way.work 2>&1 || { cat $way.work; fail "it does not live: $way"; }
		printf '%-8s round %s: %s\n' $way "$round" "$(cat $way.work)"
	done
done
if [ -n "$blind" ]; then
	work broken >broken.work 2>&1 || { cat broken.work; fail "grace periods that wait for no reader are noticed, although $blind"; }
	echo "broken: it survives, as $blind; the figures above say nothing about grace periods"
	exit 0
fi
for _ in 1 2 3 4 5; do
	work broken >broken.work 2>&1 || { echo "broken: it does not survive, as it must not"; exit 0; }
	seconds=$((seconds * 2))
done
fail "no program notices grace periods that wait for no reader: the figures above say nothing"
