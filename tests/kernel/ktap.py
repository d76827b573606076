#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Read KTAP from a kernel's log: consecutive documents without nesting, as our modules write them.

	ktap.py [FILE]		the cases of a log, and a closing line; ktap.py --self-test checks the reader
"""
import re
import sys

PREFIX = re.compile(r"^(?:<\d+>)?(?:\[ *[\d.]+\] )?(?:[a-z0-9_-]+: )?")
PLAN = re.compile(r"^1\.\.(\d+)(?:\s*#.*)?$")
RESULT = re.compile(r"^(ok|not ok)\s+(\d+)\s*(?:-\s*)?([^#]*?)\s*(?:#\s*(\S+)\s*(.*))?$")


class Case:
    def __init__(self, name, good, skip=None):
        self.name, self.good, self.skip = name, good, skip


def end_of(document, planned, cases):
    """Return the cases of a document; an incomplete one has a further case, which fails."""
    if planned is None:
        return [Case(f"document {document} has a plan", False)]
    if not planned:
        return [Case(f"document {document} plans a case", False)]
    if len(cases) != planned:
        return [Case(f"document {document} has {planned} cases, as planned (they are {len(cases)})", False)]
    return []


def parse(lines, wanted=None):
    """All cases of all documents; a log without a document, or a document cut short, fails, and one with not as many as wanted."""
    found, cases, document, planned = [], [], 0, None
    for raw in lines:
        line = PREFIX.sub("", raw.rstrip("\n"))
        if line.startswith("KTAP version"):
            if document:
                found += cases + end_of(document, planned, cases)
            document, planned, cases = document + 1, None, []
        elif document and PLAN.match(line):
            planned = int(PLAN.match(line).group(1))
        elif document and RESULT.match(line):
            verdict, number, name, word, reason = RESULT.match(line).groups()
            skip = (reason or "skipped") if (word or "").upper() == "SKIP" else None
            cases.append(Case(name, verdict == "ok" and int(number) == len(cases) + 1, skip))
    if not document:
        return [Case("the log has KTAP", False)]
    found += cases + end_of(document, planned, cases)
    if wanted not in (None, document):
        found.append(Case(f"the log has {wanted} documents of KTAP (they are {document})", False))
    return found


def self_test():
    head = ["[    1.0] KTAP version 1", "[    1.1] 1..2", "[    1.2] ok 1 one"]
    wanted = [
        (head + ["[    1.3] ok 2 two # SKIP no CPU"], [True, True]),
        (head + ["<6>[    1.3] my-mod: not ok 2 - two"], [True, False]),
        (head, [True, False]),
        (head + ["ok 3 two"], [True, False]),
        (head + ["ok 2 two", "ok 3 three"], [True, True, True, False]),
        (["KTAP version 1", "ok 1 one"], [True, False]),
        (["KTAP version 1", "1..0"], [False]),
        (["[ 1.0] BUG: died"], [False]),
        ([], [False]),
        (head + head[:2] + ["ok 1 one", "ok 2 two"], [True, False, True, True]),
    ]
    bad = [lines for lines, verdicts in wanted if [c.good for c in parse(lines)] != verdicts]
    assert parse(wanted[0][0])[1].skip == "no CPU"
    assert [c.good for c in parse(wanted[0][0], 1)] == [True, True] and not parse(wanted[0][0], 2)[-1].good
    for lines in bad:
        print("not ok", lines)
    print(f"{len(wanted) - len(bad)} passed, {len(bad)} failed")
    return 1 if bad else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    with open(sys.argv[1], encoding="utf-8", errors="replace") if len(sys.argv) > 1 else sys.stdin as log:
        cases = parse(log)
    for case in cases:
        print("ok" if case.good else "not ok", case.name, f"# SKIP {case.skip}" if case.skip else "")
    failed = sum(not case.good for case in cases)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
