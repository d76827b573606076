#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The C++ faces cost what C costs: the shortest way through each function has no call, lock or fence, and at most as many
instructions as its counterpart in C, compiled beside it.  Prints TAP; tests/build/fastpath.py reads the instructions.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "build")]
from tap import Tap, not_installed  # noqa: E402
import fastpath  # noqa: E402

BUILDS = [("g++", ["-std=c++20"]), ("g++", ["-std=c++20", "-fPIC"]), ("clang++-19", ["-std=c++20"])]
ARCH = {**fastpath.X86, "set": re.compile(r"movq?\s+%r\w+,(0x0)?\(%r\w+\)"), "clear": re.compile(r"movq\s+\$0x0,(0x0)?\(%r\w+\)")}
# For each function in C++: its counterpart in C, the number of additional instructions that it may have, and its required operations.
COUNTERPARTS = {
    "cpp_taken": ("c_taken", 0, ("set",)),
    "cpp_in_hand": ("c_in_hand", 0, ("set", "clear")),
    "cpp_rcu": ("c_rcu", 0, ()),
    "cpp_shazptr": ("c_shazptr", 0, ("set", "clear")),
    "cpp_offset": ("c_in_hand", 4, ("set", "clear")),  # null has no member
    "cpp_walk": ("c_walk", 2, ("set", "set")),  # two addresses of members, which are references
}
MOST_SAVED = 4  # pushes and pops of a walk: two registers


def count(functions, name, needed):
    best = fastpath.shortest(functions[name], ARCH, needed, False)
    return best[0] if best else None


def examine(tap, title, functions):
    for name, (counterpart, granted, needed) in COUNTERPARTS.items():
        mine, other = count(functions, name, needed), count(functions, counterpart, needed)
        tap.result(mine is not None and other is not None and mine <= other + granted,
                   f"{title}: {name} {mine} instructions, {counterpart} {other}", "\n".join(text for _, text, *_ in functions[name]))
    frame = fastpath.frame_of(functions["cpp_walk"], ARCH)
    tap.result(frame <= MOST_SAVED, f"{title}: cpp_walk saves registers by {frame} instructions")
    taken = count(functions, "c_taken", ("set",))
    for name in ("cpp_planted", "cpp_spilled"):
        mine = count(functions, name, ("set",))
        tap.result(mine is None or mine > taken, f"{title}: {name} is refused", f"{mine} instructions")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--include", type=pathlib.Path, default=HERE.parents[1] / "include")
    opt, tap = args.parse_args(), Tap()
    machine = subprocess.run(["gcc", "-dumpmachine"], capture_output=True, text=True).stdout
    for compiler, flags in BUILDS:
        title = " ".join([compiler, *flags])
        if not shutil.which(compiler) or not shutil.which("objdump") or "x86_64" not in machine:
            tap.skip(title, not_installed(compiler) if not shutil.which(compiler) else "another CPU")
            continue
        with tempfile.TemporaryDirectory() as tmp:
            obj = f"{tmp}/fastpath.o"
            subprocess.run([compiler, *flags, "-O2", "-g0", "-fcf-protection=none", "-fno-stack-protector", "-fno-asynchronous-unwind-tables",
                            f"-I{opt.include}", "-c", HERE / "instructions.cpp", "-o", obj], check=True)
            examine(tap, title, fastpath.disassemble("objdump", obj))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
