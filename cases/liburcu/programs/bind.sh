# shellcheck shell=bash disable=SC2034,SC2154 # run.sh reads these, and has port, dir, here, seconds
# SPDX-License-Identifier: MIT
# BIND 9.20: answers in sections of memb; zones are tries whose replaced parts call_rcu() frees; each tool ends with rcu_barrier().
#
# Its own tests are the unit tests.  Left out are timer_test, which fails where a timer is late, and the system tests, which need more
# addresses on lo.
# Figures: updates and queries as for Knot, though no thread waits for a grace period there; how long named-checkzone takes, which waits for
# its callbacks of call_rcu() before it exits; and BIND's benchmark of its tries, one thread that changes them beside one that looks up.
# The last two notice broken grace periods: named replaces parts of its tries too seldom to crash within seconds.
package=bind9 suites=bookworm-backports
needs='libuv:libuv1-dev libcap:libcap-dev openssl:libssl-dev cmocka:libcmocka-dev'

compile() {
	local part libs= make="make -j$(nproc)"
	[ -z "$2" ] || export LIBURCU_CFLAGS="$1" LIBURCU_LIBS="$2 -lurcu-cds"
	for part in isc dns ns isccc isccfg; do libs+=:$PWD/lib/$part/.libs; done
	# With glibc's malloc, which overwrites what is freed.
	./configure CFLAGS=-O2 LDFLAGS="-Wl,-rpath,${libs#:}" --disable-maintainer-mode --with-cmocka=yes --without-jemalloc \
		--disable-doh --disable-dnstap --disable-geoip --without-gssapi --without-json-c --without-libidn2 --without-libxml2 \
		--without-lmdb --without-readline --without-zlib &&
		$make bind.keys.h || return
	for part in lib bin/named bin/check tests; do $make -C $part || return; done
	$make -C tests check TESTS= # the tests are built, and not run
}
program=bin/named/.libs/named
check() {
	make -k -C tests -j"$(nproc)" check
	for log in tests/*/*_test.log; do
		[ "$(basename "$log")" = timer_test.log ] || cat "$log"
	done
}
results() { # prints those of each file, and of each test in it
	sed -n '/timer_test/d; s/^\(PASS\|FAIL\|SKIP\|ERROR\): \(.*\)/\2 \1/p; s/^\[ *\(OK\|FAILED\|SKIPPED\) *\] \([a-zA-Z0-9_]*\)$/\2 \1/p'
}

prepare() {
	{ printf '$ORIGIN test.\n$TTL 60\n@ SOA ns hostmaster 1 3600 600 86400 60\n@ NS ns\nns A 127.0.0.1\n'
		for i in $(seq 0 999); do echo "n$i A 127.0.1.1"; done; } >test.zone
	cat >named.conf <<-END
		options {
		    directory "$dir";
		    listen-on port $port { 127.0.0.1; };
		    listen-on-v6 { none; };
		    pid-file none;
		    session-keyfile none;
		    recursion no;
		    notify no;
		    minimal-responses yes;
		    dnssec-validation no;
		};
		controls { };
		logging { category default { null; }; };
		zone "test" {
		    type primary;
		    file "served.zone";
		    allow-update { 127.0.0.1; };
		};
	END
}
arguments() { rm -f served.zone* && cp test.zone served.zone && echo -f -n 2 -c named.conf; }

# checked WAY: how long named-checkzone takes.
checked() {
	local start=${EPOCHREALTIME/[.,]/} runs=20
	for _ in $(seq $runs); do
		env $(how "$1") "$(tree "$1")/bin/check/.libs/named-checkzone" -q test. test.zone || return
	done
	echo "a zone checked in $(((${EPOCHREALTIME/[.,]/} - start) / runs / 100))e-1 ms" | sed 's/\([0-9]\)e-1/.\1/'
}

# changed WAY: the first table of the benchmark, for tries of ten to a million names; it is killed then, for the rest takes long.
changed() {
	local bench
	: >"$1.tries"
	# shellcheck disable=SC2046 # words are wanted
	env $(how "$1") MALLOC_PERTURB_=85 ISC_TASK_WORKERS=2 stdbuf -oL "$(tree "$1")/tests/bench/.libs/qpmulti" >>"$1.tries" 2>&1 &
	bench=$!
	trap 'kill -9 $bench 2>/dev/null' EXIT # the trap is for the subshell that this runs in
	while kill -0 $bench 2>/dev/null && ! grep -q readonly "$1.tries"; do sleep 0.1; done
	{ kill -9 $bench && wait $bench; } 2>/dev/null # without the wait the shell would report its end
	awk -F'\t' '/readonly/ { exit }
		NF > 20 && $1 + 0 > 0 { rows++; seconds += $2; transactions += $10 / 1e3; lookups += $19 / 1e3 }
		END { if (rows != 6) { print "the benchmark of tries does not live"; exit 1 }
			printf "tries: %.0f k transactions/s, %.1f M lookups/s\n", transactions / seconds, lookups / seconds }' "$1.tries"
}

load() {
	local answered checked='' changed=''
	answered=$(python3 "$here/load.py" --port "$port" --seconds "$seconds" --sockets 16 --new 8 2>&1) &&
		checked=$(checked "$1") && changed=$(changed "$1")
	local status=$?
	echo "$answered; $checked; $changed"
	return $status
}
