#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that build the library as a part of themselves: a Meson subproject, CMake's FetchContent; and an installation without a shared one.

	subproject.py --root DIR --meson MESON

Prints TAP.  Where there is a compiler cache, files that were compiled before come from it.
"""
import argparse
import os
import pathlib
import shutil
import sys
import tempfile

from tap import Tap, execute

HERE = pathlib.Path(__file__).resolve().parent
QUICK = ["-Doptimization=0", "-Ddebug=false"] # what is compiled does not matter here
MESON = """project('consumer', 'c', default_options: 'c_std=gnu11')
executable('consumer', 'consumer.c', dependencies: dependency('quiesce', fallback: 'quiesce'))
"""
WRAP = """[wrap-file]
directory = quiesce

[provide]
dependency_names = quiesce
"""
CMAKE = """cmake_minimum_required(VERSION 3.16)
project(consumer C)
include(FetchContent)
FetchContent_Declare(quiesce SOURCE_DIR "{root}")
FetchContent_MakeAvailable(quiesce)
add_executable(consumer consumer.c)
target_link_libraries(consumer PRIVATE quiesce::quiesce)
"""


def links_shared(program):
    return "libquiesce.so" in execute(["readelf", "-dW", program]).stdout


def works(tap, name, program, shared):
    tap.run(f"{name}: it runs", [program], text="sum 321, freed 1")
    tap.result(links_shared(program) == shared, f"{name}: {'shared' if shared else 'static'}", execute(["readelf", "-dW", program]).stdout)


def built(tap, name, *commands):
    for command in commands:
        run = execute(command)
        if run.returncode:
            tap.result(False, f"{name}: it is built", run.stdout[-3000:] + run.stderr[-3000:])
            return False
    return True


def check_meson(tap, root, meson, tmp, kind):
    name, top = f"Meson subproject, {kind}", tmp / f"meson-{kind}"
    (top / "subprojects").mkdir(parents=True)
    (top / "meson.build").write_text(MESON)
    (top / "subprojects/quiesce.wrap").write_text(WRAP)
    (top / "subprojects/quiesce").symlink_to(root)
    shutil.copy(HERE / "consumer/consumer.c", top)
    if built(tap, name, [meson, "setup", *QUICK, f"-Ddefault_library={kind}", top / "b", top], ["ninja", "-C", top / "b", "consumer"]):
        works(tap, name, top / "b/consumer", kind == "shared")


def check_cmake(tap, root, tmp, kind):
    name, top = f"CMake FetchContent, {kind}", tmp / f"cmake-{kind}"
    top.mkdir()
    (top / "CMakeLists.txt").write_text(CMAKE.format(root=root))
    shutil.copy(HERE / "consumer/consumer.c", top)
    if built(tap, name, ["cmake", "-S", top, "-B", top / "b", f"-DBUILD_SHARED_LIBS={'ON' if kind == 'shared' else 'OFF'}"],
             ["cmake", "--build", top / "b", "--target", "consumer", f"-j{os.cpu_count()}"]):
        works(tap, name, top / "b/consumer", kind == "shared")


def check_static_only(tap, root, meson, tmp):
    build, prefix = tmp / "only", tmp / "prefix"
    if not built(tap, "static only", [meson, "setup", *QUICK, "-Ddefault_library=static", "-Dtests=false", "-Dtool=disabled", f"--prefix={prefix}", build, root],
                 [meson, "install", "-C", build]):
        return
    found = sorted(str(p.relative_to(prefix)) for p in prefix.rglob("*.so*"))
    tap.result(not found, "static only: no shared library is installed", found)
    tap.result((prefix / "lib/libquiesce.a").exists(), "static only: the archive is", prefix)
    env = {"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    flags = execute(["pkg-config", "--cflags", "--libs", "--static", "quiesce"], env).stdout.split()
    program = tmp / "static-only"
    tap.run("static only: pkg-config's flags suffice", ["cc", "-O2", HERE / "consumer/consumer.c", *flags, "-o", program])
    if program.exists():
        works(tap, "static only", program, False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--meson", required=True)
    options = parser.parse_args()
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        # Each compiles the library: the other two kinds differ in the last step only.
        check_meson(tap, options.root, options.meson, tmp, "shared")
        if shutil.which("cmake"):
            check_cmake(tap, options.root, tmp, "static")
        else:
            tap.skip("CMake FetchContent", "there is no cmake")
        check_static_only(tap, options.root, options.meson, tmp)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
