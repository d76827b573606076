#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Install into a staging directory, move the tree, and build against it as users do.

pkg-config and CMake, shared and static, C and C++; examples/ by the commands in their comments.  Prints TAP.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

from tap import Tap, execute

HERE = pathlib.Path(__file__).resolve().parent
CONSUMER = HERE / "consumer" / "consumer.c"
EXAMPLES = HERE.parent.parent / "examples"


def check_tree(tap, root, libdir, headers, series):
    lib = root / libdir
    soname = f"libquiesce.so.{series}"
    for name in ("libquiesce.so", soname, "libquiesce.a", "pkgconfig/quiesce.pc",
                 "cmake/quiesce/quiesce-config.cmake", "cmake/quiesce/quiesce-config-version.cmake"):
        tap.result((lib / name).exists(), f"installed: {name}")
    wanted = [str(h.relative_to(headers)) for h in headers.rglob("*") if h.suffix in (".h", ".hpp", ".cppm")]
    if (lib / "quiesce-urcu").exists():
        face = headers.parent / "liburcu/include"
        wanted += ["quiesce-urcu/" + str(h.relative_to(face)) for h in face.rglob("*.h")]
    wanted.sort()
    found = sorted(str(h.relative_to(root / "include")) for h in (root / "include").rglob("*") if h.is_file())
    tap.result(wanted == found, "installed: every public header and nothing else", f"want {wanted}\nfound {found}")
    run = execute(["readelf", "-dW", lib / "libquiesce.so"])
    tap.result(f"soname: [{soname}]" in run.stdout, f"soname is {soname}", run.stdout)
    tap.result("NODELETE" in run.stdout, "marked nodelete: it leaves handlers behind", run.stdout)


def check_product(tap, build, meson):
    """All that is installed and made by ninja is part of the target `product`, which is what `make install` builds."""
    words = set(execute(["ninja", "-C", build, "-t", "commands", "product"]).stdout.split())
    targets = [line.rpartition(": ") for line in execute(["ninja", "-C", build, "-t", "targets", "all"]).stdout.split("\n")]
    made = {name for name, _, rule in targets if rule != "phony"}
    installed = {os.path.relpath(p, build) for p in json.loads(execute([meson, "introspect", "--installed", build]).stdout)}
    outside = (installed & made) - words
    tap.result(installed & made and not outside, "everything installed is in the target product", outside)


def check_tool(tap, root, libexec, build):
    tool = root / "bin/quiesce"
    if not tool.exists():
        tap.skip("the tool runs from where it is installed", "the tool is not built")
        return
    tap.run("the tool runs from where it is installed", [tool, "--version"], text="quiesce 0.")
    tap.run("the tool refuses what it does not know", [tool, "nonsense"], want=2)
    names = re.findall(r"^  (\w+) ", execute([tool, "--help"]).stdout, re.M)
    wanted = {"man/man1/quiesce.1", *(f"man/man1/quiesce-{name}.1" for name in names), "bash-completion/completions/quiesce",
              "zsh/site-functions/_quiesce", "fish/vendor_completions.d/quiesce.fish"}
    missing = [path for path in sorted(wanted) if not (root / "share" / path).exists()]
    tap.result(names and not missing, "manual pages and completions are installed", missing)
    libraries = execute(["readelf", "-dW", tool]).stdout
    tap.result("RPATH" not in libraries and "RUNPATH" not in libraries, "the installed tool has no run path", libraries)
    check_peers(tap, root, tool, libexec, build)


def check_peers(tap, root, tool, libexec, build):
    """The modules that were built are installed, and found from there; peers.py knows more of them."""
    built = sorted(m.name for m in (build / "tools/peers").glob("*.so"))
    found = sorted(m.name for m in (root / libexec / "quiesce/peers").glob("*"))
    tap.result(built == found, "installed: modules of peers", f"want {built}\nfound {found}")
    listed = "".join(execute([tool, command, "--help"]).stdout for command in ("refscale", "retirescale"))
    tap.result(all(f"  {name.removesuffix('.so')}_" in listed for name in built), "the installed tool finds the modules", listed)


def pkg_config(lib, *what):
    env = {"PKG_CONFIG_PATH": str(lib / "pkgconfig")}
    return execute(["pkg-config", *what, "quiesce"], env).stdout.split()


def check_pkg_config(tap, lib, tmp):
    flags, libs = pkg_config(lib, "--cflags"), pkg_config(lib, "--libs")
    static = [str(lib / "libquiesce.a") if f == "-lquiesce" else f for f in pkg_config(lib, "--libs", "--static")]
    tap.result(any(str(lib.parent) in f or str(lib.parent.parent) in f for f in flags),
               "pkg-config follows the moved tree", flags)
    env = {"LD_LIBRARY_PATH": str(lib)}
    for title, command, link in (
            ("C, shared", ["gcc", "-std=gnu11"], libs),
            ("C, static library", ["gcc", "-std=gnu11"], static),
            ("C, wholly static", ["gcc", "-std=gnu11", "-static"], static),
            ("C, no-pie", ["gcc", "-std=gnu11", "-no-pie"], libs),
            ("C++, shared", ["g++", "-std=c++11", "-x", "c++"], libs)):
        program = tmp / "consumer"
        program.unlink(missing_ok=True)
        if tap.run(f"pkg-config consumer builds: {title}",
                   [*command, "-Wall", "-Wextra", "-Werror", *flags, CONSUMER, "-x", "none", "-o", program, *link]):
            tap.run(f"pkg-config consumer runs: {title}", [program], text="sum 321, freed 1", env=env)


def build_example(source, env, tmp):
    """Run the commands of an example, as it gives them, in its own directory; returns (their status and output, the directory)."""
    where = tmp / f"example-{source.stem}"
    shutil.copytree(EXAMPLES, where)
    commands = re.findall(r"^ \*\t(c(?:c|\+\+) .*)$", source.read_text(), re.M)
    return execute(["sh", "-e", "-c", "\n".join(commands) or "exit 1"], env, cwd=where), where


def check_examples(tap, lib, tmp):
    """Build and run the examples that have commands; the other files are parts of these.  start.py runs mistakes.c."""
    env = {"PKG_CONFIG_PATH": str(lib / "pkgconfig"), "LD_LIBRARY_PATH": str(lib)}
    sources = [s for s in sorted(EXAMPLES.glob("*.c*")) if "pkg-config" in s.read_text()]
    tap.result(len(sources) >= 9, "examples are found", sources)
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for source, (built, where) in zip(sources, pool.map(lambda s: build_example(s, env, tmp), sources)):
            ok = tap.result(built.returncode == 0, f"example {source.name} builds by its command", built.stdout + built.stderr)
            if ok and source.stem not in ("plugin", "mistakes"):  # the program of the plug-in, and start.py, run these
                tap.run(f"example {source.name} runs", [where / "a.out"], env=env)


def check_liburcu(tap, lib, tmp):
    """A program written for liburcu finds the face by pkg-config, or by -lurcu, and one that was built for it finds the objects."""
    env = {"PKG_CONFIG_PATH": str(lib / "quiesce-urcu/pkgconfig")}
    run_env = {"LD_LIBRARY_PATH": str(lib)}
    source = HERE / "consumer/urcu.c"
    for name, defines in (("liburcu", []), ("liburcu-memb", []), ("liburcu-mb", ["-DRCU_MB"]), ("liburcu-bp", ["-DUSE_BP"]),
                          ("liburcu-qsbr", ["-DUSE_QSBR"])):
        flags = execute(["pkg-config", "--cflags", "--libs", name, name], env).stdout.split()
        tap.result(any("quiesce-urcu" in f for f in flags), f"pkg-config finds the face of {name}", flags)
        program = tmp / "urcu"
        program.unlink(missing_ok=True)
        if tap.run(f"program for {name} builds", ["gcc", "-Wall", "-Wextra", "-Werror", *defines, source, "-o", program, *flags]):
            tap.run(f"program for {name} runs", [program], text="freed 1", env=run_env)
    tap.run("pkg-config says that it is liburcu of 0.15", ["pkg-config", "--atleast-version=0.15", "liburcu"], env=env)
    flags = execute(["pkg-config", "--cflags", "liburcu"], env).stdout.split()
    if tap.run("-lurcu finds the face", ["gcc", *flags, source, "-o", tmp / "urcu", f"-L{lib}/quiesce-urcu", f"-L{lib}", "-lurcu", "-lurcu-common"]):
        tap.run("and the program runs", [tmp / "urcu"], text="freed 1", env=run_env)
    check_urcu_linking(tap, lib, tmp, env)
    abi = lib / "quiesce-urcu/abi"
    if abi.exists():
        names = {p.name for p in abi.iterdir()}
        want = {f"liburcu{f}.so.8" for f in ("", "-memb", "-mb", "-bp", "-qsbr")}
        tap.result(want <= names, "objects of liburcu's names are installed", f"want {want}\nfound {names}")
        tap.run("they find the library", ["ldd", abi / "liburcu-memb.so.8"], text=str(lib.resolve()), env={"LD_LIBRARY_PATH": ""})


def check_urcu_linking(tap, lib, tmp, env):
    """By a run path to this library alone; by liburcu's linker names, without its headers; statically."""
    where, program = [f"-L{lib}/quiesce-urcu", f"-L{lib}"], tmp / "linked"
    found = {name: execute(["pkg-config", *what, "liburcu"], env).stdout.split()
             for name, what in (("flags", ["--cflags"]), ("libs", ["--libs"]), ("static", ["--libs", "--static"]))}
    (tmp / "updates.c").write_text("#include <urcu.h>\nint main(void) { synchronize_rcu(); return 0; }\n")
    (tmp / "foreign.c").write_text("void urcu_memb_read_lock(void); void urcu_memb_read_unlock(void); void urcu_qsbr_synchronize_rcu(void);\n"
                                   "int main(void) { urcu_memb_read_lock(); urcu_memb_read_unlock(); urcu_qsbr_synchronize_rcu(); return 0; }\n")
    for title, source, options in (
            ("that inlines no reader, by a run path", "updates.c", [*found["flags"], *found["libs"], f"-Wl,-rpath,{lib}"]),
            ("that has only liburcu's linker names, by -lurcu", "foreign.c", [*where, "-lurcu", f"-Wl,-rpath,{lib}"]),
            ("that has only liburcu's linker names, by pkg-config", "foreign.c", [*found["libs"], f"-Wl,-rpath,{lib}"]),
            ("that is wholly static", "updates.c", ["-static", *found["flags"], *found["static"]]),
            ("that has only liburcu's linker names, wholly static", "foreign.c", ["-static", *found["static"]]),
            ("that is wholly static, by -lurcu", "updates.c", ["-static", *found["flags"], *where, "-lurcu"])):
        program.unlink(missing_ok=True)
        if tap.run(f"a program builds {title}", ["gcc", "-Wall", "-Werror", tmp / source, "-o", program, *options]):
            tap.run(f"and runs, the one {title}", [program], env={"LD_LIBRARY_PATH": ""})
    needed = execute(["readelf", "-d", tmp / "urcu"]).stdout
    tap.result("quiesce-urcu.so" in needed and "names" not in needed, "a program of the headers loads no library of liburcu's names", needed)


def check_cmake(tap, lib, prefix, tmp, series):
    if not shutil.which("cmake"):
        tap.skip("CMake consumer", "cmake is not installed")
        return
    env = {"LD_LIBRARY_PATH": str(lib)}
    base = ["cmake", "-S", HERE / "consumer", f"-DCMAKE_PREFIX_PATH={prefix}", "-G", "Ninja"]
    if tap.run("CMake finds the package", [*base, "-B", tmp / "cmake", f"-DWANT_VERSION={series}"]) and \
            tap.run("CMake consumer builds", ["cmake", "--build", tmp / "cmake"]):
        for program in ("consumer-shared", "consumer-static", "consumer-cxx"):
            tap.run(f"CMake {program} runs", [tmp / "cmake" / program], text="sum 321, freed 1", env=env)
    tap.run("CMake refuses another series", [*base, "-B", tmp / "cmake2", "-DWANT_VERSION=0.9"], want=1,
            text="compatible")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--build", required=True)
    args.add_argument("--prefix", required=True)
    args.add_argument("--libdir", required=True)
    args.add_argument("--libexecdir", required=True)
    args.add_argument("--headers", type=pathlib.Path, required=True)
    args.add_argument("--meson", required=True)
    args.add_argument("--version", required=True)
    opt = args.parse_args()
    series = ".".join(opt.version.split(".")[:2])
    tap = Tap()
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        stage = tmp / "stage"
        if not tap.run("meson install with DESTDIR",
                       [opt.meson, "install", "-C", opt.build, "--no-rebuild", "--destdir", stage]):
            return tap.finish()
        moved = tmp / "moved"
        os.rename(str(stage) + opt.prefix, moved)
        left = [p for p in stage.rglob("*") if p.is_file()]
        tap.result(not left, "nothing installed outside the prefix", left)
        check_product(tap, pathlib.Path(opt.build).resolve(), opt.meson)
        check_tree(tap, moved, opt.libdir, opt.headers, series)
        check_tool(tap, moved, opt.libexecdir, pathlib.Path(opt.build))
        check_pkg_config(tap, moved / opt.libdir, tmp)
        check_examples(tap, moved / opt.libdir, tmp)
        check_liburcu(tap, moved / opt.libdir, tmp)
        check_cmake(tap, moved / opt.libdir, moved, tmp, series)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
