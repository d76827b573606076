#!/bin/bash
# SPDX-License-Identifier: MIT
# arm64-packages.sh [DIR] - unpack Debian's kernel and libraries of arm64 into DIR/arm64, beside the system.
#
# It installs nothing and needs no root's rights: apt of this machine downloads the packages of its own suites for the other CPU, with
# lists and a status of its own, and dpkg-deb unpacks them.  DIR is ~/.cache/quiesce-kernels if not given.
# Afterwards DIR/arm64 has: release (the kernel's name), vmlinuz, root (the libraries, busybox), and packages.ini, which completes
# cross/aarch64.ini for Meson by them.  kmake is make in the kernel's build directory, with the cross compiler (as in kernel-packages.sh);
# it is missing where the programs of the kernel's build, which are this machine's, are not to be had in the same version.
# An existing directory is kept; remove it to get a newer kernel.
# Exit status: 0; 77 (with a message) the packages are not available.
set -u

cache=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/quiesce-kernels}

skip()
{
	[ ! -e "$cache/arm64/ready" ] || { echo "arm64-packages: no modules can be built: $*" >&2; exit 0; }
	echo "arm64-packages: skipped: $*" >&2
	exit 77
}

# The directory of an older version of this script is without kmake.
complete()
{
	[ -e "$cache/arm64/ready" ] && [ -e "$cache/arm64/kmake" ]
}
! complete || exit 0
mkdir -p "$cache" 2>/dev/null || skip "cannot create $cache"
cache=$(cd "$cache" && pwd)
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || skip "not a Debian system"
exec 9>"$cache/arm64.lock"
flock 9 # another run may be unpacking
! complete || exit 0
dir=$cache/arm64
[ -e "$dir/ready" ] || rm -rf "$dir"
mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" "$dir/debs"
trap 'rm -rf "$dir/apt" "$dir/debs"; [ -e "$dir/ready" ] || rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
log=$dir/debs/log

# The suites of this machine, whatever form its sources have.
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keys" ] && keys="[signed-by=$keys] " || keys=
apt-get indextargets --format '$(REPO_URI) $(RELEASE)' "Created-By: Packages" 2>/dev/null | sort -u |
	while read -r uri suite; do echo "deb $keys$uri $suite main"; done >"$dir/apt/sources.list"
cat >"$dir/apt/apt.conf" <<-END
	APT::Architecture "arm64";
	APT::Architectures { "arm64"; };
	APT::Sandbox::User "root";
	APT::Update::Error-Mode "any";
	Acquire::Languages "none";
	Dir::State "$dir/apt";
	Dir::State::lists "$dir/apt/lists";
	Dir::State::status "/dev/null";
	Dir::Cache "$dir/apt/cache";
	Dir::Etc::sourcelist "$dir/apt/sources.list";
	Dir::Etc::sourceparts "/dev/null";
	Dir::Etc::preferencesparts "/dev/null";
	END
export APT_CONFIG=$dir/apt/apt.conf
echo "arm64-packages: reading package lists" >&2
apt-get -qq update >"$log" 2>&1 || skip "$(tail -n 1 "$log")"

# The cloud flavour is a third of the standard one, and boots QEMU's machine as well.
newest()
{
	apt-cache pkgnames linux-image- | grep -xE "linux-image-$1[^ ]*[0-9]-cloud-arm64" | sort -V | tail -n 1
}
root=$dir/root
# modules RELEASE: the headers of the kernel, and what builds modules with them here.
modules()
{
	local base=${1%-cloud-arm64} headers=$root/usr/src/linux-headers-$1 deb
	(
		cd "$dir/debs" || exit
		rm -f -- *.deb
		apt-get -qq download "linux-headers-$1" "linux-headers-$base-common" &&
			env -u APT_CONFIG apt-get -qq -o APT::Sandbox::User=root download "linux-kbuild-$base"
	) >"$log" 2>&1 || return
	for deb in "$dir"/debs/*.deb; do dpkg-deb -x "$deb" "$root" || return; done
	sed -i "s|/usr/src|$root/usr/src|" "$headers/Makefile" # the one absolute path
	# shellcheck disable=SC2016 # for the script
	printf '#!/bin/sh\nsrc=$1\nshift\nexec make -C "%s" M="$src" ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- "$@"\n' "$headers" >"$dir/kmake"
	chmod +x "$dir/kmake"
}

if [ ! -e "$dir/ready" ]; then
	image=$(newest '6\.12\.')
	[ -n "$image" ] || image=$(newest '')
	[ -n "$image" ] || skip "no package linux-image-*-cloud-arm64 in this machine's apt sources"
	packages=("$image" libc6 libgcc-s1 libatomic1 libstdc++6 busybox-static libcmocka0 libcmocka-dev libjansson4 libjansson-dev)
	echo "arm64-packages: downloading ${packages[*]}" >&2
	(cd "$dir/debs" && apt-get -qq download "${packages[@]}") >"$log" 2>&1 || skip "$(tail -n 1 "$log")"
	mkdir -p "$root"
	for deb in "$dir"/debs/*.deb; do
		case $deb in
		*/linux-image-*) dpkg-deb --fsys-tarfile "$deb" | tar -C "$root" -x ./boot ;;
		*) dpkg-deb -x "$deb" "$root" ;;
		esac || skip "cannot unpack $deb"
	done

	cat >"$dir/packages.ini" <<-END
		# meson setup build-arm64 --cross-file cross/aarch64.ini --cross-file $dir/packages.ini
		[binaries]
		cpp = 'aarch64-linux-gnu-g++'
		pkgconfig = 'pkg-config'
		exe_wrapper = ['qemu-aarch64-static', '-L', '$root']

		[properties]
		have_cpp = true
		sys_root = '$root'
		pkg_config_libdir = '$root/usr/lib/aarch64-linux-gnu/pkgconfig'

		[built-in options]
		c_link_args = ['-Wl,-rpath-link,$root/usr/lib/aarch64-linux-gnu']
		cpp_link_args = ['-Wl,-rpath-link,$root/usr/lib/aarch64-linux-gnu']
		END
	echo "${image#linux-image-}" >"$dir/release"
	ln -sfn "root/boot/vmlinuz-${image#linux-image-}" "$dir/vmlinuz"
fi
modules "$(cat "$dir/release")" || echo "arm64-packages: no modules can be built: $(tail -n 1 "$log")" >&2
touch "$dir/ready"
echo "arm64-packages: $(cat "$dir/release")" >&2
