#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/start.md is true: its commands print what stands below them.

A block of the language `console` has commands, each behind "$ ", and below each, in their order, lines that it prints on stdout or stderr;
others may come between them.  Addresses, times and numbers of threads and reads may differ.  `pkg-config` finds the library that was built.
Prints TAP.
"""
import argparse
import pathlib
import re
import shutil
import tempfile

from tap import Tap, execute, not_installed

VARIES = ((r"\b0x[0-9a-f]+", "0xN"), (r"==\d+==", "==N=="), (r"\b\d+ ms\b", "N ms"), (r"\bthread \d+", "thread N"),
          (r"\b\d+ (reads|handshakes|hits|misses|calls)\b", r"N \1"))


def commands(page):
    """(command, the lines below it) of each"""
    for block in re.findall(r"^```console\n(.*?)^```", page, re.S | re.M):
        for command in re.split(r"^\$ ", block, flags=re.M)[1:]:
            first, *lines = command.splitlines()
            yield first, lines


def same(text, where):
    """The text without what differs from run to run, and without the directory that compilers put before a name."""
    text = re.sub(rf"\S*{re.escape(where.name)}/", "", text)
    for pattern, instead in VARIES:
        text = re.sub(pattern, instead, text)
    return text


def missing(wanted, printed):
    """The first line that is not printed behind those before it, or None."""
    rest = iter(printed)
    return next((line for line in wanted if not any(line == found for found in rest)), None)


def check_places(tap, where, env):
    """With addr2line -i the places of a report are the calls in the program, at each level of optimisation."""
    lines = [n for n, line in enumerate((where / "mistakes.c").read_text().splitlines(), 1) if "call_rcu(&old->rcu" in line]
    for level in ("-O0", "-O1", "-O2"):
        built = execute(["sh", "-c", f"cc -g {level} -DQUIESCE_DEBUG mistakes.c $(pkg-config --libs) -o places"], env, cwd=where)
        run = execute([where / "places", "retire-twice"], env, cwd=where)
        places = [execute(["addr2line", "-i", "-e", where / "places", at]).stdout for at in re.findall(r"places\+(0x[0-9a-f]+)", run.stderr)]
        found = [re.findall(r"mistakes\.c:(\d+)", text)[:1] for text in places]
        tap.result(sorted(found) == [[str(n)] for n in lines], f"{level}: a report names the lines of both calls", f"{built.stderr}{run.stderr}{places}")


def can_sanitize(where):
    (where / "empty.c").write_text("int main(void) { return 0; }\n")
    return execute(["cc", "-fsanitize=address", where / "empty.c", "-o", where / "empty"]).returncode == 0


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--root", type=pathlib.Path, required=True)
    args.add_argument("--static", required=True)
    opt = args.parse_args()
    tap = Tap()
    found = list(commands((opt.root / "docs/start.md").read_text()))
    tap.result(len(found) >= 8, "docs/start.md has commands", found)
    with tempfile.TemporaryDirectory() as name:
        where = pathlib.Path(name) / "examples"
        shutil.copytree(opt.root / "examples", where)
        (where / "pkg-config").write_text(f"#!/bin/sh\necho -I{opt.root}/include {opt.static} -pthread\n")
        (where / "pkg-config").chmod(0o755)
        env = {"PATH": f"{where}:/usr/local/bin:/usr/bin:/bin", "ASAN_OPTIONS": ""}
        for command, wanted in found:
            if "asan" in command and not can_sanitize(where):
                tap.skip(command, not_installed("libasan"))
                continue
            if "cache" in command and not shutil.which("c++"):
                tap.skip(command, not_installed("c++"))
                continue
            run = execute(["sh", "-c", command], env, cwd=where)
            absent = missing(same("\n".join(wanted), where).splitlines(), same(run.stderr + run.stdout, where).splitlines())
            tap.result(absent is None and (wanted or run.returncode == 0), command, f"not printed: {absent}\n{run.stdout}{run.stderr}")
        check_places(tap, where, env)
    return tap.finish()


if __name__ == "__main__":
    raise SystemExit(main())
