#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The inline fast paths, as the compilers translate them.

Compiles fastpath.c and follows each function from its entry to its return with
every conditional branch not taken: that is the path the CPU falls through.  On
it there is no call, no locked instruction and no fence, and at most as many
instructions as the table says.  Not counted: the return, and pushes and pops
of a frame that only the slow path needs (clang saves early).
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BASE = ["-O2", "-std=gnu11", "-g0", "-fcf-protection=none", "-fno-stack-protector"]
# Instructions in lock, unlock, whole section.  A compiler that reaches an external
# variable through the GOT (clang; gcc with -fPIC) needs one more for quiesce_rcu_v1.
LIMITS = {"x86": (6, 5, 14), "x86-got": (7, 5, 15), "arm64": (11, 9, 23)}
NAMES = ("fast_rcu_read_lock", "fast_rcu_read_unlock", "fast_rcu_section")
X86 = {
    "stop": re.compile(r"ret"), "jump": re.compile(r"jmp"), "branch": re.compile(r"j[a-z]+"),
    "frame": re.compile(r"(push|pop|endbr64|nop[wl]?|data16|cs|leave)\b|(add|sub)\s+\$\w+,%rsp|mov\s+%rsp,%rbp"),
    "bad": re.compile(r"call|lock\b|[lms]fence|xchg\s.*\(|cmpxchg|syscall|int\b"),
}
ARM64 = {
    "stop": re.compile(r"ret"), "jump": re.compile(r"b$|b\s"), "branch": re.compile(r"b\.|cbn?z|tbn?z"),
    "frame": re.compile(r"(stp|ldp)\s|mov\s+x29, sp|nop|bti|paciasp|autiasp|(str|ldr)\s.*\[sp"),
    "bad": re.compile(r"blr?\b|dmb|dsb|isb|ldx|stx|ldax|stlx|cas|swp|ld(add|set|clr)|svc"),
}
BUILDS = [
    ("gcc", [], "objdump", X86, "x86"),
    ("gcc", ["-fPIC"], "objdump", X86, "x86-got"),
    ("gcc", ["-O3"], "objdump", X86, "x86"),
    ("clang-19", [], "objdump", X86, "x86-got"),
    ("clang-19", ["-fPIC"], "objdump", X86, "x86-got"),
    ("aarch64-linux-gnu-gcc", [], "aarch64-linux-gnu-objdump", ARM64, "arm64"),
    ("aarch64-linux-gnu-gcc", ["-fPIC"], "aarch64-linux-gnu-objdump", ARM64, "arm64"),
]


def disassemble(objdump, obj):
    """{function: [(address, instruction, target of a branch or None, relocated)]}"""
    text = subprocess.run([objdump, "-dr", "--no-show-raw-insn", obj], capture_output=True, text=True, check=True).stdout
    functions, current = {}, None
    for line in text.split("\n"):
        head = re.match(r"[0-9a-f]+ <([\w.]+)>:", line)
        code = re.match(r"\s+([0-9a-f]+):\t(.*)", line)
        if head:
            current = functions.setdefault(head.group(1), [])
        elif code and re.match(r"\s*R_", code.group(2)):
            current[-1][3] = True
        elif code:
            target = re.search(r"\s([0-9a-f]+) <", code.group(2))
            current.append([int(code.group(1), 16), code.group(2).split("#")[0].strip(),
                            int(target.group(1), 16) if target else None, False])
        elif re.match(r"\t+[0-9a-f]+: R_", line):
            current[-1][3] = True
    return functions


def walk(function, arch):
    """(instructions counted, what is wrong) on the path that falls through."""
    index = {address: i for i, (address, *_) in enumerate(function)}
    i, count, path = 0, 0, []
    while len(path) < 200:
        address, text, target, relocated = function[i]
        path.append(text)
        if arch["stop"].match(text):
            return count, None, path
        if arch["bad"].match(text):
            return count, f"'{text}' on the fast path", path
        if arch["jump"].match(text):
            if relocated or target not in index:
                return count, f"leaves by '{text}'", path
            i = index[target]
        else:
            i += 1
        if not arch["frame"].match(text):
            count += 1
        if i >= len(function):
            break
    return count, "does not return", path


def examine(compiler, flags, objdump, arch, limits, source, include, tmp):
    obj = str(pathlib.Path(tmp) / "fastpath.o")
    subprocess.run([compiler, *BASE, *flags, f"-I{include}", "-c", source, "-o", obj], check=True)
    functions = disassemble(objdump, obj)
    for name, limit in zip(NAMES, LIMITS[limits]):
        count, wrong, path = walk(functions[name], arch)
        if not wrong and count > limit:
            wrong = f"more than {limit} instructions"
        yield wrong is None, f"{name}: {count} instructions" + (f": {wrong}" if wrong else ""), path if wrong else []
    for name in ("planted_fence", "planted_call", "planted_long"):
        count, wrong, path = walk(functions[name], arch)
        refused = wrong or count > LIMITS[limits][0]
        yield bool(refused), f"{name} is refused", [] if refused else path


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--include", required=True)
    args.add_argument("--source", required=True)
    opt = args.parse_args()
    number = bad = 0
    machine = subprocess.run(["gcc", "-dumpmachine"], capture_output=True, text=True).stdout
    for compiler, flags, objdump, arch, limits in BUILDS:
        title = " ".join([compiler, *flags])
        if not shutil.which(compiler) or not shutil.which(objdump) or (arch is X86 and "x86_64" not in machine):
            number += 1
            print(f"ok {number} - {title} # SKIP not installed here")
            continue
        with tempfile.TemporaryDirectory() as tmp:
            for ok, text, path in examine(compiler, flags, objdump, arch, limits, opt.source, opt.include, tmp):
                number += 1
                bad += not ok
                print(f"{'ok' if ok else 'not ok'} {number} - {title}: {text}")
                for line in path:
                    print("#   ", line)
    print(f"1..{number}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
