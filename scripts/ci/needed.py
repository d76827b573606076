#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""needed.py [--tests] [--without PATTERN] BUILD SUITE...: the targets that the tests of these suites need, or with --tests their names.

Tests of `build` may install, so they need all products.  Tests whose names have the pattern are left out.
"""
import argparse
import json
import os
import re
import subprocess


def introspect(build, what):
    return json.loads(subprocess.run(["meson", "introspect", build, what], stdout=subprocess.PIPE, check=True).stdout)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--tests", action="store_true")
    args.add_argument("--without", default="")
    args.add_argument("build", type=os.path.realpath)
    args.add_argument("suite", nargs="+")
    opt = args.parse_args()
    build, suites = opt.build, {f"quiesce:{suite}" for suite in opt.suite}
    tests = [test for test in introspect(build, "--tests")
             if suites & set(test["suite"]) and not (opt.without and re.search(opt.without, test["name"]))]
    if opt.tests:
        print(*sorted({test["name"] for test in tests}), sep="\n")
        return
    wanted = {target for test in tests for target in test["depends"]}
    if any("quiesce:build" in test["suite"] for test in tests):
        print("product")
    for target in introspect(build, "--targets"):
        if target["id"] in wanted:
            print(os.path.relpath(target["filename"][0], build))


if __name__ == "__main__":
    main()
