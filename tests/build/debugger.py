#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gdb's "next" goes over each read lock, count and guard in programs that are compiled for a debugger.

A step into a restartable sequence restarts it, so that "next" never ends where one is inline.  The debug build and code without
optimisation call the library instead.  With optimisation there are sequences inline, over which "next" goes where the C library has none.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from tap import Tap, execute, not_installed

COMPILERS = ("gcc", "clang-19")
WITHOUT = "set environment GLIBC_TUNABLES glibc.pthread.rseq=0"
# Flags, commands of gdb, whether sequences are inline.
BUILDS = [(["-O0"], [], False), (["-O1", "-DQUIESCE_DEBUG"], [], False), (["-O2", "-DQUIESCE_DEBUG"], [], False), (["-O1"], [WITHOUT], True)]
ANNOUNCES = re.compile(r"mov\s+%r\w+,%fs:0x8\(%r\w+\)")
LIMIT_S = 100


def step(program, lines, commands):
    """Step over each line of the second step_over(); return what gdb and the program have printed."""
    script = [*commands, "set style enabled off", "set confirm off", "break step_over", "run", "continue", *["next"] * lines, "kill"]
    command = ["gdb", "-nx", "-batch", *[word for line in script for word in ("-ex", line)], program]
    try:
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as late:
        return f"gdb did not end in {LIMIT_S} s\n{(late.stdout or b'').decode(errors='replace')[-2000:]}"
    return run.stdout + run.stderr


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--include", required=True)
    args.add_argument("--source", required=True)
    args.add_argument("--static", required=True)
    opt = args.parse_args()
    tap = Tap()
    lines = len(re.findall(r";$", pathlib.Path(opt.source).read_text(encoding="utf-8"), re.M))
    with tempfile.TemporaryDirectory() as tmp:
        program = pathlib.Path(tmp) / "debugger"
        for compiler in COMPILERS:
            for flags, commands, inline in BUILDS:
                title = " ".join([compiler, *flags])
                if not shutil.which(compiler):
                    tap.skip(title, not_installed(compiler))
                    continue
                made = execute([compiler, "-std=gnu11", "-g", *flags, f"-I{opt.include}", opt.source, opt.static, "-pthread", "-o", program])
                if not tap.result(made.returncode == 0, f"{title} compiles", made.stderr):
                    continue
                code = execute(["objdump", "-d", "--no-show-raw-insn", "--disassemble=step_over", program]).stdout
                tap.result(bool(ANNOUNCES.search(code)) == inline, f"{title}: {'has' if inline else 'no'} sequences inline", code)
                if not shutil.which("gdb"):
                    tap.skip(f"{title}: next", "gdb is not installed")
                    continue
                said = step(program, lines, commands)
                if "ptrace: Operation not permitted" in said:
                    tap.skip(f"{title}: next", "a program cannot be debugged here")
                    continue
                tap.result(said.count("stepped over all") >= 2, f"{title}: next goes over each call" + (" without rseq" if commands else ""),
                           said[-3000:])
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
