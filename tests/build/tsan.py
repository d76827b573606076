#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that are built with ThreadSanitizer, of C and of C++, get no report with the library of pkg-config quiesce-tsan.

Each program is correct: the examples, and tests of every primitive and container that have threads.  A control with a race gets its report,
and beside the ordinary library a program gets one line that names the other one.  Prints TAP.
"""
import argparse
import concurrent.futures
import os
import pathlib
import shutil
import sys
import tempfile

from tap import Tap, execute

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLES = [f"examples/{name}" for name in ("backend.c", "config.c", "connections.c", "routes.c", "certificate.c", "modules.c", "pipeline.c", "cache.cpp", "schema.cpp", "work_queue.cpp")]
UNIT = [f"tests/unit/test_{name}.c" for name in ("rcu", "call_rcu", "srcu", "hazptr_retire", "shazptr", "percpu_rwsem", "percpu_ref", "slab", "rcu_sync",
                                                 "hashtable", "hashmap", "xarray", "idr", "lfqueue", "value_queue", "wfcqueue", "wfstack", "rculist")]
CPP = [f"tests/cpp/test_{name}.cpp" for name in ("hashmap", "unordered_map", "srcu", "rculist")]
RACE = ROOT / "tests/build/race.c"
OPTIONS = {"TSAN_OPTIONS": "die_after_fork=0 history_size=4", "CMOCKA_MESSAGE_OUTPUT": "TAP"}
REPORT = "WARNING: ThreadSanitizer"


def build(compilers, source, program, flags):
    cpp = source.suffix == ".cpp"
    standard = "-std=c++20" if cpp else "-std=gnu11"
    return execute([compilers[cpp], standard, "-D_GNU_SOURCE", "-O1", "-g1", "-fsanitize=thread", f"-I{ROOT / 'tests'}", source, "-o", program, *flags])


def build_and_run(compilers, source, tmp, flags):
    program = tmp / compilers[0] / source.stem
    program.parent.mkdir(exist_ok=True)
    built = build(compilers, source, program, flags)
    return built if built.returncode else execute([program], OPTIONS)


def check_compiler(tap, compilers, sources, tmp, flags):
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for source, run in zip(sources, pool.map(lambda s: build_and_run(compilers, s, tmp, flags), sources)):
            text = run.stdout + run.stderr
            tap.result(run.returncode == 0 and REPORT not in text, f"{compilers[source.suffix == '.cpp']}: {source.name} gets no report", text[-4000:])
    run = build_and_run(compilers, RACE, tmp, flags)
    tap.result("data race" in run.stderr, f"{compilers[0]}: a race is reported", run.stdout + run.stderr)


def check_ordinary_library(tap, tmp, lib):
    program = tmp / "ordinary"
    if tap.result(build(("gcc", "g++"), ROOT / EXAMPLES[1], program, [f"-I{lib.parent / 'include'}", f"-L{lib}", "-lquiesce"]).returncode == 0,
                  "a program builds beside the ordinary library"):
        tap.run("the ordinary library names the other one", [program], want=66, text="pkg-config quiesce-tsan", env={"LD_LIBRARY_PATH": str(lib)})
        tap.run("by its soname the other one replaces it", [program], env={"LD_LIBRARY_PATH": str(lib / "quiesce-tsan")})


def main():
    args = argparse.ArgumentParser()
    for name in ("build", "prefix", "libdir", "meson"):
        args.add_argument("--" + name, required=True)
    opt = args.parse_args()
    tap = Tap()
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        stage = tmp / "stage"
        if not tap.run("meson install with DESTDIR", [opt.meson, "install", "-C", opt.build, "--no-rebuild", "--destdir", stage]):
            return tap.finish()
        moved = tmp / "moved"
        os.rename(str(stage) + opt.prefix, moved)
        lib = moved / opt.libdir
        flags = execute(["pkg-config", "--cflags", "--libs", "quiesce-tsan"], {"PKG_CONFIG_PATH": str(lib / "pkgconfig")}).stdout.split()
        tap.result(any("quiesce-tsan" in f for f in flags), "pkg-config finds the instrumented library", flags)
        cmocka = "cmocka" if execute(["pkg-config", "--exists", "cmocka"]).returncode == 0 else None
        names = EXAMPLES + CPP + (UNIT if cmocka else [])
        flags += ["-lcmocka"] if cmocka else []
        for compilers in (("gcc", "g++"), ("clang-19", "clang++-19")):
            if not all(map(shutil.which, compilers)):
                tap.skip(f"programs of {compilers[0]}", f"{compilers[0]} is not installed")
                continue
            few = names if compilers[0] == "gcc" else EXAMPLES[2:6]  # that its runtime fits the library of another compiler
            check_compiler(tap, compilers, [ROOT / n for n in few], tmp, flags)
        check_ordinary_library(tap, tmp, lib)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
