# SPDX-License-Identifier: MIT
# lib.sh - counting, for the stages of .ci/run.  Source it, then call the functions below.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
CI_BUILD=${CI_BUILD:-$PWD/build-ci}
mkdir -p "$CI_BUILD"
export MESON_TESTTHREADS=$((2 * $(nproc))) # tests sleep half of the time
stage=$(basename "$0" .sh)
passed=0 failed=0 skipped=0

# step NAME COMMAND...: one step that passes (0), skips (77) or fails.
step() {
	local name=$1 rc
	shift
	"$@"
	rc=$?
	case $rc in
	0) passed=$((passed + 1)) ;;
	77) skipped=$((skipped + 1)); echo "$stage: skipped: $name" ;;
	*) failed=$((failed + 1)); echo "$stage: FAILED: $name (exit $rc)" ;;
	esac
	return $rc
}

skip() {
	skipped=$((skipped + 1))
	echo "$stage: skipped: $*"
}

# count_meson DIR ARGS...: run meson test and add its counts to the totals.
count_meson() {
	local dir=$1 out n rc
	shift
	out=$(mktemp)
	meson test -C "$dir" --print-errorlogs "$@" 2>&1 | tee "$out"
	rc=${PIPESTATUS[0]}
	n=$(meson_count 'Ok|Expected Fail' "$out")
	passed=$((passed + n))
	n=$(meson_count 'Fail|Unexpected Pass|Timeout' "$out")
	if [ "$n" -gt 0 ]; then
		python3 scripts/ci/failures.py "$dir" | sed "s/^/$stage: FAILED: /"
	elif [ "$rc" -ne 0 ]; then
		n=1
		echo "$stage: FAILED: meson test in $dir (exit $rc)"
	fi
	failed=$((failed + n))
	n=$(meson_count Skipped "$out")
	skipped=$((skipped + n))
	grep -E ' SKIP( |$)' "$out" | sed "s/^/$stage: skipped: /"
	rm -f "$out"
	return "$rc"
}

meson_count() {
	sed -nE "s/^($1): +([0-9]+) *$/\2/p" "$2" | awk '{ n += $1 } END { print n + 0 }'
}

# Tests of the suites below whose names have this pattern are not built and do not run; in the long run all of them do.
left_out=

without() {
	[ -n "${CI_LONG:-}" ] || left_out=$1
}

# Two patterns for without().  By full fences readers have one instruction more, except those that are counted per CPU, which then have locked
# instructions, as they have without restartable sequences; and counters by CPU are those by id with another index.
# The C++ tests that exist in two forms: as a release, and for debugging.
fences='^(?!rcu_sync|percpu_|many|srcu|slab|blocked|shazptr).*(?<!debug, )full fences$|, (without rseq|by CPU)$'
cpp_twice='(percpu_rwsem|srcu|slab|hazptr|idr|xarray|wfstack|lfstack|hashtable|hashmap|unordered_map) in C\+\+'

# setup DIR SUITES [TARGET...] ARGS...: make a Meson build directory, and build these targets and the tests of these suites, or everything
# if there are neither.
setup() {
	local dir=$1 suites=$2 targets=()
	shift 2
	while [ "${1:--}" = "${1#-}" ]; do targets+=("$1"); shift; done
	rm -rf "$dir"
	if meson setup "$dir" "$@" >"$dir.log" 2>&1; then
		# shellcheck disable=SC2086 # words are wanted
		[ -z "$suites" ] || mapfile -t -O ${#targets[@]} targets < <(scripts/ci/needed.py --without "$left_out" "$dir" $suites)
		ninja -C "$dir" "${targets[@]}" >>"$dir.log" 2>&1 && return 0
	fi
	tail -40 "$dir.log"
	return 1
}

# count_suites DIR SUITES ARGS...: run the tests of these suites, which setup() has built.
count_suites() {
	local dir=$1 suites=$2 named=() tests=()
	shift 2
	for suite in $suites; do named+=(--suite "$suite"); done
	# shellcheck disable=SC2086 # words are wanted
	[ -z "$left_out" ] || mapfile -t tests < <(scripts/ci/needed.py --tests --without "$left_out" "$dir" $suites)
	count_meson "$dir" --no-rebuild "${named[@]}" "$@" "${tests[@]}"
}

# True if a clone has what is in this work tree.
same_as() {
	[ -z "$(git status --porcelain 2>&1)" ] && [ "$(git -C "$1" rev-parse HEAD 2>&1)" = "$(git rev-parse HEAD)" ]
}

# plain_build [--suites SUITES] TARGETS...: these targets, and those that tests of these suites need, in the build of the first stage,
# which is made here if it is not there.  That stage has built a clone as README says, with no option, so warnings are searched for.
newcomer=$CI_BUILD/newcomer
plain=$CI_BUILD/gcc
if [ -f "$newcomer/build/build.ninja" ] && same_as "$newcomer"; then plain=$newcomer/build; fi
plain_build() {
	local suites="" log=$CI_BUILD/gcc.log
	[ "${1:-}" != --suites ] || { suites=$2; shift 2; }
	if { [ -f "$plain/build.ninja" ] || meson setup "$plain" --werror; } >"$log" 2>&1; then
		# shellcheck disable=SC2046,SC2086 # words are wanted
		ninja -C "$plain" "$@" $([ -z "$suites" ] || scripts/ci/needed.py "$plain" $suites) >>"$log" 2>&1 &&
			! grep -F "warning: " "$log" && return 0
	fi
	tail -40 "$log"
	return 1
}

# count_guests ARGS...: run the runner of guests, which prints its own counts, and add those to the totals.
count_guests() {
	local out=$CI_BUILD/$stage-run.log line p f s
	python3 tests/kernel/run.py "$@" --build "$CI_BUILD/$stage" --logs "$CI_BUILD/$stage/logs" 2>&1 | tee "$out"
	if [ "${PIPESTATUS[0]}" -eq 77 ]; then
		skip "$(tail -n 1 "$out")"
		return
	fi
	line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$out" | tail -n 1)
	read -r p f s <<<"$(sed -E 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 \4/' <<<"$line")"
	passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1})) skipped=$((skipped + ${s:-0}))
}

finish() {
	echo "$stage: $passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
	exit
}

# with COMPILER: use it, if it is there.
with() {
	command -v "$1" >/dev/null || return 1
	export CC=$1
	case $1 in
	gcc*) export CXX=g++${1#gcc} ;;
	clang*) export CXX=clang++${1#clang} ;;
	esac
}
