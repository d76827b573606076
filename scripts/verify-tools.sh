#!/bin/bash
# SPDX-License-Identifier: MIT
# verify-tools.sh DIR - unpack Debian sid's herdtools7 into DIR, beside the system.
#
# Nothing is installed.  The package source is this machine's own Debian source
# with its suite changed to sid; the tools run with sid's libc, also in DIR, so
# they work on any release.  Afterwards: DIR/bin/herd7,
# models in DIR/root/usr/share/herdtools7/herd.
# Exit status: 0; 77 (with a message) sid cannot be reached; 2 wrong usage.
set -u

if [ $# -ne 1 ]; then
	echo "usage: verify-tools.sh DIR" >&2
	exit 2
fi

skip()
{
	echo "verify-tools: skipped: $*" >&2
	exit 77
}

command -v apt-get >/dev/null && command -v dpkg >/dev/null || skip "not a Debian system"
mkdir -p "$1" || skip "cannot create $1"
dir=$(cd "$1" && pwd)
apt=$dir/apt
arch=$(dpkg --print-architecture)

# Both functions print the first stanza or line of the machine's sources that offers a main
# Debian suite (not -security or -backports alone), with its suites replaced by sid.
sid_from_deb822()
{
	cat "$@" 2>/dev/null | awk -v RS= '
		/(^|\n)Types:[^\n]*deb/ && /(^|\n)Components:[^\n]*main/ && /(^|\n)Suites:/ {
			plain = 0
			n = split($0, line, "\n")
			for (i = 1; i <= n; i++)
				if (line[i] ~ /^Suites:/) {
					m = split(line[i], suite, " ")
					for (j = 2; j <= m; j++)
						if (suite[j] ~ /^(bullseye|bookworm|trixie|forky|stable|testing|unstable|sid)$/)
							plain = 1
				}
			if (!plain || /(^|\n)Enabled: *no/)
				next
			for (i = 1; i <= n; i++)
				if (line[i] ~ /^Suites:/)
					print "Suites: sid"
				else if (line[i] ~ /^Types:/)
					print "Types: deb"
				else if (line[i] !~ /^#/)
					print line[i]
			exit
		}'
}

sid_from_lines()
{
	cat "$@" 2>/dev/null | awk '
		$1 == "deb" {
			at = ($2 ~ /^\[/) ? 3 : 2
			while (at > 2 && at <= NF && $(at - 1) !~ /\]$/)
				at++
			if ($(at + 1) !~ /^(bullseye|bookworm|trixie|forky|stable|testing|unstable|sid)$/)
				next
			$(at + 1) = "sid"
			print
			exit
		}'
}

mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$dir/root" "$dir/bin" "$dir/debs" || skip "cannot write to $dir"
sources=$apt/sid.sources
shopt -s nullglob
sid_from_deb822 /etc/apt/sources.list.d/*.sources > "$sources"
if [ ! -s "$sources" ]; then
	sources=$apt/sid.list
	sid_from_lines /etc/apt/sources.list /etc/apt/sources.list.d/*.list > "$sources"
fi
[ -s "$sources" ] || skip "this machine's apt sources name no Debian suite"

cat > "$apt/apt.conf" <<EOF
Dir::State "$apt";
Dir::State::lists "$apt/lists";
Dir::State::status "/dev/null";
Dir::Cache "$apt/cache";
Dir::Etc::sourcelist "$sources";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false"; // a mirror may lag; the signature is still checked
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
EOF
export APT_CONFIG=$apt/apt.conf
apt-get -qq update >"$apt/log" 2>&1 || skip "sid is out of reach: $(tail -n 1 "$apt/log")"
(cd "$dir/debs" && rm -f ./*.deb && apt-get -qq download herdtools7 libc6 libgmp10 libgcc-s1 libstdc++6 zlib1g) \
	>"$apt/log" 2>&1 || skip "sid has no herdtools7 for $arch: $(tail -n 1 "$apt/log")"
for deb in "$dir"/debs/*.deb; do
	dpkg -x "$deb" "$dir/root" || skip "cannot unpack ${deb##*/}"
done
rm -rf "$dir/debs"

loader=$(find "$dir/root" \( -name 'ld-linux*.so*' -o -name 'ld64.so*' \) -print -quit)
[ -n "$loader" ] || skip "no loader in sid's libc6"
libs=$(dirname "$(find "$dir/root" -name libc.so.6 -print -quit)"):$dir/root/usr/lib
for tool in herd7 litmus7 klitmus7; do
	printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" "$@"\n' "$loader" "$libs" "$dir/root/usr/bin/$tool" \
		> "$dir/bin/$tool"
	chmod +x "$dir/bin/$tool"
done
version=$("$dir/bin/herd7" -version 2>&1) || skip "herd7 does not start: $version"
echo "verify-tools: herd7 $version in $dir/bin"
