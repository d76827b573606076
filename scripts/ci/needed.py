#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""needed.py BUILD SUITE...: the targets that the tests of these suites need; tests of `build` may install, so they need all products."""
import json
import os
import subprocess
import sys


def introspect(build, what):
    return json.loads(subprocess.run(["meson", "introspect", build, what], stdout=subprocess.PIPE, check=True).stdout)


def main():
    build, suites = os.path.realpath(sys.argv[1]), {f"quiesce:{suite}" for suite in sys.argv[2:]}
    tests = [test for test in introspect(build, "--tests") if suites & set(test["suite"])]
    wanted = {target for test in tests for target in test["depends"]}
    if any("quiesce:build" in test["suite"] for test in tests):
        print("product")
    for target in introspect(build, "--targets"):
        if target["id"] in wanted:
            print(os.path.relpath(target["filename"][0], build))


if __name__ == "__main__":
    main()
