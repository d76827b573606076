#!/bin/bash
# SPDX-License-Identifier: MIT
# A Debian package's own tests with pthread_rwlock_t as it is, and with percpu_rwsem in its place.
#
#	cases/pthread_rwlock/run.sh [-b BUILD] [-d DIR] [glib|openssl]
#
# Fetches the package's source from Debian, builds it, and runs its tests twice; then readmostly.c,
# with and without.  BUILD is our build directory (build).  DIR is kept, and what is in it is used
# again; without -d a scratch directory is, which is removed.  As root, what is fetched is built and run by the user "nobody".
# Exit status: 0 both runs passed the same tests, and the shim was at work; 77 not possible here.
set -u -o pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build dir= seconds=1

while getopts b:d: option; do
	case $option in
	b) build=$(cd "$OPTARG" && pwd) || exit 2 ;;
	d) dir=$OPTARG ;;
	*) sed -n 's/^#\t//p' "$0" >&2; exit 2 ;;
	esac
done
shift $((OPTIND - 1))
package=${1:-glib}
case $package in
glib) source=glib2.0 needs='libpcre2-8:libpcre2-dev libffi:libffi-dev zlib:zlib1g-dev' ;;
openssl) source=openssl needs= ;;
*) sed -n 's/^#\t//p' "$0" >&2; exit 2 ;;
esac

cannot() { echo "run.sh: $*" >&2; exit 77; }
fail() { echo "run.sh: $*" >&2; exit 1; }

parts=$build/cases/pthread_rwlock
[ -e "$parts/librwlock_shim.so" ] && [ -e "$parts/rwlock_readmostly" ] || cannot "no shim in $build: make first"
command -v apt-get >/dev/null || cannot "there is no apt-get"
missing=
for tool in dpkg-source:dpkg-dev cc:gcc make ninja:ninja-build meson perl pkg-config python3; do
	command -v "${tool%%:*}" >/dev/null || missing+=" ${tool##*:}"
done
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
mkdir -p "$dir" && cd "$dir" && dir=$PWD && chmod 755 . || exit 1
mkdir -p home tmp shim apt/lists/partial apt/cache/archives/partial
cp -L "$parts/librwlock_shim.so" "$build/src/libquiesce.so" "$parts/rwlock_readmostly" shim/
preload=$dir/shim/libquiesce.so:$dir/shim/librwlock_shim.so

as=()
if [ "$(id -u)" = 0 ]; then
	chown nobody: home tmp
	as=(setpriv --reuid nobody --regid nogroup --clear-groups)
fi
# plainly COMMAND...: run it in an environment without surprises.
plainly() { "${as[@]}" env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$dir/home" TMPDIR="$dir/tmp" LC_ALL=C.UTF-8 "$@"; }

fetch() { # with an apt of our own, for systems that have no deb-src
	local suite
	# shellcheck disable=SC1091 # where the system has it
	suite=$(. /etc/os-release && [ "${ID:-}" = debian ] && echo "${VERSION_CODENAME:-}")
	[ -n "$suite" ] || cannot "this is not a release of Debian"
	cat >apt/conf <<-END
		Dir::Etc::sourcelist "$dir/apt/sources.list";
		Dir::Etc::sourceparts "-";
		Dir::State::lists "$dir/apt/lists";
		Dir::Cache "$dir/apt/cache";
		APT::Sandbox::User "root";
	END
	echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" \
		>apt/sources.list
	export APT_CONFIG=$dir/apt/conf
	{ apt-get update -q && apt-get source -q --only-source --download-only "$source"; } >fetch.log 2>&1 ||
		cannot "cannot fetch $source: $(tail -1 fetch.log)"
	unset APT_CONFIG
	dpkg-source -x "$source"_*.dsc source >>fetch.log 2>&1 || fail "cannot unpack: see $dir/fetch.log"
	[ ${#as[@]} = 0 ] || chown -R nobody: source
}

# ---- glib: the libraries glib and gobject, without gio, and their tests but those marked slow or that only compile ----

build_glib() {
	[ -e source/_b/build.ninja ] || plainly CFLAGS='-O2 -g0' meson setup source/_b source --buildtype=plain -Dnls=disabled \
		-Dselinux=disabled -Dlibmount=disabled -Dman=false -Dgtk_doc=false >build.log 2>&1 || return 1
	plainly meson introspect source/_b --targets | python3 -c '
import json, os, sys
for target in json.load(sys.stdin):
    for name in target["filename"]:
        name = os.path.relpath(name, sys.argv[1])
        if target["build_by_default"] and name.split("/")[0] in ("glib", "gobject", "gthread", "gmodule"):
            print(name)' "$dir/source/_b" | plainly xargs ninja -C source/_b >>build.log 2>&1
}

test_glib() { # plain|shim, then how to run each test
	plainly meson test -C source/_b --no-rebuild --suite glib:glib --suite glib:gobject --no-suite slow --no-suite cpp -t 4 \
		--wrapper "$2" >"test-$1.log" 2>&1
	sed -nE 's|^ *[0-9]+/[0-9]+ ([^ ]+) / ([^ ]+) +([A-Z]+) .*|\3 \1 / \2|p' "test-$1.log" | sort >"results-$1"
}

# ---- openssl: threads, fetching of algorithms, providers, certificates, connections ----

build_openssl() {
	cd source || return 1
	{ [ -e configdata.pm ] || plainly ./config shared; } >../build.log 2>&1 &&
		plainly make -j"$(nproc)" build_sw >>../build.log 2>&1
	local status=$?
	cd .. && return $status
}

test_openssl() {
	# shellcheck disable=SC2086 # words are wanted
	plainly $2 make -C source test HARNESS_JOBS="$(nproc)" \
		TESTS='test_threads test_evp* test_provider* test_internal_* test_property test_namemap test_x509* test_sslapi test_rand test_err' \
		>"test-$1.log" 2>&1
	sed -nE 's/^([0-9]+-test_[^ ]+) \.+ *(ok|skipped|.*).*/\2 \1/p' "test-$1.log" |
		sort >"results-$1"
}

# ---- both ----

say_results() { # plain|shim
	printf '%-6s %s of %s tests ok, %s s\n' "$1" "$(grep -ciE '^ok ' "results-$1")" "$(grep -c . "results-$1")" "$2"
}

say_counts() {
	# Each line: program, process, and then pairs of a word and a number.
	awk '{ for (i = 3; i < NF; i += 2) sum[$i] += $(i + 1); if ($8 + 0 > most) { most = $8; who = $1 } }
	END { printf "through the shim: %d read locks (%d by a thread that had it), %d write locks, %d unlocks, in %d processes\n",
		sum["read"], sum["again"], sum["write"], sum["unlock"], NR
	printf "                  %d locks initialised, %d destroyed, %d semaphores at most in all processes; %d refusals\n",
		sum["init"], sum["destroy"], sum["semaphores"], sum["refused"]
	exit !(sum["read"] && sum["write"]) }' tmp/stats
}

median() { sort -n | awk '{ n[NR] = $1 } END { print n[int((NR + 1) / 2)] }'; }

readmostly() { # threads; five runs of each, in turn
	local plain shim got w=0 W=0
	rm -f reads-plain reads-shim
	for _ in 1 2 3 4 5; do
		plain=$(plainly shim/rwlock_readmostly "$1" $seconds 100) || return 1
		shim=$(plainly LD_PRELOAD="$preload" shim/rwlock_readmostly "$1" $seconds 100) || return 1
		echo "${plain% *}" >>reads-plain
		echo "${shim% *}" >>reads-shim
		w=$((w + ${plain#* })) W=$((W + ${shim#* }))
	done
	got=$(paste reads-shim reads-plain | awk '{ print $1 / $2 }' | sort -n)
	printf '%3d threads: reads %.1f times as many (%.1f to %.1f); of 50 writes in 100 ms each %d got in, without the shim %d\n' "$1" \
		"$(median <<<"$got")" "$(head -1 <<<"$got")" "$(tail -1 <<<"$got")" $W $w
}

[ -d source ] || fetch
echo "$source $(sed -nE '1s/.*\((.*)\).*/\1/p' source/debian/changelog), on $(nproc) CPUs"
start=$SECONDS
build_$package || fail "it does not build: see the end of $dir/build.log: $(tail -3 "$dir/build.log")"
echo "built in $((SECONDS - start)) s"

rm -f tmp/stats
start=$SECONDS
test_$package plain 'env'
say_results plain $((SECONDS - start))
start=$SECONDS
test_$package shim "env RWLOCK_SHIM_STATS=$dir/tmp/stats LD_PRELOAD=$preload"
say_results shim $((SECONDS - start))
status=0
grep -q . results-plain || fail "no tests were run: $(tail -3 test-plain.log)"
diff results-plain results-shim || status=1
say_counts || fail "no lock went through the shim"

echo "one lock that all threads read without pause:"
for threads in 1 "$(nproc)" $((4 * $(nproc))); do
	readmostly "$threads" || fail "readmostly failed"
done
exit $status
