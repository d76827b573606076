#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/from-liburcu.md is run: its programs are written to files, its commands are executed, and their output is compared.

A block of C begins with a comment that names its file; a block of sh is run with the installed tree in the place of PREFIX; a block of
text is the output of the commands before it.  Its table of names is compiled: each call in it is declared. Prints TAP.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "build"))
from tap import Tap, execute  # noqa: E402

BLOCK = re.compile(r"^```(c|sh|text)\n(.*?)^```$", re.S | re.M)
NAMED = re.compile(r"/\* (\w+\.c)\b")
STRICT = "cc() { command cc -Wall -Wextra -Werror \"$@\"; }\n"
FACE = "#include <urcu.h>\n#include <urcu-defer.h>\n#include <urcu-flavor.h>\n"
OURS = "#include <quiesce/rcu.h>\n#include <quiesce/control.h>\n"


def installed(meson, build, prefix, tmp):
    """Return the installed tree, in another place than it was configured for, or None."""
    run = execute([meson, "install", "-C", build, "--no-rebuild", "--destdir", tmp / "stage"])
    tree = pathlib.Path(str(tmp / "stage") + prefix)
    return tree if run.returncode == 0 and tree.is_dir() else None


def has_liburcu():
    return execute(["pkg-config", "--exists", "liburcu"]).returncode == 0


def run_blocks(tap, text, tree, libdir, tmp):
    """In the order in which a reader meets them."""
    env, printed, found, skipped = {"LD_LIBRARY_PATH": str(tree / libdir)}, "", 0, False
    for kind, block in BLOCK.findall(text):
        if kind == "c":
            named = NAMED.match(block)
            if tap.result(named, "a program names its file", block[:200]):
                (tmp / named.group(1)).write_text(block)
        elif kind == "text":
            found += 1
            if not skipped:
                tap.result(printed == block, "it prints what the page says", f"want:\n{block}\ngot:\n{printed}")
        else:
            title = block.strip().splitlines()[-1]
            skipped = ("PKG_CONFIG_PATH" not in block or "liburcu-cds" in block) and not has_liburcu()
            if skipped:
                tap.skip(title, "liburcu-dev is not installed")
                continue
            command = STRICT + block.replace("PREFIX/lib", str(tree / libdir)).replace("PREFIX", str(tree))
            run = subprocess.run(["sh", "-e", "-c", command], cwd=tmp, env={**os.environ, **env}, capture_output=True, text=True, timeout=60,
                                 check=False)
            printed = run.stdout
            tap.result(run.returncode == 0, title, f"{command}\n{run.stdout}{run.stderr}")
    return found


def rows(text):
    """The cells of the table of names: what liburcu has, and what is here."""
    table = text[text.index("| liburcu | here |"):]
    for line in table[:table.index("\n\n")].splitlines()[2:]:
        theirs, ours = line.split("|")[1:3]
        yield [re.findall(r"`(\w+)\(", cell) for cell in (theirs, theirs if ours.strip() == "unchanged" else ours)]


def check_names(tap, text, tree, tmp):
    for side, (title, headers, flags) in enumerate((("liburcu", FACE, [f"-I{tree}/include/quiesce-urcu"]), ("native", OURS, []))):
        names = sorted({name for row in rows(text) for name in row[side]})
        source = headers + "".join(f"#ifndef {n}\nconst void *const is_{n} = (const void *)&{n};\n#endif\n" for n in names)
        (tmp / "names.c").write_text(source)
        tap.result(len(names) > 5, f"the table has names of {title}", names)
        tap.run(f"the names of {title} are declared", ["cc", "-fsyntax-only", *flags, f"-I{tree}/include", tmp / "names.c"])


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--page", type=pathlib.Path, required=True)
    args.add_argument("--build", required=True)
    args.add_argument("--prefix", required=True)
    args.add_argument("--libdir", required=True)
    args.add_argument("--meson", required=True)
    opt = args.parse_args()
    tap, text = Tap(), opt.page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        tree = installed(opt.meson, opt.build, opt.prefix, tmp)
        if tap.result(tree, "meson install with DESTDIR"):
            tap.result(run_blocks(tap, text, tree, opt.libdir, tmp) >= 3, "the page has programs and what they print")
            check_names(tap, text, tree, tmp)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
