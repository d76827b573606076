#!/bin/bash
# SPDX-License-Identifier: MIT
# The same, built with clang at -O3.
. "$(dirname "$0")/lib.sh"
with clang-19 || { skip "clang-19 is not installed"; finish; }
step "build with clang" setup "$CI_BUILD/clang" --werror -Doptimization=3 || finish
count_meson "$CI_BUILD/clang" --suite build --suite unit
finish
