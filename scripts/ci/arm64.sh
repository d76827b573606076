#!/bin/bash
# SPDX-License-Identifier: MIT
# The userspace library on an emulated arm64, with Debian's kernel for it: minutes, half of which are compiling.  The long run takes hours.
. "$(dirname "$0")/lib.sh"
# A compiler, an emulator or packages that cannot be had skip the stage; other errors fail it.
step "packages" scripts/arm64-packages.sh || finish
form=--short
[ -z "${CI_LONG:-}" ] || form=--seconds=60
rm -rf "$CI_BUILD/arm64/build"
count_guests --arm64 "$form"
finish
