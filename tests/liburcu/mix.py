#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mixed processes: a host and a plug-in, each of a flavour, and each built for liburcu (readers inlined or called) or rebuilt with the face.

Both read and replace objects in the same threads.  Sides built for liburcu run with liburcu, and with our objects of its names.  Where both
sides have one RCU, each reads the other's objects, too.  Last, with grace periods that do not wait, a process of each kind has to crash.

One line for each kind of process, and at the end: N passed, N failed, N skipped.
Exit status: 0 nothing failed; 1 something did; 2 wrong usage; 77 there is no liburcu, no face or no objects of its names.
"""
import argparse
import collections
import concurrent.futures
import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MIX = ROOT / "tests/liburcu/mix"
FLAVORS = ("memb", "mb", "bp", "qsbr")
WAYS = ("inlined", "called", "rebuilt")
ATTEMPTS = 8  # attempts with a broken process, until it crashes
Side = collections.namedtuple("Side", "flavor way")


class Mix:
    def __init__(self, build, out):
        self.build, self.out = build, out
        self.cc = os.environ.get("CC", "gcc").split()
        self.face, self.objects = build / "liburcu", build / "liburcu/abi"

    def flags(self, side):
        defines = [f'-DFLAVOR=<urcu/urcu-{side.flavor}.h>', "-DURCU_API_MAP"] + (["-DQSBR"] if side.flavor == "qsbr" else [])
        if side.way == "rebuilt":
            return [*defines, f"-I{ROOT / 'liburcu/include'}", f"-I{ROOT / 'include'}"]
        return defines + (["-D_LGPL_SOURCE"] if side.way == "inlined" else [])

    def links(self, side):
        if side.way == "rebuilt":
            return [f"-L{self.face}", f"-L{self.build / 'src'}", "-lquiesce-urcu", "-lquiesce", f"-Wl,-rpath,{self.face}:{self.build / 'src'}"]
        return [f"-lurcu-{side.flavor}", "-lurcu-common"]

    def compile(self, side, role):
        path = self.out / f"{role}-{side.flavor}-{side.way}"
        kind = ["-shared", "-fPIC"] if role == "plugin" else [f"-I{ROOT / 'include'}", str(MIX / "host.c")]
        argv = [*self.cc, "-O2", "-g", "-pthread", f"-DSIDE={role}", *self.flags(side), *kind, str(MIX / "side.c"), "-o", str(path), *self.links(side)]
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.stdout.strip() if done.returncode else None

    def run(self, host, plugin, library, broken=False):
        """Return None, or the fault."""
        argv = [self.out / f"host-{host.flavor}-{host.way}", self.out / f"plugin-{plugin.flavor}-{plugin.way}",
                "shared" if one_rcu(host, plugin) else "apart"]
        environment = dict(os.environ, QUIESCE_URCU_PACE_MS="0", LD_LIBRARY_PATH=f"{self.objects}:{self.build / 'src'}" if library == "objects" else "")
        if broken:
            environment["LD_PRELOAD"] = str(self.out / "broken.so")
        try:
            done = subprocess.run(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        except subprocess.TimeoutExpired:
            return "it hangs"
        if done.returncode < 0:
            return f"killed by {signal.Signals(-done.returncode).name}: {done.stdout.strip()[-200:]}"
        return f"exit status {done.returncode}: {done.stdout.strip()[-200:]}" if done.returncode else None


def one_rcu(host, plugin):
    """Return the domain with one set of readers: a flavour of one library; rebuilt, memb and bp are one."""
    if (host.way == "rebuilt") != (plugin.way == "rebuilt"):
        return False
    return host.flavor == plugin.flavor or (host.way == "rebuilt" and {host.flavor, plugin.flavor} == {"memb", "bp"})


class Results:
    def __init__(self):
        self.passed = self.failed = 0

    def say(self, name, wrong):
        self.passed += not wrong
        self.failed += bool(wrong)
        print(f"{'FAILED' if wrong else 'passed'}     0.0 s  {name}{': ' if wrong else ''}{wrong or ''}", flush=True)


def kinds():
    """{name: [(host, plug-in, library)]}: one for each pair of ways, of all pairs of flavours."""
    table = {}
    for ways in itertools.product(WAYS, WAYS):
        for library in ("liburcu", "objects") if ways != ("rebuilt", "rebuilt") else ("face",):
            name = f"host {ways[0]}, plug-in {ways[1]}, {library}"
            table[name] = [(Side(h, ways[0]), Side(p, ways[1]), library) for h, p in itertools.product(FLAVORS, FLAVORS)]
    return table


def work(mix, results):
    sides = [(Side(f, w), role) for f in FLAVORS for w in WAYS for role in ("host", "plugin")]
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for (side, role), wrong in zip(sides, pool.map(lambda s: mix.compile(*s), sides)):
            if wrong:
                results.say(f"{role}, {side.flavor}, {side.way}: compiles", wrong)
        for name, runs in kinds().items():
            wrong = [f"{h.flavor} and {p.flavor}: {w}" for (h, p, _), w in zip(runs, pool.map(lambda r: mix.run(*r), runs)) if w]
            results.say(f"{name}: {len(runs)} pairs of flavours", "; ".join(wrong))
    for name, runs in kinds().items():
        host, plugin, library = runs[0]
        seen = any((mix.run(host, plugin, library, broken=True) or "").startswith("killed") for _ in range(ATTEMPTS))
        results.say(f"{name}: without grace periods", None if seen else "it does not crash")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="Meson's build directory (default: build)")
    build = parser.parse_args().build.resolve()
    for path, what in ((build / "liburcu/libquiesce-urcu.so", "face"), (build / "liburcu/abi/liburcu-memb.so.8", "objects of liburcu's names")):
        if not path.exists():
            print(f"mix: skipped: no {what} in {build}")
            return 77
    if subprocess.run(["pkg-config", "--exists", "liburcu-memb"], check=False).returncode if shutil.which("pkg-config") else True:
        print("mix: skipped: liburcu-dev is not installed")
        return 77
    results = Results()
    with tempfile.TemporaryDirectory() as directory:
        mix = Mix(build, pathlib.Path(directory))
        subprocess.run([*mix.cc, "-O1", "-shared", "-fPIC", "-pthread", str(ROOT / "tests/liburcu/broken.c"), "-o", str(mix.out / "broken.so")], check=True)
        work(mix, results)
    print(f"{results.passed} passed, {results.failed} failed, 0 skipped")
    return 1 if results.failed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nmix: interrupted", file=sys.stderr)
        sys.exit(130)
