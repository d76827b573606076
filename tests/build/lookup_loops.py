#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The loops in which the tool looks up keys, as the compilers translate them.

A loop of a program has the lookup inlined, section and all, so the loop that the tool times has to have it, too, at any level of
optimisation: otherwise the tool measures calls.  Counted are the instructions of the shortest turn that computes a hash: the one that
finds its key in the first line.
"""
import argparse
import collections
import shutil
import subprocess
import sys
import tempfile

from fastpath import LAST_WORD, X86, compile_one
from tap import Tap, not_installed

BUILDS = [("gcc", "-O2"), ("gcc", "-O3"), ("clang-19", "-O2"), ("clang-19", "-O3")]
# The source, the function, and the most instructions: those of the lookup and of a section (fastpath.py), and some ten of the loop
# itself, which counts its turns, loads a word, and compares and adds the value.  Two more are for constants that gcc loads in the loop or
# before it, as the code beside it leaves registers.
LOOPS = [("hash_hashmap.c", "map_lookups", {"gcc": 70, "clang-19": 67}),
         ("hash_hashtable.c", "hashtable_rcu_lookups", {"gcc": 56, "clang-19": 61})]
HASH = "mul"
# Without the attribute of the tool's own functions (the library writes it with underscores) they are called.
PLANTED = ["-Dalways_inline=noinline", "-w"]


def turn(function):
    """Return the number of instructions of the shortest way from the hash back to itself without a call; None: there is none."""
    index = {address: i for i, (address, *_) in enumerate(function)}
    begin = next((i for i, (_, text, *_) in enumerate(function) if text.startswith(HASH)), None)
    to_do, seen = collections.deque([] if begin is None else [(begin, 0)]), set()
    while to_do:
        i, count = to_do.popleft()
        if i == begin and count:
            return count
        if i >= len(function) or i in seen:
            continue
        seen |= {i} if count else set()
        _, text, target, relocated = function[i]
        if X86["stop"].match(text) or X86["bad"].match(text) or LAST_WORD.match(text):
            continue
        known = None if relocated else index.get(target)
        if X86["jump"].match(text):
            to_do.extend([(known, count + 1)] if known is not None else [])
            continue
        if X86["branch"].match(text) and known is not None:
            to_do.append((known, count + 1))
        to_do.append((i + 1, count + 1))
    return None


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--root", required=True)
    opt = args.parse_args()
    tap = Tap()
    if "x86_64" not in subprocess.run(["gcc", "-dumpmachine"], capture_output=True, text=True).stdout:
        tap.skip("loops", "another CPU")
        return tap.finish()
    include = [f"-I{opt.root}/{d}" for d in ("include", "tools/quiesce", "tools/quiesce/lib", "tools/quiesce/bench")]
    for compiler, level in BUILDS:
        if not shutil.which(compiler):
            tap.skip(f"{compiler} {level}", not_installed(compiler))
            continue
        with tempfile.TemporaryDirectory() as tmp:
            for source, name, limits in LOOPS:
                path = f"{opt.root}/tools/quiesce/types/quiesce/{source}"
                count = turn(compile_one(compiler, [level, *include], "objdump", path, tmp)[name])
                tap.result(count is not None and count <= limits[compiler], f"{compiler} {level}, {name}: {count} instructions",
                           f"more than {limits[compiler]}")
                count = turn(compile_one(compiler, [level, *include, *PLANTED], "objdump", path, tmp)[name])
                tap.result(count is None, f"{compiler} {level}, {name} with a call is refused", f"{count} instructions")
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
