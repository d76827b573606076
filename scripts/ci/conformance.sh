#!/bin/bash
# SPDX-License-Identifier: MIT
# The C++ interfaces: every compiler, standard library and level of optimisation, and the sanitizers.
. "$(dirname "$0")/lib.sh"

# count_tap COMMAND...: run it and add what its TAP says.
count_tap() {
	local out rc
	out=$(mktemp)
	"$@" >"$out"
	rc=$?
	grep -E '^not ok|# SKIP' "$out"
	passed=$((passed + $(grep '^ok' "$out" | grep -vc SKIP)))
	skipped=$((skipped + $(grep -c 'SKIP' "$out")))
	failed=$((failed + $(grep -c '^not ok' "$out")))
	[ "$rc" -eq 0 ] || grep -q '^not ok' "$out" || failed=$((failed + 1))
	grep -q '^1\.\.' "$out" || { echo "$stage: FAILED: $* ended early"; failed=$((failed + 1)); }
	rm -f "$out"
}

# only DIR TARGETS... -- ARGS...: make a build directory and build these targets alone.
only() {
	local dir=$1 targets=()
	shift
	while [ "$1" != -- ]; do targets+=("$1"); shift; done
	shift
	rm -rf "$dir"
	meson setup "$dir" -Dtool=disabled -Dpeers=disabled --werror "$@" >"$dir.log" 2>&1 &&
		ninja -C "$dir" "${targets[@]}" >>"$dir.log" 2>&1 && return 0
	tail -40 "$dir.log"
	return 1
}

command -v g++ >/dev/null || { skip "g++ is not installed"; finish; }
build=$CI_BUILD/conformance
if step "the library builds" plain_build src/libquiesce.a; then
	count_tap tests/conformance/conformance.py --static "$plain/src/libquiesce.a" --set full
	count_tap tests/conformance/ill_formed.py --set full
fi

export TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1 history_size=4"
export ASAN_OPTIONS="quarantine_size_mb=256 detect_stack_use_after_return=1"
export UBSAN_OPTIONS="print_stacktrace=1"
for compiler in gcc clang-19; do
	with "$compiler" || { skip "$compiler is not installed"; continue; }
	# Each compiler runs with one of the two sanitizers, and with both before a release.
	sanitizers=thread
	[ "$compiler" = gcc ] || sanitizers=address,undefined
	[ -z "${CI_LONG:-}" ] || sanitizers="thread address,undefined"
	for sanitizer in $sanitizers; do
		# See asan.sh for the false reports of gcc.
		relaxed=
		[ "$compiler$sanitizer" = gccaddress,undefined ] && relaxed=" -fno-sanitize=null"
		more=
		[ "$sanitizer" = thread ] || more="-fno-sanitize-recover=all$relaxed"
		step "$sanitizer, $compiler: builds" only "$build-$compiler-${sanitizer/,/-}" \
			tests/conformance/{conformance,exhausted,ours,ours-debug} -- \
			-Db_sanitize="$sanitizer" -Db_lundef=false -Dc_args="$more" -Dcpp_args="$more" || continue
		count_meson "$build-$compiler-${sanitizer/,/-}" --no-rebuild --suite conformance --timeout-multiplier 3
	done
done
finish
