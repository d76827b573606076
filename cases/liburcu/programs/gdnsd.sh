# shellcheck shell=bash disable=SC2034 # run.sh reads these
# SPDX-License-Identifier: MIT
# gdnsd: answers in sections of qsbr; each challenge for a certificate, and each load of its zones, takes a grace period.
#
# A grace period lasts until its UDP threads have come to the end of a turn of 16 packets, or where packets are rare, until the next one,
# as they wait for packets while they are online; at most 0.26 to 0.29 s.  Which library waits makes no difference to that.
# Its sections have their bounds (qsbr needs none), so it is compiled for memb, too, which waits for those only; so would liburcu's memb.
# All of its own tests are run; they need ::1.  Those of GeoIP databases skip themselves, as Debian's sources have none.  037up_thresh fails
# with liburcu, too, where something answers at 192.0.2.0/24.  They put sockets at /tmp/gdnsd-testrun-*, so only one run at a time.
package=gdnsd
needs='libev-dev libsodium-dev libmaxminddb-dev libhttp-daemon-perl libio-socket-inet6-perl libnet-dns-perl libsocket6-perl'
more=memb

compile() {
	local flags=$1
	if [ "$3" = memb ]; then
		mkdir memb && echo '#include <urcu.h>' >memb/urcu-qsbr.h || return 1
		flags="-I$PWD/memb $1"
	fi
	./configure CPPFLAGS="$flags" LDFLAGS="$2" && make -j"$(nproc)"
}
program=src/gdnsd
check() { make -k -C t check V=1 TESTPORT_START="$(ports 300)"; }
results() {
	awk '/^\.\/.*\.t \.\./ { test = substr($1, 3); if ($3 == "skipped:") print test, "skipped" }
		/^ok [0-9]/ { print test "." $2, /# skip/ ? "skipped" : "ok" }
		/^not ok [0-9]/ { print test "." $3, "FAILED" }'
}

# Prints the first of N ports in a row that no process has, below those that the kernel gives away.
ports() {
	python3 - "$1" <<-END
		import socket, sys
		def free(port):
		    for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
		        with socket.socket(socket.AF_INET, kind) as s:
		            s.bind(("127.0.0.1", port))
		nr, first = int(sys.argv[1]), 12345
		port = first
		while port < first + nr:
		    try:
		        free(port)
		    except OSError:
		        first = port + 1
		    port += 1
		print(first)
	END
}

prepare() {
	mkdir -p gdnsd/zones gdnsd/state gdnsd/run
	{ printf '$TTL 60\n@ SOA ns hostmaster 1 3600 600 86400 60\n@ NS ns\nns A 127.0.0.1\n'
		for i in $(seq 0 999); do echo "n$i A 127.0.1.1"; done; } >gdnsd/zones/test
	cat >gdnsd/config <<-END
		options => {
		    listen => 127.0.0.1
		    dns_port => $port
		    run_dir => $dir/gdnsd/run
		    state_dir => $dir/gdnsd/state
		}
	END
}
arguments() { echo -c gdnsd start; }
load() { python3 -B "$here/load_gdnsd.py" --port "$port" --control gdnsd/run/control.sock --seconds "$seconds"; }
