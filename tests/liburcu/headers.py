#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each header of the face compiles alone, twice in one file, in every language that programs for liburcu are written in.

Each also compiles inside of extern "C"; and macros.c compiles everywhere without a warning, including that about old-style casts in C++.
Prints TAP.
"""
import argparse
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys

C = ["c99", "gnu99", "c11", "gnu17"]
CXX = ["c++11", "c++20"]
COMPILERS = [("gcc", "c", C), ("clang-19", "c", C), ("clang", "c", C), ("g++", "c++", CXX), ("clang++-19", "c++", CXX), ("clang++", "c++", CXX)]
# The flags are not pedantic in C: transparent unions, which calls with either kind of head need, are not ISO C.
WARN = ["-Wall", "-Wextra", "-Wshadow", "-Wundef", "-Wconversion", "-Wno-sign-conversion", "-Wcast-qual", "-Werror", "-fsyntax-only"]
CPU_FILES = {"urcu/arch/x86.h": "x86_64"}
# Names that liburcu's headers include, and that programs use without including more: headers, uses.  The first only with _LGPL_SOURCE.
INLINED = "long a(void);\nlong a(void) { return sysconf(_SC_NPROCESSORS_ONLN) + errno + INT_MAX; }\nDEFINE_URCU_TLS(int, b);\nCDS_LIST_HEAD(c);\n" \
          "void d(void);\nvoid d(void) { urcu_assert_debug(futex_async(0, FUTEX_WAKE, 1, 0, 0, 0) == 0); }\n"
ASSERTS = "void e(int n);\nvoid e(int n) { assert(n); }\n"
THREADS = "pthread_t f;\n"
ALONG = [(["urcu.h", "urcu-bp.h", "urcu-qsbr.h", "urcu/urcu-mb.h"], ["-D_LGPL_SOURCE"], INLINED + ASSERTS + THREADS),
         (["urcu.h", "urcu-bp.h", "urcu-qsbr.h", "urcu/urcu-mb.h", "urcu/rculfqueue.h", "urcu/wfqueue.h", "urcu/wfstack.h", "urcu/wfcqueue.h"], [], ASSERTS),
         (["urcu-defer.h"], [], THREADS),
         (["urcu.h"], ["-DRCU_SIGNAL"], "void g(void);\nvoid g(void) { urcu_memb_read_lock(); rcu_read_unlock(); }\n")]
ONLY = "int quiesce_test_only;\n"


def compile_text(command, text):
    run = subprocess.run(command + ["-"], input=text, text=True, capture_output=True, check=False)
    return run.returncode == 0, run.stderr


def alone():
    """(compiler, standard): whether a header has what it needs depends neither on the standard's year nor on the compiler."""
    found = [entry for entry in COMPILERS if shutil.which(entry[0])]
    for language in ("c", "c++"):
        of = [(compiler, standards) for compiler, lang, standards in found if lang == language]
        if of:
            yield of[0][0], of[0][1][0]
            yield of[-1][0], of[-1][1][-1]


def jobs(include, names):
    """(title, command, text)"""
    kinds = set(alone())
    macros = (pathlib.Path(__file__).parent / "macros.c").read_text()
    for compiler, language, standards in COMPILERS:
        if not shutil.which(compiler):
            print(f"# {compiler} is not installed: not tried")
            continue
        for standard in standards:
            command = [compiler, "-x", language, f"-std={standard}", *WARN, *(["-Wpedantic"] if language == "c++" else []), *include]
            title = f"{compiler} {standard}"
            for define in ([], ["-D_LGPL_SOURCE"], ["-DURCU_INLINE_SMALL_FUNCTIONS", "-DDEBUG_RCU"]):
                together = "".join(f"#include <{name}>\n" for name in names) + ONLY
                yield " ".join(["all headers,", title, *define]), command + define, together
            if language == "c++":
                yield f"all headers inside of extern \"C\", {title}", command, f'extern "C" {{\n{together}}}\n'
            if (compiler, standard) in kinds:
                for name in names:
                    yield f"{name}, {title}", command, f"#include <{name}>\n" * 2 + ONLY
                for headers, define, uses in ALONG:
                    for name in headers:
                        yield " ".join([f"what {name} brings with it, {title}", *define]), [compiler, "-x", language, "-D_GNU_SOURCE",
                            f"-std={standard}", *include, "-Wall", "-Werror", "-fsyntax-only", *define], f"#include <{name}>\n{uses}"
            # An operation inside of another one has variables of the same names.
            command = command + ["-Wno-shadow", "-Wno-unused", *(["-Wold-style-cast"] if language == "c++" else [])]
            for define in ([], ["-DNDEBUG"], ["-DURCU_DEREFERENCE_USE_VOLATILE"], ["-fsanitize=thread"]):
                yield " ".join(["macros,", title, *define]), command + define, macros


def outside(include):
    """Return headers included by a name of liburcu's that the face lacks: they would be found where liburcu is installed."""
    wanted = {name for p in include.rglob("*.h") for name in re.findall(r"#\s*include\s*<(urcu[^>]*)>", p.read_text())}
    return sorted(name for name in wanted if not (include / name).is_file())


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--include", type=pathlib.Path, action="append", required=True, help="the face's first")
    include = args.parse_args().include
    machine = subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True).stdout.strip()
    names = sorted(str(p.relative_to(include[0])) for p in include[0].rglob("*.h"))
    names = [n for n in names if CPU_FILES.get(n, machine) == machine]
    work = list(jobs([f"-I{i}" for i in include], names))
    if not work or len(names) < 20:
        print("Bail out! no header or no compiler")
        return 1
    title, command, text = work[-1]
    planted = [re.sub("CMM_ACQ_REL", "CMM_NO_SUCH", text), text.replace("uatomic_add(&any, 8)", "uatomic_add(&whole, 8)"),
               text.replace("uatomic_add(&any, 8)", "uatomic_add(&fixed, 8)"),
               text.replace("uatomic_read(&constant)", "uatomic_read(&whole.row)"),
               text.replace("rcu_assign_pointer(hidden, gone)", "rcu_assign_pointer(hidden, &whole)")]
    strangers = outside(include[0])
    bad = bool(strangers)
    print(f"1..{len(work) + len(planted) + 1}")
    print(f"{'not ok' if strangers else 'ok'} 1 - headers include none of liburcu's own {strangers or ''}")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = pool.map(lambda job: compile_text(*job[1:]), work)
        for number, ((title, _, _), (ok, errors)) in enumerate(zip(work, done), 2):
            print(f"{'ok' if ok else 'not ok'} {number} - {title}")
            bad += not ok
            print("".join(f"# {line}\n" for line in errors.splitlines()[:20]), end="")
    for number, wrong in enumerate(planted, len(work) + 2):
        refused = wrong != text and not compile_text(command, wrong)[0]
        print(f"{'ok' if refused else 'not ok'} {number} - a planted error is refused")
        bad += not refused
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
