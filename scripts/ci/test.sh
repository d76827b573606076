#!/bin/bash
# SPDX-License-Identifier: MIT
# What `make test` runs, with gcc.
. "$(dirname "$0")/lib.sh"
step "build with gcc" setup "$CI_BUILD/gcc" --werror || finish
count_meson "$CI_BUILD/gcc"
finish
