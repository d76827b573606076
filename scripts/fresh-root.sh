# SPDX-License-Identifier: MIT
# fresh-root.sh - a bare Debian in a directory, as a new user has it.  Source it.
#
#	fresh_root DIR [VARIANT]	make one of this machine's release, from its mirror.  Returns 0, or 1 after a line with the reason
#	in_root DIR COMMAND...		run a command in it, with mounts and process ids of its own, which end with the command; the root sees the
#					directory $in_root_too at the path that it has here

# Root's rights, and a maker of roots; it says what is missing.
fresh_root() {
	local root=$1 variant=${2:-minbase} codename mirror log
	[ "$(id -u)" = 0 ] || { echo "a fresh root needs root's rights"; return 1; }
	command -v mmdebstrap >/dev/null || { echo "mmdebstrap is not installed"; return 1; }
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
	mirror=$(apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(SITE)' 'Created-By: Packages' |
		awk -v codename="$codename" '$1 == "Debian" && $2 == codename { print $3; exit }')
	log=$(mktemp)
	# shellcheck disable=SC2086 # no mirror is no argument
	if ! mmdebstrap --quiet --variant="$variant" "$codename" "$root" $mirror >"$log" 2>&1; then
		tail -n 1 "$log"
		rm -f "$log"
		return 1
	fi
	rm -f "$log"
}

# The root is a mount of its own, as that of a machine, so that another root can be made in it.
in_root_too=
in_root() {
	local root=$1
	shift
	[ -z "$in_root_too" ] || mkdir -p "$root$in_root_too"
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount --pid --fork --kill-child sh -c '
		mount --bind "$0" "$0" && mount -t proc proc "$0/proc" && mount -t sysfs -o ro sysfs "$0/sys" && mount --rbind /dev "$0/dev" &&
			mount -t tmpfs tmpfs "$0/dev/shm" && { [ -z "$1" ] || mount --bind "$1" "$0$1"; } && shift &&
			exec chroot "$0" env -i HOME=/root TERM="${TERM:-dumb}" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
				DEBIAN_FRONTEND=noninteractive "$@"' "$root" "$in_root_too" "$@"
}
