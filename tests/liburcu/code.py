#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The face's atomic operations and lists, as the compilers translate them: no more instructions than liburcu's assembly.

Compiles code.c, and counts in each function the instructions but for the return, and the full barriers among them: on x86 locked
instructions and xchg with memory, on arm64 dmb.  Of these there must be as many as the table says, not fewer.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BASE = ["-O2", "-std=gnu11", "-g0", "-fcf-protection=none", "-fno-stack-protector", "-fomit-frame-pointer", "-Wno-missing-prototypes"]
ARM = ["-O2", "-std=gnu11", "-g0", "-mno-outline-atomics"]
# Each operation has its number of instructions and full barriers on x86, and of full barriers on arm64.
TYPED = {"set": (1, 0, 0), "read": (1, 0, 0), "xchg": (2, 1, 1), "cmpxchg": (2, 1, 1), "add_return": (4, 1, 1), "sub_return": (5, 1, 1),
         "put": (4, 1, 1), "add": (1, 1, 0), "sub": (1, 1, 0), "inc": (1, 1, 0), "dec": (1, 1, 0), "or": (1, 1, 0), "and": (1, 1, 0),
         "set_fence": (1, 1, 1), "read_fence": (2, 1, 1)}
OTHERS = {"smp_mb": (1, 1, 1), "smp_rmb": (0, 0, 1), "smp_wmb": (0, 0, 1), "mb_inc_mb": (3, 1, 2), "or_between": (3, 1, 0), "beside": (2, 0, 1), "dereference": (1, 0, 0),
          "assign": (1, 0, 0), "xchg_pointer": (2, 1, 1), "cmpxchg_pointer": (3, 1, 1), "list_add": (7, 0, 0), "list_del": (4, 0, 0),
          "list_walk": (10, 0, 0), "hlist_walk": (17, 0, 0), "pause_until": (6, 0, 0)}
TABLE = {f"{t}_{name}": row for t in ("char", "short", "int", "long") for name, row in TYPED.items()} | OTHERS
LOCKED = re.compile(r"^lock\b|^xchg.*\(")
PADDING = re.compile(r"^(?:nop|cs nop|data16|xchg +%ax,%ax|int3|ret)")


def functions(compiler, objdump, flags, source):
    """{name: instructions}"""
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "code.o"
        subprocess.run([*compiler, *flags, "-c", str(source), "-o", made], check=True)
        text = subprocess.run([objdump, "-d", "--no-show-raw-insn", made], check=True, capture_output=True, text=True).stdout
    found, body = {}, []
    for line in text.splitlines():
        if begins := re.match(r"[0-9a-f]+ <(\w+)>:", line):
            body = found.setdefault(begins.group(1), [])
        elif instruction := re.match(r"\s*[0-9a-f]+:\s+(.*?)\s*$", line):
            body.append(re.sub(r"\s+", " ", instruction.group(1)))
    return {name: [i for i in body if not PADDING.match(i)] for name, body in found.items()}


def x86_problems(found):
    for name, (limit, barriers, _) in TABLE.items():
        body = found[name]
        # These instructions do not count: clang extends small results, and sets a register to 0 first.
        slack = sum(bool(re.match(r"(?:mov[sz]|xor|cltq|cwtl|c[bw]t)", i)) for i in body)
        if len(body) - slack > limit or any(re.match(r"[lms]fence|call", i) for i in body):
            yield f"{name} has {len(body)} instructions, at most {limit}: {'; '.join(body)}"
        if sum(bool(LOCKED.match(i)) for i in body) != barriers:
            yield f"{name} needs {barriers} full barriers: {'; '.join(body)}"
    for name, operand in (("mb_inc_mb", "(%rsi)"), ("or_between", " 0x0(%rip)"), ("beside", "(%rdi)")):
        if sum(operand in i for i in found[name]) != 2:
            yield f"{name}: the compiler made one access of two: {'; '.join(found[name])}"


def arm_problems(found):
    for name, (_, _, barriers) in TABLE.items():
        body = found[name]
        if sum(i.startswith("dmb") for i in body) != barriers:
            yield f"{name} needs {barriers} barriers: {'; '.join(body)}"


def planted(problems, found):
    """Check that a missing operation is detected, and one that occurs twice."""
    return bool(list(problems(found | {"long_xchg": []}))) and bool(list(problems(found | {"smp_mb": found["smp_mb"] * 2})))


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--include", type=pathlib.Path, action="append", required=True)
    include = [f"-I{i}" for i in args.parse_args().include]
    source = pathlib.Path(__file__).parent / "code.c"
    x86 = subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True).stdout.strip() == "x86_64"
    builds = [([c], "objdump", BASE, x86_problems) for c in ("gcc", "clang-19", "clang") if x86 and shutil.which(c)]
    if shutil.which("aarch64-linux-gnu-gcc"):
        builds += [(["aarch64-linux-gnu-gcc", f"-march={a}"], "aarch64-linux-gnu-objdump", ARM, arm_problems) for a in ("armv8-a", "armv8.2-a")]
    if not builds:
        print("1..0 # SKIP no compiler for x86-64 or arm64")
        return 0
    print(f"1..{2 * len(builds)}")
    bad = 0
    for number, (compiler, objdump, flags, problems) in enumerate(builds):
        found = functions(compiler, objdump, flags + include, source)
        wrong = [p for p in (list(problems(found)) if set(TABLE) <= set(found) else ["functions are missing"])]
        seen = planted(problems, found)
        print(f"{'not ok' if wrong else 'ok'} {2 * number + 1} - {' '.join(compiler)}: as few instructions as liburcu's")
        print("\n".join("# " + w for w in wrong), end="\n" if wrong else "")
        print(f"{'ok' if seen else 'not ok'} {2 * number + 2} - {' '.join(compiler)}: planted ones are seen")
        bad += bool(wrong) + (not seen)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
