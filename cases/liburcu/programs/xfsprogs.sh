# shellcheck shell=bash disable=SC2034,SC2154 # run.sh reads these, and has dir, seconds
# SPDX-License-Identifier: MIT
# xfsprogs: threads that repair and copy file systems, counters that are liburcu's atomics, and sections of memb around lookups of groups.
#
# It has no tests of its own but of its checksums, which mkfs.xfs and xfs_repair run before anything else; the rest of them is a package of
# scripts that mount.  So the tests are that the same damaged file systems, each of another seed, are repaired to the same inodes and names.
# They and the work are on sparse files of 400 MB.
# Figures: how long it takes to make a file system of a thousand files, to check it, and to copy it.
# Broken grace periods cannot be noticed: groups live as long as the file system is open, and nothing waits for one.
package=xfsprogs
needs='blkid:libblkid-dev inih:libinih-dev uuid:uuid-dev'
blind='nothing of it waits for a grace period'

compile() {
	./configure CFLAGS="-O2 $1" LDFLAGS="$2" DEBUG=-DNDEBUG --enable-gettext=no --enable-editline=no --disable-libicu --disable-scrub &&
		make -j"$(nproc)"
}
program=repair/xfs_repair
blank() {
	[ -e "$dir/files" ] || {
		head -c 20000 /dev/zero | tr '\0' x >"$dir/content"
		printf '/dev/null\n0 0\nd--755 0 0\n'
		for i in $(seq 40); do
			echo "d$i d--755 0 0"
			for j in $(seq 25); do echo "f$j ---644 0 0 $dir/content"; done
			printf 'l l--777 0 0 f1\n$\n'
		done
		echo '$'
	} >"$dir/files"
	rm -f "$1" && mkfs/mkfs.xfs -q -m uuid=01234567-89ab-cdef-0123-456789abcdef -d "file,name=$1,size=400m,agcount=4" -p "$dir/files"
}
# judged NAME COMMAND...: report whether the command succeeded.  Its output is only kept, because threads print in any order and break each other's lines.
judged() {
	local name=$1 status
	shift
	"$@" >judged 2>&1
	status=$?
	sed "s/^/$name: /" judged
	echo "$name $([ $status = 0 ] && echo ok || echo "FAILED: $status")"
}
names() { db/xfs_db -r -c "sb 0" -c "p icount ifree" -c "blockget -n" -c ncheck image; }
check() {
	judged make blank image
	judged check repair/xfs_repair -n -f image
	[ -e "$dir/image" ] || cp --sparse=always image "$dir/image" # that all may repair the same one
	for seed in $(seq 12); do
		cp --sparse=always "$dir/image" image
		judged "damage.$seed" db/xfs_db -x -c blockget -c "blocktrash -s $seed -n $((seed * 10)) -2 -x 1 -y 64" image
		judged "repair.$seed" repair/xfs_repair -f image
		judged "repaired.$seed" repair/xfs_repair -n -f image
		judged "names.$seed.$(names 2>&1 | sort | md5sum | cut -c1-8)" names
	done
	judged copy copy/xfs_copy -d "$dir/image" image
	judged copied repair/xfs_repair -n -f image
	judged "copied.$(names 2>&1 | sort | md5sum | cut -c1-8)" names
}
results() { sed -n '/^[a-z0-9.]* \(ok\|FAILED\)/p'; }

# took COMMAND...: tenths of milliseconds.
took() {
	local start=${EPOCHREALTIME/[.,]/}
	"$@" >>"$log" 2>&1 && echo $(((${EPOCHREALTIME/[.,]/} - start) / 100))
}
work() (
	local log=$dir/$1.log runs=0 sums=(0 0 0) i one end=$((SECONDS + seconds))
	: >"$log"
	# shellcheck disable=SC2046 # words are wanted
	cd "$(tree "$1")" && export $(how "$1") MALLOC_PERTURB_=85 || return
	while [ $SECONDS -lt $end ]; do
		i=0
		for one in "blank work.image" "repair/xfs_repair -n -f -o ag_stride=1 work.image" "copy/xfs_copy -d work.image work.copy"; do
			rm -f work.copy
			# shellcheck disable=SC2086 # words are wanted
			one=$(took $one) || { tail -5 "$log"; return 1; }
			sums[i]=$((sums[i] + one)) i=$((i + 1))
		done
		runs=$((runs + 1))
	done
	printf 'made in %d ms, checked in %d ms, copied in %d ms\n' $((sums[0] / runs / 10)) $((sums[1] / runs / 10)) $((sums[2] / runs / 10))
)
