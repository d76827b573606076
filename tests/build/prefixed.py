#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""quiesce-prefix-headers: each name in the written headers begins with the prefix or with quiesce.

The names come from the compiler (macros, and DWARF), not from the script.  Prints TAP.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import headers
from tap import Tap, execute

HERE = pathlib.Path(__file__).resolve().parent
PREFIX = "my_"
MINE = re.compile(rf"_*({PREFIX}|quiesce)", re.I)
KEEP = ["-g", "-fno-eliminate-unused-debug-types", "-fno-eliminate-unused-debug-symbols", "-fkeep-static-functions", "-fkeep-inline-functions"]


def all_of(include, suffix=".h"):
    return "".join(f"#include <{h.relative_to(include)}>\n" for h in sorted(include.rglob(f"*{suffix}"))
                   if h.name not in headers.CPU_FILES)


def system_only(include):
    found = {line for h in include.rglob("*.h") for line in re.findall(r"^#include <(?!quiesce/).*>", h.read_text(), re.M)}
    return "\n".join(sorted(found)) + "\n"


def file_scope(text, include, tmp):
    """Return names that @text declares at file scope: macros, and DWARF's names of the first level, with enumerators."""
    base = ["gcc", "-x", "c", "-std=gnu11", "-march=native", f"-I{include}"]
    macros = subprocess.run([*base, "-E", "-dM", "-"], input=text, text=True, capture_output=True, check=True).stdout
    subprocess.run([*base, *KEEP, "-c", "-o", tmp / "names.o", "-"], input=text, text=True, check=True)
    names = set(re.findall(r"^#define (\w+)", macros, re.M))
    wanted = False
    for line in execute(["readelf", "--debug-dump=info", "-W", tmp / "names.o"]).stdout.splitlines():
        die = re.match(r"\s*<(\w+)><\w+>: Abbrev Number: \d+ \((\w+)\)", line)
        name = re.match(r"\s*<\w+>\s+DW_AT_name\s*:.*?(\S+)\s*$", line)
        if die:
            wanted = die[1] == "1" and die[2] != "DW_TAG_base_type" or die[2] == "DW_TAG_enumerator"
        elif name and wanted:
            names.add(name[1])
    return names


def not_mine(include, tmp):
    system = file_scope(system_only(include), include, tmp)
    return sorted(n for n in file_scope(all_of(include), include, tmp) - system if n[0] != "_" and not MINE.match(n))


def check_names(tap, plain, prefixed, tmp):
    left = not_mine(prefixed, tmp)
    tap.result(not left, "no other name is left", left)
    found = set(not_mine(plain, tmp))
    wanted = {"rcu_read_lock", "rcu_head", "list_head", "LIST_HEAD", "RCU_SYNC_IDLE", "hazptr_t", "synchronize_rcu",
              "percpu_ref_func_t"}
    tap.result(wanted <= found, f"without prefix there are {len(found)}", wanted - found)


def check_compiles(tap, plain, prefixed):
    for compiler, lang, stds, suffix in (("gcc", "c", ["c11", "gnu17"], ".h"), ("clang-19", "c", ["gnu11"], ".h"),
                                         ("g++", "c++", ["c++11"], ".h"), ("g++", "c++", ["c++20"], ".h*"),
                                         ("clang++-19", "c++", ["c++20"], ".h*")):
        for std in stds if shutil.which(compiler) else ():
            command = [compiler, "-x", lang, f"-std={std}", *headers.WARN, f"-I{prefixed}"]
            ok, err = headers.compile_text(command, all_of(prefixed, suffix) + "int only;\n")
            tap.result(ok, f"{compiler} {std} compiles {suffix}", err)
    for name, text in headers.examples(plain):
        names = prefixed_text(text, plain)
        ok, err = headers.compile_text(["g++", "-x", "c++", "-std=c++20", *headers.WARN, f"-I{prefixed}"], names)
        tap.result(ok, f"{name} compiles: the names of namespace quiesce have stayed", err + names)


def prefixed_text(text, plain):
    """Examples use names of C too, there with the prefix."""
    text = text.replace("LIST_HEAD_INIT", PREFIX.upper() + "LIST_HEAD_INIT")
    return re.sub(r"(?<![\w:])(synchronize_shazptr|list_head|list_add_tail_rcu|list_del_rcu)\b", rf"{PREFIX}\1", text)


def check_program(tap, plain, prefixed, library, tmp):
    build = ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o", tmp / "program", HERE / "prefixed.c"]
    end = [library, "-pthread"]
    tap.run("beside a list.h and an RCU of the program: builds", [*build, f"-I{prefixed}", *end])
    tap.run("and runs", [tmp / "program"], text="7 0 1")
    tap.run("without prefix it does not", [*build, f"-I{plain}", *end], want=1, text="list_head")
    if execute(["pkg-config", "--exists", "liburcu", "liburcu-cds"]).returncode:
        tap.skip("beside liburcu", "liburcu-dev is not installed")
        return
    urcu = execute(["pkg-config", "--cflags", "--libs", "liburcu", "liburcu-cds"]).stdout.split()
    tap.run("beside liburcu: builds", [*build, "-DWITH_URCU", f"-I{prefixed}", *end, *urcu])
    tap.run("and runs, with two kinds of RCU", [tmp / "program"], text="7 0 1")


def check_errors(tap, script, plain, tmp):
    for title, prefix, output, source, want in (
            ("capitals", "My_", tmp / "x", plain, 2), ("a prefix that is the library's", "quiesce_", tmp / "x", plain, 2),
            ("onto the headers themselves", PREFIX, plain, plain, 2), ("no headers", PREFIX, tmp / "x", tmp, 1)):
        tap.run(f"refused: {title}", [script, "--prefix", prefix, "--output", output, "--headers", source], want=want,
                text="quiesce-prefix-headers: ")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--script", type=pathlib.Path, required=True)
    args.add_argument("--include", type=pathlib.Path, required=True)
    args.add_argument("--shared", type=pathlib.Path)
    args.add_argument("--static", type=pathlib.Path, required=True)
    args = args.parse_args()
    plain = args.include.resolve()
    tap = Tap()
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        prefixed = tmp / "include"
        tap.run("copies the headers", [args.script, "--prefix", PREFIX, "--output", prefixed, "--headers", plain], text=" headers in ")
        check_names(tap, plain, prefixed, tmp)
        check_compiles(tap, plain, prefixed)
        check_program(tap, plain, prefixed, args.static, tmp)
        check_errors(tap, args.script, plain, tmp)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
