#!/bin/bash
# SPDX-License-Identifier: MIT
# The crates of rust/: format, lints, tests, documentation, each stress test against a library that does not wait, and a package that builds
# without a network. It needs crates of crates.io, which cargo has from an earlier run or fetches.
. "$(dirname "$0")/lib.sh"
command -v cargo >/dev/null || { skip "no cargo: scripts/bootstrap.sh rust"; finish; }
cd rust || exit 1
export CARGO_TARGET_DIR=$CI_BUILD/rust CARGO_TERM_COLOR=never
if command -v ccache >/dev/null; then export CC="ccache gcc" CCACHE_NOHASHDIR=1; else export CC=gcc; fi

cargo fetch --locked >"$CI_BUILD/rust-fetch.log" 2>&1 || { tail -3 "$CI_BUILD/rust-fetch.log"; skip "crates cannot be fetched"; finish; }
export CARGO_NET_OFFLINE=true

# The tests that failed or passed are counted singly: cargo prints "test NAME ... ok".
count_cargo() {
	local out=$CI_BUILD/rust-test.log n
	cargo test "$@" 2>&1 | tee "$out" | grep -vE '^(test .* ok|running|$)'
	[ "${PIPESTATUS[0]}" -eq 0 ] || { failed=$((failed + 1)); echo "$stage: FAILED: cargo test $*"; }
	n=$(grep -cE '^test .* ok$' "$out")
	passed=$((passed + n))
}

# Where nothing waits for readers each stress test has to fail, in whichever way; those that pass are named.
control() (
	survived=0
	export RUSTFLAGS="--cfg quiesce_control" CARGO_TARGET_DIR=$CI_BUILD/rust-control
	cargo test --no-run -p quiesce --test stress >"$CI_BUILD/rust-control.log" 2>&1 || { tail -20 "$CI_BUILD/rust-control.log"; exit 1; }
	tests=$(cargo test -q -p quiesce --test stress -- --list 2>/dev/null | sed -n 's/: test$//p')
	[ -n "$tests" ] || exit 1
	for test in $tests; do
		if MALLOC_PERTURB_=85 timeout 60 cargo test -q -p quiesce --test stress -- --exact "$test" >"$CI_BUILD/rust-control-$test.log" 2>&1; then
			echo "SURVIVED $test: it passes although nothing waits for readers"
			survived=1
		fi
	done
	exit $survived
)

if cargo fmt --version >/dev/null 2>&1; then step "format" cargo fmt --check -p quiesce -p quiesce-sys -p quiesce-bindgen; else skip "no rustfmt"; fi
if cargo clippy --version >/dev/null 2>&1; then
	step "lints" cargo clippy -q --locked --all-targets -p quiesce -p quiesce-sys --features quiesce/lock_api -- -D warnings
else
	skip "no clippy"
fi
count_cargo --locked -p quiesce-sys -p quiesce --features quiesce/lock_api
step "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc -q --locked --no-deps -p quiesce -p quiesce-sys --features quiesce/lock_api
step "control" control
# The packages are built from their own tarballs, in which there is no link to the repository. Before 1.90 it needs published dependencies.
if [ "$(printf '%s\n' 1.90 "$(cargo --version | cut -d' ' -f2)" | sort -V | head -n 1)" = 1.90 ]; then
	step "packages" cargo package -q --locked --allow-dirty -p quiesce-sys -p quiesce
else
	step "package" cargo package -q --locked --allow-dirty -p quiesce-sys
fi
if ls /usr/lib/*/libclang*.so* /usr/lib/llvm-*/lib/libclang*.so* 2>/dev/null | grep -qE 'libclang(-[0-9]+)?\.so'; then
	count_cargo --locked -p quiesce-bindgen
else
	skip "no libclang: the bindings are not compared"
fi
finish
