#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The headers compile after macros of other libraries and of programs: Qt's slots and emit, min() and max(), unused, None.

foreign_macros.h has the names.  It is included after the system's headers, which may use them, and before ours: all of
them, those of liburcu's face, and macros.cc, which expands every macro of the interface.
Prints TAP.  Compilers that are not installed are named, not passed over.
"""
import argparse
import pathlib
import re
import shutil
import sys

from headers import CPU_FILES, compile_text

HERE = pathlib.Path(__file__).parent
COMPILERS = [("gcc", "c", "gnu11"), ("g++", "c++", "c++11"), ("g++", "c++", "c++20"), ("clang-19", "c", "c17"), ("clang++-19", "c++", "c++20")]
VARIANTS = [[], ["-DQUIESCE_DEBUG", "-DQUIESCE_FIBERS"]]


def including(names):
    return "".join(f"#include <{name}>\n" for name in names)


def including_found(names):
    return "".join(f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for name in names)


def headers_of(folder, cxx):
    """Return the headers in a folder, but for those of a CPU; the C++ faces only for @cxx."""
    found = (p for p in folder.rglob("*.h*") if p.name not in CPU_FILES and "arch" not in p.relative_to(folder).parent.parts)
    return sorted(str(p.relative_to(folder)) for p in found if p.suffix == ".h" or cxx and p.suffix == ".hpp")


def system_headers(folders, cxx):
    """Return the foreign headers that ours include.  A name without suffix, such as <atomic>, is for C++ only."""
    names = {name for folder in folders for p in folder.rglob("*.h*")
             for name in re.findall(r"^#\s*include\s*<([^>]+)>", p.read_text(), re.M)}
    return sorted(n for n in names if not n.startswith(("quiesce", "urcu")) and (cxx or "." in n))


def texts(include, face, std, cxx):
    """(title, text that follows the macros)"""
    with_faces = std == "c++20"
    yield "the headers", including(headers_of(include, with_faces))
    yield "liburcu's face", including(headers_of(face, False))
    if with_faces:
        yield "every macro expanded", (HERE / "macros.cc").read_text()


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--include", type=pathlib.Path, required=True)
    args.add_argument("--face", type=pathlib.Path, required=True, help="liburcu's headers")
    args = args.parse_args()
    include, face = args.include.resolve(), args.face.resolve()
    checks = []
    for compiler, lang, std in COMPILERS:
        if not shutil.which(compiler):
            print(f"# {compiler} is not installed: not tried")
            continue
        before = including_found(system_headers([include, face], lang == "c++")) + f'#include "{HERE / "foreign_macros.h"}"\n'
        for variant in VARIANTS:
            command = [compiler, "-x", lang, f"-std={std}", *variant, "-fsyntax-only", f"-I{include}", f"-I{face}"]
            for title, text in texts(include, face, std, lang == "c++"):
                checks.append((" ".join([title, "after foreign macros,", compiler, std, *variant]), command, before + text, True))
    if not checks:
        print("1..0 # SKIP no compiler")
        return 0
    _, command, text, _ = checks[0]
    checks.append(("a planted name is refused", command, text + "int slots;\n", False))
    checks.append(("a planted call is refused", command, text + "int likely(int x);\n", False))
    print(f"1..{len(checks)}")
    bad = 0
    for i, (title, command, text, wanted) in enumerate(checks, 1):
        compiles, errors = compile_text(command, text)
        print(f"{'ok' if compiles == wanted else 'not ok'} {i} - {title}")
        bad += compiles != wanted
        for line in errors.splitlines() if compiles != wanted else []:
            print("#", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
