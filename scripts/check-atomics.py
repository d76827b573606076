#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every shared access goes through include/quiesce/atomic.h.

No other file uses an atomic builtin, volatile (except of void, which cannot be accessed) or assembly, except
src/platform/ and include/quiesce/arch/, examples/, which are written as users write, and in C++ headers, tools/, tests/,
cases/ and liburcu/ a line that says why with
"raw: reason" in a comment on it or in the three lines above (or, for a whole
file, "raw, whole file: reason" in its first 40 lines).
"""
import pathlib
import re
import sys

import csource

RAW = re.compile(
    r"\b__atomic_\w+|\b__sync_\w+|\b_Atomic\b|\bstdatomic\b|\batomic_\w+\s*\(|\bstd::atomic"
    r"|\bvolatile\b(?!\s+(?:sig_atomic_t|void\b))|\b__asm__\b|\basm\b|\b__builtin_ia32_[lms]fence\b|\b(?:READ|WRITE)_ONCE\b")
EXEMPT = ("include/quiesce/atomic.h", "include/quiesce/arch/", "src/platform/", "kernel/", "examples/",
          "liburcu/include/urcu/uatomic.h", "liburcu/include/urcu/compiler.h", "liburcu/include/urcu/arch/", "liburcu/include/quiesce-urcu/word.h",
          "liburcu/include/quiesce-urcu/cast.h")
MAY_SAY_RAW = ("tools/", "tests/", "cases/", "liburcu/")


def problems(root):
    for name in csource.c_files(str(root)):
        if name.startswith(EXEMPT):
            continue
        lines, code = csource.read(root, name)
        may = name.startswith(MAY_SAY_RAW) or name.endswith(".hpp")
        if may and re.search(r"raw, whole file: \w", "\n".join(lines[:40])):
            continue
        for i, line in enumerate(code):
            match = RAW.search(line)
            said = re.search(r"\braw: \w", "\n".join(lines[max(0, i - 3):i + 1]))
            if match and not (may and said):
                yield f"{name}:{i + 1}: {match.group()} outside the atomics layer"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    bad = list(problems(root))
    print("\n".join(bad + [f"check-atomics: {len(bad)} problems"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
