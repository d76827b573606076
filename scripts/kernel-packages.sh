#!/bin/bash
# SPDX-License-Identifier: MIT
# kernel-packages.sh [DIR [FLAVOUR...]] - unpack Debian's packaged kernels into DIR, beside the system.
#
# It installs nothing and needs no root's rights: apt of this machine downloads, dpkg-deb unpacks.
# DIR is ~/.cache/quiesce-kernels if not given.  Flavours (default: standard cloud rt source):
#
#	standard cloud rt  the newest 6.12 of the machine's suites
#	old                the newest 6.1
#	newest             trixie-backports' kernel, with trixie's compiler in a directory of its own, run by chroot
#	source             checkpatch.pl and tools/memory-model of 6.12's source
#	tree newest-tree   whole sources, of 6.12 and of trixie-backports' kernel, for build-kernels.sh: 1.7 GB each
#
# Afterwards DIR/FLAVOUR has: release (the kernel's name), vmlinuz, and kmake, which is make in the kernel's
# build directory: DIR/standard/kmake MODULES ARGUMENTS...  source has scripts/checkpatch.pl and tools/memory-model;
# the trees are in DIR/tree/linux and DIR/newest-tree/linux.
# An existing flavour is kept; remove DIR/FLAVOUR to get a newer one.
# Exit status: 0; 77 (with a message) a flavour is not available; 2 wrong usage.
set -u

all="standard cloud rt old newest source tree newest-tree"
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
flock 9 # another run may be unpacking
work=$dir/work.$$
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$work"

# source_line URI SUITE: for apt.
source_line()
{
	local signed=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -e "$signed" ] && signed="[signed-by=$signed] " || signed=
	echo "deb $signed$1 $2 main"
}

# own_lists: package lists of our own, if the machine's are missing or older than the mirror.
own_lists()
{
	[ -z "${APT_CONFIG:-}" ] || return 1 # these lists have failed already
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

# backports_lists: also the release's backports, which have 6.12 if the sources of a Debian 12 lack its security updates.
backports_lists()
{
	local uri suite
	uri=$(archive)
	suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")-backports
	[ "${APT_CONFIG:-}" = "$dir/apt/apt.conf" ] && [ -n "$uri" ] || return 1
	! grep -qs sourcelist "$APT_CONFIG" && ! grep -rqsw -e "$suite" /etc/apt/sources.list /etc/apt/sources.list.d || return 1
	{ cat /etc/apt/sources.list 2>/dev/null; source_line "$uri" "$suite"; } >"$dir/apt/sources.list"
	echo "Dir::Etc::sourcelist \"$dir/apt/sources.list\";" >>"$APT_CONFIG"
	echo "kernel-packages: reading package lists of $suite" >&2
	apt-get -qq update >"$work/log" 2>&1
	return 0
}

# newest PATTERN: the package of that name whose version is the highest.
newest()
{
	apt-cache pkgnames linux- 2>/dev/null | grep -xE "$1" | sort -V | tail -n 1
}

# download PACKAGE...: into $work/debs, unless it is there.
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

# unpack DESTINATION PACKAGE...: unpack these packages, of an image only /boot.
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

# ready FLAVOUR RELEASE VMLINUZ: the last step; this file marks a complete flavour.
ready()
{
	chmod +x "$dir/$1/kmake"
	echo "$2" >"$dir/$1/release"
	ln -sfn "$3" "$dir/$1/vmlinuz"
	touch "$dir/$1/ready"
	echo "kernel-packages: $1: $2" >&2
}

# packaged FLAVOUR SERIES SUFFIX COMMON: a kernel whose modules the machine's own compiler can build.
packaged()
{
	local image release root=$dir/$1/root build
	image=$(newest "linux-image-$2[^ ]*[0-9]$3" | grep -v -e unsigned -e dbg)
	[ -n "$image" ] || { echo "no package linux-image-${2//\\/}*$3 in this machine's apt sources or its backports" >"$work/log"; return 1; }
	release=${image#linux-image-}
	rm -rf "${dir:?}/$1"
	local base=${release%"$3"} packages
	packages=("linux-image-$release" "linux-headers-$release" "linux-headers-$base-common$4")
	if [ -n "$(newest "linux-kbuild-$base")" ]; then
		packages+=("linux-kbuild-$base")
	else # before 6.12 there is one for the whole series
		packages+=("linux-kbuild-${base%%.0-*}")
	fi
	download "${packages[@]}" && unpack "$root" "${packages[@]}" || return 1
	build=$root/usr/src/linux-headers-$release
	# The headers contain one absolute path.
	sed -i "s|/usr/src|$root/usr/src|" "$build/Makefile"
	# shellcheck disable=SC2016 # for the script
	printf '#!/bin/sh\nsrc=$1\nshift\nexec make -C "%s" M="$src" "$@"\n' "$build" >"$dir/$1/kmake"
	ready "$1" "$release" "root/boot/vmlinuz-$release"
}

# extract PACKAGE TO MEMBER...: members of the source in a package; without a member all of it.
extract()
{
	local package=$1 to=$2 deb members
	shift 2
	members=("${@/#/$package/}")
	[ $# -gt 0 ] || members=("$package")
	deb=$(compgen -G "$work/debs/${package}_*.deb" | head -n 1)
	mkdir -p "$to"
	dpkg-deb --fsys-tarfile "$deb" | tar -xO "./usr/src/$package.tar.xz" |
		tar -C "$to" -xJ --strip-components=1 --wildcards "${members[@]}"
}

source_parts()
{
	local package=linux-source-6.12
	rm -rf "$dir/source"
	download $package && extract $package "$dir/source" tools/memory-model \
		scripts/checkpatch.pl scripts/spelling.txt scripts/const_structs.checkpatch || return 1
	touch "$dir/source/ready"
	echo "kernel-packages: source: checkpatch.pl and tools/memory-model" >&2
}

# whole_tree FLAVOUR PACKAGE: unpack the whole source tree of a package.
whole_tree()
{
	rm -rf "${dir:?}/$1"
	download "$2" && extract "$2" "$dir/$1/linux" || return 1
	touch "$dir/$1/ready"
	echo "kernel-packages: $1: $2" >&2
}

newest_tree()
{
	local conf APT_CONFIG package
	trixie_lists || return 1
	package=$(newest 'linux-source-[0-9.]+')
	[ -n "$package" ] || { echo "trixie-backports has no kernel's source" >"$work/log"; return 1; }
	whole_tree newest-tree "$package"
}

# The function archive prints the first Debian archive among the machine's sources.
archive()
{
	# shellcheck disable=SC2016 # apt's
	apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 2>/dev/null | awk '$1 == "Debian" && $2 ~ /\/debian\/?$/ { print $2; exit }'
}

# trixie_lists: trixie's package lists, beside the system's; sets APT_CONFIG, which the caller makes local.
trixie_lists()
{
	local uri
	conf=$work/trixie
	uri=$(archive)
	[ -n "$uri" ] || { echo "this machine's apt sources name no Debian archive" >"$work/log"; return 1; }
	mkdir -p "$conf/lists/partial" "$conf/cache/archives/partial" "$conf/parts"
	{ source_line "$uri" trixie; source_line "$uri" trixie-backports; } >"$conf/list"
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
	export APT_CONFIG=$conf/apt.conf
	echo "kernel-packages: reading trixie's package lists" >&2
	apt-get -qq update >"$work/log" 2>&1
}

# Trixie's compiler and the kernel's headers as packages unpacked into a root of their own: enough for make, and chroot runs it.
newest_kernel()
{
	local root=$dir/newest/root image release build conf APT_CONFIG
	command -v unshare >/dev/null && unshare -rm true 2>/dev/null || { echo "newest needs user or mount namespaces" >"$work/log"; return 1; }
	trixie_lists || return 1
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
	tree) whole_tree tree linux-source-6.12 ;;
	newest-tree) newest_tree ;;
	esac
}

bad=()
for flavour in $(missing); do
	: >"$work/log"
	get "$flavour" && continue
	if [[ $flavour != newest* ]]; then
		own_lists && get "$flavour" && continue
		backports_lists && get "$flavour" && continue
	fi
	rm -rf "${dir:?}/$flavour"
	bad+=("$flavour ($(tail -n 1 "$work/log"))")
done
[ ${#bad[@]} -eq 0 ] || skip "cannot be had: ${bad[*]}"
