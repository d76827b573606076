#!/bin/bash
# SPDX-License-Identifier: MIT
# kernel-packages.sh [DIR [FLAVOUR...]] - unpack Debian's packaged kernels into DIR, beside the system.
#
# Nothing is installed and nobody has to be root: the machine's own apt downloads, dpkg-deb unpacks.
# DIR is ~/.cache/quiesce-kernels if not given.  Flavours (default: standard cloud rt source):
#
#	standard cloud rt  the newest 6.12 of the machine's suites
#	old                the newest 6.1
#	newest             trixie-backports' kernel, with trixie's compiler in a directory of its own, run by chroot
#	source             of 6.12's source only checkpatch.pl and tools/memory-model
#
# Afterwards DIR/FLAVOUR has: release (the kernel's name), vmlinuz, and kmake, which is make in the kernel's
# build directory: DIR/standard/kmake MODULES ARGUMENTS...  source has scripts/checkpatch.pl and tools/memory-model.
# What is there stays as it is; remove DIR/FLAVOUR to look for a newer one.
# Exit status: 0; 77 (with a message) when a flavour cannot be had; 2 wrong usage.
set -u

all="standard cloud rt old newest source"
dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/quiesce-kernels}
[ $# -eq 0 ] || shift
flavours=("$@")
[ ${#flavours[@]} -gt 0 ] || flavours=(standard cloud rt source)
for flavour in "${flavours[@]}"; do
	case " $all " in *" $flavour "*) ;; *) echo "usage: kernel-packages.sh [DIR [$all]]" >&2; exit 2 ;; esac
done

skip()
{
	echo "kernel-packages: skipped: $*" >&2
	exit 77
}

mkdir -p "$dir" 2>/dev/null || skip "cannot create $dir"
dir=$(cd "$dir" && pwd)

missing()
{
	local flavour
	for flavour in "${flavours[@]}"; do
		[ -e "$dir/$flavour/ready" ] || echo "$flavour"
	done
}
[ -n "$(missing)" ] || exit 0

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || skip "not a Debian system"
[ "$(dpkg --print-architecture)" = amd64 ] || skip "only amd64 kernels are known here"
exec 9>"$dir/lock"
flock 9 # another run may be at it
work=$dir/work.$$
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$work"

# own_lists: package lists of our own, for when the machine's are missing or older than the mirror.
own_lists()
{
	[ -z "${APT_CONFIG:-}" ] || return 1 # they are the ones that did not do
	mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial"
	cat >"$dir/apt/apt.conf" <<-END
		Dir::State::lists "$dir/apt/lists";
		Dir::Cache "$dir/apt/cache";
		Acquire::Languages "none";
		APT::Sandbox::User "root";
	END
	export APT_CONFIG=$dir/apt/apt.conf
	echo "kernel-packages: reading package lists" >&2
	apt-get -qq update >"$work/log" 2>&1
	return 0
}

# newest PATTERN: the package of that name whose version is the highest.
newest()
{
	apt-cache pkgnames linux- 2>/dev/null | grep -xE "$1" | sort -V | tail -n 1
}

# download PACKAGE...: into $work/debs, what is there counts.
download()
{
	local package
	mkdir -p "$work/debs"
	for package; do
		compgen -G "$work/debs/${package}_*.deb" >/dev/null && continue
		echo "kernel-packages: downloading $package" >&2
		(cd "$work/debs" && apt-get -qq -o APT::Sandbox::User=root download "$package") >"$work/log" 2>&1 || return 1
	done
}

# unpack DESTINATION PACKAGE...; of an image nothing but /boot.
unpack()
{
	local to=$1 package deb
	shift
	mkdir -p "$to"
	for package; do
		deb=$(compgen -G "$work/debs/${package}_*.deb" | head -n 1)
		[ -n "$deb" ] || return 1
		case $package in
		linux-image-*) dpkg-deb --fsys-tarfile "$deb" | tar -C "$to" -x ./boot ;;
		*) dpkg-deb -x "$deb" "$to" ;;
		esac || return 1
	done
}

# ready FLAVOUR RELEASE VMLINUZ: the last step; readers look for the file of this name.
ready()
{
	chmod +x "$dir/$1/kmake"
	echo "$2" >"$dir/$1/release"
	ln -sfn "$3" "$dir/$1/vmlinuz"
	touch "$dir/$1/ready"
	echo "kernel-packages: $1: $2" >&2
}

# packaged FLAVOUR SERIES SUFFIX COMMON: a kernel that the machine's own compiler suits.
packaged()
{
	local image release root=$dir/$1/root build
	image=$(newest "linux-image-$2[^ ]*[0-9]$3" | grep -v -e unsigned -e dbg)
	[ -n "$image" ] || return 1
	release=${image#linux-image-}
	rm -rf "${dir:?}/$1"
	local base=${release%"$3"} packages
	packages=("linux-image-$release" "linux-headers-$release" "linux-headers-$base-common$4")
	if [ -n "$(newest "linux-kbuild-$base")" ]; then
		packages+=("linux-kbuild-$base")
	else # before 6.12 one for the whole series
		packages+=("linux-kbuild-${base%%.0-*}")
	fi
	download "${packages[@]}" && unpack "$root" "${packages[@]}" || return 1
	build=$root/usr/src/linux-headers-$release
	# The one absolute path in the headers.
	sed -i "s|/usr/src|$root/usr/src|" "$build/Makefile"
	# shellcheck disable=SC2016 # for the script
	printf '#!/bin/sh\nsrc=$1\nshift\nexec make -C "%s" M="$src" "$@"\n' "$build" >"$dir/$1/kmake"
	ready "$1" "$release" "root/boot/vmlinuz-$release"
}

source_parts()
{
	local package=linux-source-6.12 deb tar
	tar=usr/src/$package.tar.xz
	rm -rf "$dir/source"
	download $package || return 1
	deb=$(compgen -G "$work/debs/${package}_*.deb" | head -n 1)
	mkdir -p "$dir/source"
	dpkg-deb --fsys-tarfile "$deb" | tar -xO "./$tar" |
		tar -C "$dir/source" -xJ --strip-components=1 --wildcards "$package/tools/memory-model" \
			"$package/scripts/checkpatch.pl" "$package/scripts/spelling.txt" "$package/scripts/const_structs.checkpatch" || return 1
	touch "$dir/source/ready"
	echo "kernel-packages: source: checkpatch.pl and tools/memory-model" >&2
}

# The first Debian archive among the machine's sources.
archive()
{
	# shellcheck disable=SC2016 # apt's
	apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 2>/dev/null | awk '$1 == "Debian" && $2 ~ /\/debian\/?$/ { print $2; exit }'
}

# Trixie's compiler and the kernel's headers as packages unpacked into a root of their own: enough for make, and chroot runs it.
newest_kernel()
{
	local uri keyring=/usr/share/keyrings/debian-archive-keyring.gpg conf=$work/trixie root=$dir/newest/root image release build
	command -v unshare >/dev/null && unshare -rm true 2>/dev/null || { echo "newest needs user or mount namespaces" >"$work/log"; return 1; }
	uri=$(archive)
	[ -e "$keyring" ] || keyring=
	[ -n "$uri" ] || { echo "this machine's apt sources name no Debian archive" >"$work/log"; return 1; }
	mkdir -p "$conf/lists/partial" "$conf/cache/archives/partial" "$conf/parts"
	printf 'deb [%s] %s %s main\n' "${keyring:+signed-by=$keyring}" "$uri" trixie "${keyring:+signed-by=$keyring}" "$uri" trixie-backports |
		sed 's/ \[\]//' >"$conf/list"
	cat >"$conf/apt.conf" <<-END
		Dir::State "$conf";
		Dir::State::lists "$conf/lists";
		Dir::State::status "/dev/null";
		Dir::Cache "$conf/cache";
		Dir::Etc::sourcelist "$conf/list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		Acquire::Languages "none";
		APT::Sandbox::User "root";
		APT::Update::Error-Mode "any";
	END
	local APT_CONFIG=$conf/apt.conf
	export APT_CONFIG
	echo "kernel-packages: reading trixie's package lists" >&2
	apt-get -qq update >"$work/log" 2>&1 || return 1
	image=$(newest 'linux-headers-[0-9][^ ]*deb13-amd64' | sed 's/^linux-headers-//')
	[ -n "$image" ] || { echo "trixie-backports has no kernel" >"$work/log"; return 1; }
	release=$image
	echo "kernel-packages: downloading $release and its compiler" >&2
	apt-get -qq -y -t trixie-backports --no-install-recommends --download-only install base-files bash coreutils sed grep gawk findutils perl-base \
		python3-minimal make binutils gzip xz-utils "linux-headers-$release" >"$work/log" 2>&1 || return 1
	rm -rf "$dir/newest"
	mkdir -p "$root"
	local deb
	for deb in "$conf"/cache/archives/base-files_*.deb "$conf"/cache/archives/*.deb; do
		dpkg-deb -x "$deb" "$root" >"$work/log" 2>&1 || return 1
	done
	(cd "$work" && apt-get -qq download "linux-binary-unsigned-$release") >"$work/log" 2>&1 ||
		(cd "$work" && apt-get -qq download "linux-image-$release") >"$work/log" 2>&1 || return 1
	dpkg-deb -x "$work"/linux-*"$release"_*.deb "$work/image" || return 1
	find "$work/image" -name 'vmlinuz*' -type f -exec cp {} "$dir/newest/image" \; -quit
	[ -s "$dir/newest/image" ] || { echo "no kernel in linux-image-$release" >"$work/log"; return 1; }
	build=/usr/src/linux-headers-$release
	mkdir -p "$root/proc" "$root/tmp" "$root/modules" "$root/dev"
	[ -e "$root/usr/bin/sh" ] || ln -s bash "$root/usr/bin/sh"
	[ -e "$root/usr/bin/awk" ] || ln -s gawk "$root/usr/bin/awk"
	newest_make "$root" "$build" >"$dir/newest/kmake"
	ready newest "$release" image
}

# newest_make ROOT BUILD: objtool wants /proc; both mounts go when the command ends.
newest_make()
{
	cat <<-END
		#!/bin/sh
		export src="\$1"
		shift
		exec unshare -rm sh -c 'mount -t proc proc "$1/proc" 2>/dev/null || mount --rbind /proc "$1/proc" &&
			mount --bind "\$src" "$1/modules" && mount --rbind /dev "$1/dev" && exec chroot "$1" /usr/bin/env PATH=/usr/bin:/usr/sbin make -C "$2" M=/modules "\$@"' make "\$@"
	END
}

get()
{
	case $1 in
	standard) packaged "$1" '6\.12\.' -amd64 '' ;;
	cloud) packaged "$1" '6\.12\.' -cloud-amd64 '' ;;
	rt) packaged "$1" '6\.12\.' -rt-amd64 -rt ;;
	old) packaged "$1" '6\.1\.' -amd64 '' ;;
	newest) newest_kernel ;;
	source) source_parts ;;
	esac
}

bad=()
for flavour in $(missing); do
	: >"$work/log"
	get "$flavour" && continue
	if [ "$flavour" != newest ] && own_lists && get "$flavour"; then
		continue
	fi
	rm -rf "${dir:?}/$flavour"
	bad+=("$flavour ($(tail -n 1 "$work/log"))")
done
[ ${#bad[@]} -eq 0 ] || skip "cannot be had: ${bad[*]}"
