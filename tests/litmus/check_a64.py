#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_a64.py - the code that to_a64.py makes of each operation of atomic.h is the compiler's.

Each operation is compiled to AArch64 with one instruction for a read-modify-write, and
with two.  The accesses and fences have to be those of to_a64.py in their order; where
it has LDAPR, the compiler may have LDAR, which is stronger.

usage: check_a64.py --include DIR [--compiler CC ...]
Exit status: 0, 1 the code differs, 77 no compiler."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import to_a64  # noqa: E402

COMPILERS = ["aarch64-linux-gnu-gcc", "clang-19 --target=aarch64-linux-gnu"]
# The statement of a litmus file, and the same in C.
OPERATIONS = {
    "load_relaxed": ("r0 = quiesce_load_relaxed(x);", "return quiesce_load_relaxed(x);"),
    "load_acquire": ("r0 = quiesce_load_acquire(XX1, x);", "return quiesce_load_acquire(XX1, x);"),
    "load_consume": ("r0 = quiesce_load_consume(XX1, x);", "return quiesce_load_consume(XX1, x);"),
    "store_relaxed": ("quiesce_store_relaxed(x, 2);", "quiesce_store_relaxed(x, 2); return 0;"),
    "store_release": ("quiesce_store_release(XX1, x, 2);", "quiesce_store_release(XX1, x, 2); return 0;"),
    "xchg": ("r0 = quiesce_xchg(XX1, x, 2);", "return quiesce_xchg(XX1, x, 2);"),
    "fetch_add": ("r0 = quiesce_fetch_add(XX1, x, 2);", "return quiesce_fetch_add(XX1, x, 2);"),
    "fetch_add_relaxed": ("r0 = quiesce_fetch_add_relaxed(x, 2);", "return quiesce_fetch_add_relaxed(x, 2);"),
    "cmpxchg": ("r0 = quiesce_cmpxchg(XX1, x, 1, 2);", "int old = 1; quiesce_cmpxchg(XX1, x, &old, 2); return old;"),
    "cmpxchg_relaxed": ("r0 = quiesce_cmpxchg_relaxed(x, 1, 2);", "int old = 1; quiesce_cmpxchg_relaxed(x, &old, 2); return old;"),
    "fence_full": ("quiesce_fence_full(XX1);", "quiesce_fence_full(XX1); return 0;"),
    "fence_light": ("quiesce_fence_light(XX1);", "quiesce_fence_light(XX1); return 0;"),
}
ACCESS = re.compile(r"^\s+(ld\w*|st\w*|swp\w*|cas\w*|dmb)\s+(.*)$", re.M | re.I)


def accesses(code):
    """The mnemonics of loads, stores and fences in @code, in capitals, without those of the stack."""
    return [m[1].upper() for m in ACCESS.finditer(code) if "sp" not in m[2].lower()]


def expected(statement, form):
    text = "C T\n(*\n *)\n{ x=0; }\nP0(int *x)\n{\n\tint r0;\n\t%s\n}\nexists (0:r0=0)\n" % statement
    return accesses(next(iter(to_a64.programs(text, form))).replace(";", ""))


def compiled(compiler, include, code, options, tmp):
    path = os.path.join(tmp, "operation.c")
    with open(path, "w") as f:
        f.write("#include <quiesce/atomic.h>\nint operation(int *x);\nint operation(int *x) { (void)x; %s }\n" % code)
    out = subprocess.run(compiler.split() + ["-O2", "-ffreestanding", "-I", include, "-S", "-o", "-", path] + options,
                         capture_output=True, text=True, check=True).stdout
    return accesses(out)


def same(ours, theirs):
    return len(ours) == len(theirs) and all(a == b or (a, b) == ("LDAPR", "LDAR") for a, b in zip(ours, theirs))


def main():
    ap = argparse.ArgumentParser(description="compare to_a64.py with compilers")
    ap.add_argument("--include", required=True)
    ap.add_argument("--compiler", action="append")
    args = ap.parse_args()
    compilers = [c for c in args.compiler or COMPILERS if shutil.which(c.split()[0])]
    if not compilers:
        print("no compiler for AArch64")
        return 77
    forms = [(to_a64.LSE, "-march=armv8.1-a"), (to_a64.LLSC, "-march=armv8-a+rcpc -mno-outline-atomics")]
    number = bad = 0
    print("1..%d" % (len(compilers) * len(forms) * len(OPERATIONS)))
    with tempfile.TemporaryDirectory() as tmp:
        for compiler in compilers:
            for form, options in forms:
                for name, (statement, code) in OPERATIONS.items():
                    number += 1
                    ours, theirs = expected(statement, form), compiled(compiler, args.include, code, options.split(), tmp)
                    ok = same(ours, theirs)
                    bad += not ok
                    print("%s %d - %s, %s, %s" % ("ok" if ok else "not ok", number, name, form.name, compiler))
                    if not ok:
                        print("# to_a64.py: %s\n# compiler: %s" % (" ".join(ours), " ".join(theirs)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
