#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""failures.py BUILD: a line for each test that failed in the last `meson test` of a build directory."""
import json
import pathlib
import re
import sys

GOOD = ("OK", "EXPECTEDFAIL", "SKIP")
COMPLAINT = re.compile(r"^not ok|^watchdog: |Sanitizer: |runtime error: ")


def why(test):
    """Return the error lines of a test, or its last output."""
    out = (test.get("stdout") or "").strip().split("\n")
    err = (test.get("stderr") or "").split("\n")
    complaints = [line.strip() for line in out + err if COMPLAINT.search(line)]
    if complaints:
        return "; ".join(complaints[:4])[:400]
    return f"exit status {test['returncode']}, last said: {(out[-1] or 'nothing')[:100]}"


def main():
    log = pathlib.Path(sys.argv[1]) / "meson-logs/testlog.json"
    for line in log.read_text(encoding="utf-8").splitlines():
        test = json.loads(line)
        if test["result"] not in GOOD:
            print(f"{test['name']}: {test['result']} after {test['duration']:.0f} s: {why(test)}")


if __name__ == "__main__":
    main()
