#!/bin/bash
# SPDX-License-Identifier: MIT
# README's first commands, as a new user types them, in a bare root of Debian; then the other tests on this machine.
#
# Where no root can be made, everything runs on this machine.  The root gets the commit, not the work tree.  It sees the clone at the path
# that it has here, so that its build serves this stage and later ones, if the work tree is that commit.
. "$(dirname "$0")/lib.sh"
. scripts/fresh-root.sh
with gcc

# The seconds that README promises for `make WHAT`.
promised() {
	python3 - "$1" <<-'END'
	import re, sys
	words = {"two": 2, "three": 3, "four": 4, "five": 5, "ten": 10}
	line = re.search(rf"^    make {sys.argv[1]} .*?(\w+) minutes$|^    make {sys.argv[1]} .*: less than (\w+)$", open("README.md").read(), re.M)
	print(60 * words[line[1] or line[2]])
	END
}

# in_time WHAT SECONDS: this machine may take half as long again as README promises.
in_time() {
	local promise
	promise=$(promised "$1") || return 1
	echo "test: make $1 took $2 s in the fresh root; README promises $promise s"
	[ "$2" -le $((promise * 3 / 2)) ]
}

# typed NAME COMMAND: run it as a user of the root, in the clone; its output goes to $CI_BUILD/NAME.out, its seconds to $took.
typed() {
	local start=$SECONDS rc
	in_root_too=$clone in_root "$root" sh -c "cd '$clone' && $2" >"$CI_BUILD/$1.out" 2>&1
	rc=$?
	took=$((SECONDS - start))
	return $rc
}

run_as_user() {
	local rc
	typed make-run "make run"
	rc=$?
	python3 tests/build/run.py --printed "$CI_BUILD/make-run.out" $rc >"$CI_BUILD/make-run.tap" && return
	grep -v '^ok' "$CI_BUILD/make-run.tap"
	tail -n 40 "$CI_BUILD/make-run.out"
	return 1
}

test_as_user() {
	typed make-test "make test"
	grep -E ' SKIP( |$)' "$CI_BUILD/make-test.out" | sed "s/^/test: skipped: /"
	python3 scripts/ci/failures.py "$clone/build" | sed "s/^/test: FAILED: /"
	read -r p f s <<<"$(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' "$CI_BUILD/make-test.out" | tail -n 1)"
	[ -n "${s:-}" ] || { tail -n 40 "$CI_BUILD/make-test.out"; return 1; }
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	echo "test: make test: $p passed, $f failed, $s skipped"
}

no_warnings() {
	! grep -hF "warning: " "$CI_BUILD"/make-{run,test}.out
}

newcomer() {
	local start=$SECONDS
	root=$(mktemp -d)
	trap 'rm -rf "$root"' EXIT
	chmod 755 "$root"
	why=$(fresh_root "$root/root") || return 1
	root=$root/root
	echo "test: a bare root took $((SECONDS - start)) s"
	clone=$newcomer
	same_as . || clone=$root/quiesce
	git clone -q . "$clone"
	step "apt-get install make git" in_root "$root" sh -c 'apt-get update -q && apt-get install -y make git' >"$CI_BUILD/make-git.out" || return 0
	step "make run" run_as_user && step "make run in the promised time, and a half" in_time run $took
	step "make test" test_as_user && step "make test in the promised time, and a half" in_time test $took
}

# Meson searches anew for what the root did not have.  Without its sources named it would take those of this directory.
taken_over() {
	plain=$newcomer/build
	{ meson configure --clearcache "$plain" && meson setup --reconfigure "$plain" "$newcomer"; } >"$CI_BUILD/gcc.log" 2>&1 && return
	tail -40 "$CI_BUILD/gcc.log"
	return 1
}

rm -rf "$plain" "$newcomer" "$CI_BUILD"/make-{run,test}.out
plain=$CI_BUILD/gcc
if newcomer; then
	step "no warnings in the fresh root" no_warnings
	if [ -f "$newcomer/build/build.ninja" ]; then
		step "the build of the fresh root is taken over" taken_over || { rm -rf "$newcomer"; plain=$CI_BUILD/gcc; }
	fi
	# `make test` installs no second compiler: the tests that use one are run here.  What `quiesce run` prints was checked by run_as_user,
	# and the stage `model` has Spin.
	step "build with gcc" plain_build --suites "slow clang" || finish
	count_suites "$plain" "slow clang" --no-suite run --no-suite model
else
	echo "test: no bare root: $why; on this machine instead"
	step "build with gcc" plain_build || finish
	count_meson "$plain"
fi
finish
