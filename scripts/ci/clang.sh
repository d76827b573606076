#!/bin/bash
# SPDX-License-Identifier: MIT
# The same library, built with clang at -O3, and the suites that look at its code.
. "$(dirname "$0")/lib.sh"
command -v clang-19 >/dev/null || { skip "clang-19 is not installed"; finish; }
export CC=clang-19 CXX=clang++-19
step "build with clang" setup "$CI_BUILD/clang" --werror -Doptimization=3 || finish
count_meson "$CI_BUILD/clang" --suite build
finish
