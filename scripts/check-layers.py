#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""#includes point down only: tests -> cases, tools, kernel -> ds -> primitives -> platform."""
import pathlib
import re
import sys

import csource

FLOORS = [  # the first prefix that fits; a file includes files of its own floor or below
    (0, ("include/quiesce/base.h", "include/quiesce/atomic.h", "include/quiesce/control.h",
         "src/platform/")),
    (2, ("include/quiesce/ds/", "src/ds/")),
    (1, ("include/quiesce/", "src/")),
    (3, ("tools/", "cases/", "kernel/")),
    (4, ("tests/",)),
]
# The simulator hands out the reader's TLS block, which rcu.h declares.
ALLOWED = {("src/platform/sim/", "include/quiesce/rcu.h"), ("src/platform/perturb", "include/quiesce/rcu.h"),
           ("src/platform/count.h", "include/quiesce/percpu.h")}


def floor(name):
    return next((f for f, prefixes in FLOORS if name.startswith(prefixes)), None)


def resolve(root, name, target):
    """The project's file that an #include means, or None."""
    for base in (pathlib.PurePath(name).parent, "include", "src"):
        path = (root / base / target).resolve()
        if path.is_file() and path.is_relative_to(root):
            return str(path.relative_to(root))
    return None


def problems(root):
    for name in csource.c_files(str(root)):
        lines, _ = csource.read(root, name)
        for number, line in enumerate(lines, 1):
            match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
            target = match and resolve(root, name, match.group(1))
            if not target or floor(name) is None or floor(target) is None:
                continue
            if any(name.startswith(a) and target == b for a, b in ALLOWED):
                continue
            if floor(target) > floor(name):
                yield f"{name}:{number}: includes {target}, which is a floor above"
            if floor(name) == 3 and target.startswith("src/"):
                yield f"{name}:{number}: includes {target}, which is private to the library"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    bad = list(problems(root))
    print("\n".join(bad + [f"check-layers: {len(bad)} problems"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
