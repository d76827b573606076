#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""quiesce/calls.h, with ds/calls.h, has a function for every public call, the library exports each, and another language can call them.

    calls.py --shared LIBRARY --listed DIR --include DIR --exceptions FILE --docs FILE

DIR of --listed has listed.py, which knows the public names. Calls without a function stand in the file of exceptions, in the form
`pattern<TAB>reason`. The programs of another language are bindings.py and the one in the page of --docs. Prints TAP.
"""
import argparse
import fnmatch
import pathlib
import re
import shutil
import sys
import tempfile

from tap import Tap, execute, not_installed

HERE = pathlib.Path(__file__).resolve().parent
WARN = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wcast-qual", "-Werror", "-fsyntax-only"]
HEADERS = ("quiesce/calls.h", "quiesce/ds/calls.h")
LANGUAGES = [("gcc", "c", "c11"), ("g++", "c++", "c++11"), ("clang-19", "c", "c11"), ("clang++-19", "c++", "c++11")]
DECLARED = re.compile(r"^QUIESCE_API\s[^;(]*?\b(quiesce_(?!_)\w+)\(", re.M)
TYPES = ("srcu_struct", "hashmap", "hashtable", "percpu_ref", "percpu_rw_semaphore", "xarray", "ida", "list_head")


def exceptions_of(text):
    """{pattern: reason}"""
    rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    assert all(len(row) == 2 and len(row[1].split()) >= 3 for row in rows), "want pattern<TAB>reason in each line"
    return dict(rows)


def exempts(pattern, name, header):
    return header == pattern if pattern.endswith(".h") else fnmatch.fnmatchcase(name, pattern)


def without_function(public, functions, patterns):
    """A line for each public name without a function, and for each exception that is none or has one."""
    lacking = {name: header for name, header in public.items() if not {name, "quiesce_" + name} & functions}
    wrong = [f"{header}: {name} has no function" for name, header in lacking.items() if not any(exempts(p, name, header) for p in patterns)]
    return wrong + [f"the exception {p} is none" for p in patterns if not any(exempts(p, n, h) for n, h in lacking.items())]


def in_order(source):
    """(name, whether it passes its parameters in their order) of each function that is a line of outline.h's macros."""
    for line in re.findall(r"^(?:VOID_)?CALL\((.*?)\)\n(?=\S|\n|\Z)", source, re.M | re.S):
        name, parameters, arguments = re.search(r"(\w+),\s*\((.*)\),\s*\((.*)\)$", line, re.S).groups()
        names = [re.findall(r"\w+", p)[-1] for p in re.sub(r"\(\*(\w+)\)\(.*?\)", r"\1", parameters).split(",")]
        yield name, names == (re.sub(r"\*", "", arguments).split(", ") if arguments else ["void"])


def self_test():
    """A comparison that notices nothing proves nothing."""
    public = {"here": "a.h", "gone": "a.h", "loop_for_each": "a.h", "quiesce_own": "b.h"}
    assert without_function(public, {"quiesce_here", "quiesce_own"}, ["*_for_each"]) == ["a.h: gone has no function"]
    assert without_function(public, {"quiesce_here", "quiesce_own"}, ["a.h", "b.h"]) == ["the exception b.h is none"]
    assert DECLARED.findall("QUIESCE_API void *quiesce_a(void (*fn)(int));\nQUIESCE_API int quiesce_b(\n\tint);\n") == ["quiesce_a", "quiesce_b"]
    text = "CALL(int, a, (int x, void (*fn)(int)), (x, fn))\nVOID_CALL(b, (void **where,\n\tint y), (y, *where))\nCALL(int, c, (void), ())\n\nint d;\n"
    assert list(in_order(text)) == [("a", True), ("b", False), ("c", True)], list(in_order(text))


def compare(tap, opt):
    sys.path.insert(0, str(opt.listed))
    import listed  # pylint: disable=import-error,import-outside-toplevel
    exceptions = exceptions_of(opt.exceptions.read_text())
    declared = {name for header in HEADERS for name in DECLARED.findall((opt.include / header).read_text())}
    settings = set(DECLARED.findall((opt.include / "quiesce/control.h").read_text()))
    exported = {line.split()[-1].partition("@")[0] for line in execute(["nm", "-D", "--defined-only", opt.shared]).stdout.splitlines()
                if re.search(r" T quiesce_(?!_)", line)}
    public = listed.public_names(opt.include)
    wrong = without_function(public, declared | settings, exceptions)
    tap.result(len(declared) > 300 and not wrong, f"{len(declared)} functions: one for every public call", "\n".join(wrong))
    named = {f for reason in exceptions.values() for f in re.findall(r"\b(quiesce_\w+)\(", reason)}
    tap.result(named <= declared, "exceptions name functions that there are", sorted(named - declared))
    tap.result(declared | settings <= exported, "every function is exported", sorted((declared | settings) - exported))
    hidden = sorted(f for f in exported - declared - settings if not any(exempts(p, f, public.get(f)) for p in exceptions))
    tap.result(not hidden, "every exported function is declared there, or in control.h", hidden)
    lines = [line for name in ("outline.c", "outline_ds.c") for line in in_order((opt.include.parent / "src" / name).read_text())]
    wrong = [name for name, right in lines if not right]
    tap.result(len(lines) > 160 and not wrong, f"{len(lines)} functions pass what they are given, in order", wrong)


def compiles(tap, include):
    for compiler, language, standard in LANGUAGES:
        title = f"calls.h alone, {compiler} -std={standard}"
        if shutil.which(compiler):
            tap.run(title, [compiler, "-x", language, f"-std={standard}", *WARN, f"-I{include}", include / "quiesce/calls.h", "-Wno-pragma-once-outside-header"])
        else:
            tap.skip(title, not_installed(compiler))


def sizes(include, where):
    """An object file with a program that prints NAME=SIZE of each type, and the layout."""
    rows = "".join(f'\tprintf("{name}=%zu\\n", sizeof(struct {name}));\n' for name in TYPES)
    rows += '\tprintf("layout=%u\\n", QUIESCE_LAYOUT);\n'
    (where / "sizes.c").write_text(f"#include <quiesce/calls.h>\n#include <stdio.h>\nint main(void)\n{{\n{rows}\treturn 0;\n}}\n")
    built = execute(["gcc", f"-I{include}", where / "sizes.c", "-c", "-o", where / "sizes.o"])
    assert built.returncode == 0, built.stderr
    return where / "sizes.o"


def programs(tap, opt):
    shared = pathlib.Path(opt.shared)
    library = next(iter(sorted(shared.parent.glob("libquiesce.so.[0-9]*.[0-9]*"), key=lambda p: len(p.name))), shared)
    env = {"LD_LIBRARY_PATH": str(library.parent)}
    with tempfile.TemporaryDirectory() as name:
        where = pathlib.Path(name)
        object_file = sizes(opt.include, where)
        linked = execute(["gcc", object_file, library, "-o", where / "sizes"])
        assert linked.returncode == 0, linked.stderr
        known = execute([where / "sizes"], env).stdout.split()
        tap.run("a program of ctypes", [sys.executable, HERE / "bindings.py", library, *known], text="all calls done", env=env)
        shown = re.findall(r"^```python\n(.*?)^```", opt.docs.read_text(), re.S | re.M)
        tap.result(len(shown) == 1, f"{opt.docs.name} shows one program in Python")
        (where / "shown.py").write_text("".join(shown))
        tap.run("and it runs", [sys.executable, where / "shown.py"], text="limit 2", env=env)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--shared", required=True)
    for option in ("listed", "include", "exceptions", "docs"):
        args.add_argument("--" + option, type=pathlib.Path, required=True)
    opt = args.parse_args()
    self_test()
    tap = Tap()
    compare(tap, opt)
    compiles(tap, opt.include)
    programs(tap, opt)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
