#!/bin/bash
# SPDX-License-Identifier: MIT
# The runs that take hours, before a release.
# All stages of .ci/run with CI_LONG=1, which multiplies seeds and seconds, after the programs of other people (tests/environments).
set -u
cd "$(dirname "$0")/.." || exit 1
export CI_LONG=1 CI_BUILD=${CI_BUILD:-$PWD/build-release}
make -s test-environments || exit 1
exec .ci/run
