# SPDX-License-Identifier: MIT
"""Compile liburcu's programs against liburcu itself or against the face, without its configure."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess

import package

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
# On any Linux of the last ten years configure finds these.
DEFINES = ["-D_GNU_SOURCE", "-DHAVE_SCHED_GETCPU=1", "-DHAVE_SCHED_SETAFFINITY=1", "-DHAVE_SYSCONF=1", "-DHAVE_RAND_R=1",
           "-DHAVE_GETTID=1", "-DHAVE_SYNC_BUILTINS=1", "-DHAVE_LIBPTHREAD=1"]
CONFIG = """#define CONFIG_RCU_SMP 1
#define CONFIG_RCU_TLS 1
#define CONFIG_RCU_HAVE_CLOCK_GETTIME 1
#define CONFIG_RCU_HAVE_MULTIFLAVOR 1
#define CONFIG_RCU_EMIT_LEGACY_MB 1
"""
NO_SIGNAL = "liburcu's signal flavour, which 0.15 has no more"
# Repairs of a fault in the tests themselves: threads whose ids are stored past the array, and joined from it.
REPAIRS = {"test_urcu_wfs.c": ("&tid_enqueuer[i],", "&tid_enqueuer[i_thr],")}
STRAY = re.compile(r"\.+ /usr/(local/)?include/(.*/)?urcu[-./]")  # in the list that -H makes: the face lacks a header


class Failed(Exception):
    """This exception has the messages of a failed compilation."""


def compile_to(out, argv):
    """Let the compiler make OUT, which appears when it is complete."""
    fresh = out.with_suffix(".new")
    done = subprocess.run([str(a) for a in argv] + ["-o", str(fresh)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    if done.returncode:
        raise Failed(done.stdout)
    stray = [line for line in done.stdout.splitlines() if STRAY.match(line)]
    if "-H" in argv and stray:
        raise Failed("error: liburcu's own header was read: " + stray[0].strip(". "))
    fresh.replace(out)
    return out


class Library:
    """The library that a program is compiled against.  defect: grace periods do not wait, because of an object linked before the library."""

    def __init__(self, source, out, defect=False):
        self.source, self.out, self.defect = source, out, defect
        self.cc, self.cxx = os.environ.get("CC", "gcc"), os.environ.get("CXX", "g++")

    def prepare(self):
        self.out.mkdir(parents=True, exist_ok=True)
        self.short = compile_to(self.out / "short.so", [*self.cc.split(), "-O1", "-shared", "-fPIC", HERE / "short.c"])
        if self.defect:
            self.broken = compile_to(self.out / "broken.so", [*self.cc.split(), "-O1", "-shared", "-fPIC", "-pthread", HERE / "broken.c"])

    def environment(self, seconds=None):
        """Return the environment of a run: seconds is the most that a test may sleep."""
        preload = ([str(self.short)] if seconds else []) + ([str(self.broken)] if self.defect else [])
        more = {"LIBURCU_TESTS_SECONDS": str(seconds)} if seconds else {}
        if self.defect:
            more["QUIESCE_URCU_PACE_MS"] = "0"  # a pause before callbacks would hide that grace periods do not wait
        return dict(os.environ, LD_PRELOAD=" ".join(preload), URCU_TESTS_SRCDIR=str(self.source.root / "tests"),
                    URCU_TESTS_BUILDDIR=str(self.out), **more)

    def newest(self):
        """Return the time of the last change of the files that programs are built from."""
        return max((p.stat().st_mtime for top in (HERE, *self.watched()) for p in (top.rglob("*") if top.is_dir() else [top]) if p.is_file()),
                   default=0)

    def refused(self, _program):
        return None

    def adapt(self, program):
        """Return the program in the form that can be compiled here."""
        return program

    def sources(self, program):
        """Return the program's files; those with a mistake are repaired copies."""
        for name in program.sources:
            path = self.source.root / "tests" / program.directory / name
            if name in REPAIRS and path.exists():
                copy = self.out / program.directory / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                text = path.read_text(encoding="utf-8").replace(*REPAIRS[name])
                if not copy.exists() or copy.read_text(encoding="utf-8") != text:
                    copy.write_text(text)
                path = copy
            yield path

    def flags(self, program):
        tests = self.source.root / "tests"
        include = [tests / program.directory, tests / "common", tests / "utils", self.source.root / "src"]
        common = tests / "benchmark/common-states.h"
        forced = ["-include", common] if program.directory == "benchmark" and common.exists() else []
        return ["-O2", "-g", "-pthread", "-w", *DEFINES, *self.includes(), *[f"-I{d}" for d in include], *program.defines, *forced]

    def compile(self, program, newest):
        """Return the executable of a program, or raise Failed."""
        tests = self.source.root / "tests"
        out = self.out / program.directory / program.name
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.exists() and out.stat().st_mtime > newest:
            return out
        sources = list(self.sources(program))
        if "debug-yield" in program.libraries:
            sources.append(tests / "common/debug-yield.c")
        if (tests / "utils/tap.c").exists() and program.directory != "benchmark":
            sources.append(self.tap())
        compiler = self.cxx if program.cxx else self.cc
        # The C files among a C++ program's sources have to stay C.
        objects = [self.object(program, s) if program.cxx and s.suffix == ".c" else s for s in sources]
        return compile_to(out, [*compiler.split(), *self.flags(program), *objects, *self.links(program)])

    def object(self, program, source):
        out = self.out / program.directory / f"{program.name}-{source.stem}.o"
        return compile_to(out, [*self.cc.split(), "-c", *self.flags(program), source])

    def tap(self):
        """tap.c as an object that all share."""
        return self.out / "tap.o"

    def compile_all(self, programs, done=lambda _n: None):
        """{program name: path, or Failed, or a reason to skip}"""
        utils = self.source.root / "tests/utils"
        compile_to(self.out / "tap.o", [*self.cc.split(), "-c", "-O2", "-w", *DEFINES, f"-I{utils}", utils / "tap.c"])
        newest, result = self.newest(), {}

        def one(program):
            reason = self.refused(program)
            if reason:
                return program, reason
            try:
                return program, self.compile(program, newest)
            except Failed as failed:
                return program, failed

        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            for count, (program, got) in enumerate(pool.map(one, programs), 1):
                result[program.directory, program.name] = got
                done(count)
        return result


class Control(Library):
    """liburcu itself: the distribution's where it is not older than the tests, or else built from the source that has the tests."""
    name = "liburcu"

    def prepare(self):
        super().prepare()
        shown = subprocess.run(["pkg-config", "--modversion", "liburcu"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               check=False).stdout if shutil.which("pkg-config") else ""
        numbers = tuple(int(n) for n in re.findall(r"\d+", shown)[:2])
        self.installed = bool(numbers) and numbers >= self.source.version()
        self.root = self.out / "built"
        if not self.installed:
            self.build()

    def describe(self):
        return "the distribution's liburcu" if self.installed else f"liburcu built from its source ({self.root})"

    def build(self):
        top = self.source.root
        (self.root / "urcu").mkdir(parents=True, exist_ok=True)
        (self.root / "urcu/config.h").write_text(CONFIG)
        for name, sources, defines, needs in self.source.libraries():
            links = [f"-L{self.root}", f"-Wl,-rpath,{self.root}"] + [f"-l{need[3:]}" for need in needs]
            compile_to(self.root / f"{name}.so", [*self.cc.split(), "-O2", "-g", "-w", "-shared", "-fPIC", "-pthread", *DEFINES, *self.includes(),
                                                   f"-I{top / 'src'}", *defines, *[top / "src" / s for s in sources], *links,
                                                   f"-Wl,-soname,{name}.so.8"])
            link = self.root / f"{name}.so.8"
            link.unlink(missing_ok=True)
            link.symlink_to(f"{name}.so")

    def watched(self):
        return [self.source.root / "tests", pathlib.Path("/usr/include/urcu") if self.installed else self.root / "urcu"]

    def includes(self):
        return [] if self.installed else [f"-I{self.source.root / 'include'}", f"-I{self.root}"]

    def links(self, program):
        where = [] if self.installed else [f"-L{self.root}", f"-Wl,-rpath,{self.root}"]
        # Symbols of urcu-common are only found through the dependencies of each flavour.
        names = [n for n in program.libraries if n != "debug-yield"] or ["urcu-common"]
        return [*where, "-Wl,--no-as-needed", *[f"-l{n}" for n in names], "-lurcu-common"]


class Objects(Control):
    """These programs are built for liburcu and load our objects of its names."""
    name = "objects"

    def __init__(self, source, out, build, defect=False):
        super().__init__(source, out, defect)
        self.build_directory = build

    def prepare(self):
        self.objects = self.build_directory / "liburcu/abi"
        if not (self.objects / "liburcu-memb.so.8").exists():
            raise package.Unavailable(f"there is no liburcu-memb.so.8 in {self.objects}")
        super().prepare()

    def describe(self):
        return f"our objects of its names ({self.objects}), compiled for {super().describe()}"

    def environment(self, seconds=None):
        return dict(super().environment(seconds), LD_LIBRARY_PATH=f"{self.objects}:{self.build_directory / 'src'}")


class Face(Library):
    """Ours: the headers of this tree and the libraries of a build directory; cds_lfht is liburcu's own, over our flavours."""
    name = "face"

    def __init__(self, source, out, build, control, defect=False):
        super().__init__(source, out, defect)
        self.build, self.control = build, control

    def prepare(self):
        found = sorted(self.build.rglob("libquiesce-urcu.so"))
        plain = sorted(self.build.rglob("libquiesce.so"))
        if not found or not plain:
            raise package.Unavailable(f"there is no libquiesce-urcu.so in {self.build}")
        self.libraries = [found[0], plain[0]]
        self.control.prepare()
        super().prepare()

    def describe(self):
        return f"the face ({self.libraries[0]})"

    def watched(self):
        return [self.source.root / "tests", ROOT / "liburcu/include", ROOT / "include", *self.libraries]

    def includes(self):
        return [f"-I{ROOT / 'liburcu/include'}", f"-I{ROOT / 'include'}", "-H"]

    def adapt(self, program):
        """Replace the signal flavour in 0.13's multiflavour test by a second part of memb."""
        kept = [s for s in program.sources if not s.endswith("-signal.c")]
        if kept == program.sources:
            return program
        return program._replace(sources=kept, defines=[*program.defines, "-Dtest_mf_signal=test_mf_memb"])

    def refused(self, program):
        text = "".join(path.read_text(encoding="utf-8", errors="replace") for path in self.sources(program) if path.exists())
        if any("RCU_SIGNAL" in d for d in program.defines) or "urcu-signal.h" in text:
            return NO_SIGNAL
        return None

    def links(self, program):
        directories = {library.parent for library in self.libraries}
        words = [w for d in directories for w in (f"-L{d}", f"-Wl,-rpath,{d}")] + ["-lquiesce-urcu", "-lquiesce"]
        if "urcu-cds" in program.libraries:
            cds = "-l:liburcu-cds.so.8" if self.control.installed else "-lurcu-cds"
            words += ([] if self.control.installed else [f"-L{self.control.root}", f"-Wl,-rpath,{self.control.root}"]) + [cds]
        return words
