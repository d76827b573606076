#!/bin/bash
# SPDX-License-Identifier: MIT
# Other CPUs under qemu-user, and another libc: the library and the tests that need no other library.
. "$(dirname "$0")/lib.sh"

# protected DIR: a cross file for Meson in DIR that protects branches on arm64, by landing pads and signed return addresses.  The emulator
# enforces the pads of files whose note has them, so that a program whose main() has none dies.  Debian's startup files have none either.
protected() {
	local dir=$(realpath -m "$1") cc=aarch64-linux-gnu-gcc run="qemu-aarch64-static -cpu max -L /usr/aarch64-linux-gnu" kind
	local flags=(-mbranch-protection=standard -mno-outline-atomics) links=(-nostartfiles "$dir/start.o" -Wl,-z,force-bti)
	rm -rf "$dir"
	mkdir -p "$dir"
	"$cc" -c tests/build/start_arm64.S -o "$dir/start.o" || return
	for kind in "${flags[0]}" -mbranch-protection=none; do
		"$cc" "$kind" -x c - -o "$dir/control" -x none "${links[@]}" <<<'int main(void) { return 0; }' 2>"$dir/log" || { cat "$dir/log"; return 1; }
		{ (ulimit -c 0; $run "$dir/control"); } 2>/dev/null
		case $kind,$? in
		"${flags[0]},0" | *=none,132) ;;
		*) echo "a program with $kind ends with $?"; return 1 ;;
		esac
	done
	cat >"$dir/protected.ini" <<-END
		[built-in options]
		c_args = ['${flags[0]}', '${flags[1]}']
		c_link_args = ['${links[0]}', '${links[1]}', '${links[2]}']
	END
}

for ini in cross/*.ini; do
	name=$(basename "$ini" .ini)
	compiler=$(sed -n "s/^c = '\(.*\)'/\1/p" "$ini")
	wrapper=$(sed -n "s/^exe_wrapper = \['\([^']*\)'.*/\1/p" "$ini")
	if ! command -v "$compiler" >/dev/null || ! command -v "$wrapper" >/dev/null; then
		skip "$name: $compiler or $wrapper is not installed"
		continue
	fi
	more=()
	if [ "$name" = musl ] && step "cmocka for musl" scripts/ci/musl-cmocka.sh "$CI_BUILD/musl-cmocka"; then
		more=(--cross-file "$(realpath "$CI_BUILD/musl-cmocka/musl.ini")")
	fi
	# Exclusive loads and stores; the stage arm64 builds with the compiler's defaults: which choose between both kinds of atomics when a program runs.
	if [ "$name" = aarch64 ] && step "landing pads are enforced" protected "$CI_BUILD/protected"; then
		more=(--cross-file "$(realpath "$CI_BUILD/protected/protected.ini")")
	fi
	step "$name builds" setup "$CI_BUILD/cross-$name" "unit linear" --cross-file "$ini" "${more[@]}" --werror -Dtool=disabled || continue
	count_suites "$CI_BUILD/cross-$name" "unit linear" --timeout-multiplier 10
	[ "$name" = aarch64 ] || continue
	for page in 16384 65536; do # as Apple's CPUs have them, and the largest
		echo "$stage: pages of $page bytes"
		QEMU_PAGESIZE=$page count_suites "$CI_BUILD/cross-aarch64" unit --timeout-multiplier 10
	done
	step "objects of arm64" python3 tests/build/arm64_objects.py --root . --build "$CI_BUILD/cross-aarch64"
done
step "the litmus files' AArch64 code is the compilers'" python3 tests/litmus/check_a64.py --include include
finish
