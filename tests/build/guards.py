#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Guards hold their addresses with each compiler, language, optimisation and kind of linking.

guards.c, or holders.cpp for types of C++ only, is compiled twice, linked and run, with light and with full fences.
Prints TAP.
"""
import argparse
import concurrent.futures
import pathlib
import shutil
import sys
import tempfile

from tap import Tap, execute, not_installed

HERE = pathlib.Path(__file__).resolve().parent
WARN = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
C, CXX = ["-std=gnu11"], ["-x", "c++", "-std=c++11"]
FACE = ["-std=c++20"]  # holders.cpp
GC = ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]
# Each build has a compiler, a language, flags and a library.
BUILDS = [
    ("gcc", C, ["-O0"], "static"),
    ("gcc", C, ["-O2"], "shared"),
    ("gcc", C, ["-O3"], "static"),
    ("gcc", C, ["-O2", "-flto"], "static"),
    ("gcc", C, ["-O2", "-static"], "static"),
    ("gcc", C, ["-O2", "-fno-pie", "-no-pie", *GC], "static"),
    ("g++", CXX, ["-O0"], "static"),
    ("g++", CXX, ["-O2"], "plug-in"),
    ("g++", CXX, ["-O3", *GC], "static"),
    ("g++", CXX, ["-O2", "-flto"], "static"),
    ("clang-19", C, ["-O2"], "static"),
    ("clang-19", C, ["-O3", "-fPIC"], "shared"),
    ("clang++-19", CXX, ["-O2", *GC], "plug-in"),
    ("g++", FACE, ["-O2", "-fvisibility=hidden"], "plug-in"),
    ("clang++-19", FACE, ["-O1", "-fvisibility=hidden"], "plug-in"),
]


def build(opt, tmp, compiler, language, flags, library):
    """Return the program, or the compiler's messages."""
    common = [compiler, *language, *WARN, *(f for f in flags if not f.startswith(("-Wl", "-static", "-no-pie"))), f"-I{opt.include}"]
    linked = [opt.static, "-lpthread"] if library == "static" else [opt.shared, "-lpthread"]
    program, objects = tmp / "program", []
    for name, more in (("one", []), ("two", ["-DPART_TWO"])):
        more = more + (["-fPIC"] if library == "plug-in" else [])
        run = execute([*common, *more, "-c", HERE / ("holders.cpp" if language == FACE else "guards.c"), "-o", tmp / f"{name}.o"])
        if run.returncode:
            return None, run.stderr
        objects.append(tmp / f"{name}.o")
    link = [compiler, *flags]
    if library == "plug-in":  # the second part in a shared object of its own
        run = execute([*link, "-shared", "-Wl,-z,nodelete", objects[1], "-o", tmp / "libtwo.so"])
        if run.returncode:
            return None, run.stderr
        objects[1] = tmp / "libtwo.so"
    run = execute([*link, *objects, *linked, "-o", program])
    return (None, run.stderr) if run.returncode else (program, "")


def try_build(opt, job):
    compiler, language, flags, library = job
    title = " ".join([compiler, *(FACE if language == FACE else []), *flags, f"({library} library)"])
    if not shutil.which(compiler):
        return title, None, not_installed(compiler)
    with tempfile.TemporaryDirectory() as tmp:
        program, said = build(opt, pathlib.Path(tmp), *job)
        if not program:
            return title, False, said
        path = f"{pathlib.Path(opt.shared).parent}:{tmp}"
        for fence in ("auto", "full"):
            run = execute([program], {"QUIESCE_FENCE": fence, "LD_LIBRARY_PATH": path})
            if run.returncode or "0 wrong" not in run.stdout:
                return title, False, f"QUIESCE_FENCE={fence}: status {run.returncode}\n{run.stdout}{run.stderr}"
    return title, True, ""


def main():
    args = argparse.ArgumentParser()
    for name in ("include", "static", "shared"):
        args.add_argument(f"--{name}", required=True)
    opt, tap = args.parse_args(), Tap()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for title, ok, said in pool.map(lambda job: try_build(opt, job), BUILDS):
            if ok is None:
                tap.skip(title, said)
            else:
                tap.result(ok, title, said)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
