# shellcheck shell=bash disable=SC2034 # run.sh reads these
# SPDX-License-Identifier: MIT
# Knot DNS: answers in sections of memb; each dynamic update waits until the contents before the last ones are reclaimed.
package=knot
needs='gnutls:libgnutls28-dev lmdb:liblmdb-dev libedit:libedit-dev'

compile() {
	[ -z "$2" ] || export liburcu_CFLAGS="$1" liburcu_LIBS="$2"
	./configure --disable-documentation --disable-fastparser --disable-xdp --disable-quic --disable-shared \
		--without-libnghttp2 --enable-systemd=no --enable-dnstap=no && make -j"$(nproc)"
}
program=src/knotd
check() { make -C tests check; }
results() { sed -n 's/^\([a-z_/]*\)\.\.* *\(ok\|FAILED\|skipped\).*/\1 \2/p'; }

prepare() {
	{ printf '$ORIGIN test.\n$TTL 60\n@ SOA ns hostmaster 1 3600 600 86400 60\n@ NS ns\nns A 127.0.0.1\n'
		for i in $(seq 0 999); do echo "n$i A 127.0.1.1"; done; } >test.zone
	cat >knot.conf <<-END
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
}
arguments() { rm -rf db && mkdir db && echo -c knot.conf; }
load() { python3 "$here/load.py" --port "$port" --seconds "$seconds"; }
