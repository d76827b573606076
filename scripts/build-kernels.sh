#!/bin/bash
# SPDX-License-Identifier: MIT
# build-kernels.sh [DIR [FLAVOUR...]] - build small kernels for QEMU in DIR, from Debian's sources.
#
# DIR is ~/.cache/quiesce-kernels if not given.  Flavours (default: all):
#
#	lockdep         6.12 with PROVE_LOCKING, whose lockdep waits for walkers of its key hash as lockdep.key_wait says
#	lockdep-kasan   ... with KASAN
#	lockdep-kcsan   ... with KCSAN
#	slice           the newest kernel of trixie-backports, with time-slice extensions for rseq
#
# Each takes about four minutes on two CPUs, and a minute when only lockdep has changed; needs flex, bison, bc, libelf-dev.
# Afterwards DIR/FLAVOUR has what kernel-packages.sh makes: release, vmlinuz, and kmake.
# Exit status: 0; 1 a build failed; 77 (with a message) the sources are not available; 2 wrong usage.
set -u

all="lockdep lockdep-kasan lockdep-kcsan slice"
here=$(cd "$(dirname "$0")/.." && pwd)
dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/quiesce-kernels}
[ $# -eq 0 ] || shift
flavours=("$@")
# shellcheck disable=SC2206 # words
[ ${#flavours[@]} -gt 0 ] || flavours=($all)
for flavour in "${flavours[@]}"; do
	case " $all " in *" $flavour "*) ;; *) echo "usage: build-kernels.sh [DIR [$all]]" >&2; exit 2 ;; esac
done
for program in gcc make flex bison bc perl; do
	command -v $program >/dev/null || { echo "build-kernels: skipped: not installed: $program" >&2; exit 77; }
done

# counted LOG OBJECTS COMMAND...: run it; a terminal shows the number of objects so far.
counted()
{
	local log=$1 objects=$2 pid status
	shift 2
	"$@" >"$log" 2>&1 &
	pid=$!
	while [ -t 2 ] && kill -0 $pid 2>/dev/null; do
		printf '\r%s: %d objects ' "$flavour" "$(find "$objects" -name '*.o' 2>/dev/null | wc -l)" >&2
		sleep 2
	done
	wait $pid
	status=$?
	[ ! -t 2 ] || printf '\r' >&2
	return $status
}

# configure TREE OBJECTS FRAGMENT...: the tree's smallest configuration, with the options of the fragments.
configure()
{
	local tree=$1 objects=$2 fragment wanted line
	shift 2
	mkdir -p "$objects"
	wanted=$objects/wanted.config
	for fragment; do cat "$here/tests/kernel/kernels/$fragment.config"; done >"$wanted.new"
	cmp -s "$wanted" "$wanted.new" && rm "$wanted.new" && return 0
	make -s -C "$tree" O="$objects" KCONFIG_ALLCONFIG="$wanted.new" allnoconfig >"$objects/log" 2>&1 || return 1
	while read -r line; do
		grep -qxF "$line" "$objects/.config" || echo "build-kernels: $flavour: the kernel does not take $line" >&2
	done < <(grep -x 'CONFIG.*=[^n]*' "$wanted.new")
	mv "$wanted.new" "$wanted"
}

# build TREE FRAGMENT...: configure and build a kernel with these fragments of a configuration.
build()
{
	local tree=$1 objects=$dir/$flavour/objects
	shift
	configure "$tree" "$objects" "$@" || return 1
	echo "build-kernels: building $flavour" >&2
	counted "$objects/log" "$objects" make -s -j"$(nproc)" -C "$tree" O="$objects" bzImage modules || return 1
	# shellcheck disable=SC2016 # for the script
	printf '#!/bin/sh\nsrc=$1\nshift\nexec make -C "%s" M="$src" "$@"\n' "$objects" >"$dir/$flavour/kmake"
	chmod +x "$dir/$flavour/kmake"
	make -s -C "$tree" O="$objects" kernelrelease >"$dir/$flavour/release"
	ln -sfn objects/arch/x86/boot/bzImage "$dir/$flavour/vmlinuz"
	touch "$dir/$flavour/ready"
}

# tree NAME: whole sources, in DIR/NAME.
tree()
{
	"$here/scripts/kernel-packages.sh" "$dir" "$1" || exit 77
}

get()
{
	case $flavour in
	lockdep*)
		tree tree && python3 "$here/tests/kernel/kernels/convert.py" "$dir/tree/linux" "$here/kernel" || return 1
		;;
	esac
	case $flavour in
	lockdep) build "$dir/tree/linux" base lockdep ;;
	lockdep-*) build "$dir/tree/linux" base lockdep debug "${flavour#lockdep-}" ;;
	slice) tree newest-tree && build "$dir/newest-tree/linux" base slice ;;
	esac
}

mkdir -p "$dir" && dir=$(cd "$dir" && pwd) || exit 1
exec 8>"$dir/build-lock"
flock 8 # another run may be building
trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM
for flavour in "${flavours[@]}"; do
	get && continue
	echo "build-kernels: $flavour cannot be built; the end of $dir/$flavour/objects/log:" >&2
	tail -n 20 "$dir/$flavour/objects/log" >&2
	exit 1
done
