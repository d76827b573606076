# shellcheck shell=bash disable=SC2034,SC2154 # run.sh reads these, and has dir, here, seconds
# SPDX-License-Identifier: MIT
# multipath-tools: multipathd reads its configuration in sections of memb; call_rcu() of a queue of its own frees the one before.
#
# It runs as root, with a device mapper that has no devices (devmapper.c), which its tests of events need, too, and with bursts of events
# of a device that is to be ignored.  Its socket has a fixed name, so no other multipathd may run.
# Figures: clients ask for its configuration, while another one has it loaded again.  At the end it waits in rcu_barrier(), frees its queue,
# and joins the queue's thread.
# Broken grace periods are noticed by the thread that filters events: clients are served under the lock of the loader, too.
package=multipath-tools
needs='devmapper:libdevmapper-dev libudev:libudev-dev mount:libmount-dev libaio-dev cmocka:libcmocka-dev'

compile() {
	local part libs= make
	make="make -j$(nproc) SYSTEMD= ENABLE_LIBDMMP=0"
	for part in libmultipath libmpathutil libmpathcmd libmpathpersist; do libs+=:$PWD/$part; done
	export CPPFLAGS=$1 LDFLAGS="-Wl,-rpath,${libs#:} $2"
	cc -O1 -Wall -shared -fPIC "$here/devmapper.c" -o "$dir/devmapper.so" -ludev &&
		$make plugindir="$PWD/plugins" configdir="$PWD/conf.d" runtimedir="$PWD" &&
		mkdir plugins && cp libmultipath/*/*.so plugins &&
		$make -C libmultipath plugindir="$PWD/tests/lib" configdir="$PWD/tests/conf.d" test-lib && $make -C tests progs
}
program=multipathd/multipathd
preloads() { echo "$dir/devmapper.so"; }
check() {
	local test
	cd tests && for test in *-test; do
		LD_LIBRARY_PATH=.:../libmpathutil:../libmpathcmd:$LD_LIBRARY_PATH timeout 300 "./$test" 2>&1 | sed "s/^\[ .*\] /&$test./"
		echo "[ ended ] $test ${PIPESTATUS[0]}"
	done
}
results() { sed -n 's/^\[ *\(OK\|FAILED\|SKIPPED\) *\] \([a-z]*-test\.[^ ]*\)$/\2 \1/p; s/^\[ ended \] \([^ ]*\) /\1 exit:/p'; }

prepare() {
	[ "$(id -u)" = 0 ] || cannot "multipathd wants root"
	! grep -q '@/org/kernel/linux/storage/multipathd$' /proc/net/unix || cannot "another multipathd runs"
}
arguments() { echo -d -w -v1; }
load() { python3 -B "$here/load_multipathd.py" --seconds "$seconds"; }
