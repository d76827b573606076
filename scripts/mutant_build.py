# SPDX-License-Identifier: MIT
"""mutant_build.py - copies of the sources for mutants, each with a build directory; and the tests that are built there."""
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

import csource

# Changes that these warnings find count as found, because they are errors in every other build.
WARNINGS = "-Werror=uninitialized -Werror=maybe-uninitialized"
OPTIONS = ("-Dtool=disabled", "-Dpeers=disabled", "-Dtests_library=shared", "-Dc_args=" + WARNINGS, "-Dcpp_args=" + WARNINGS)
SUITES = {"unit", "faults", "sim", "liburcu", "conformance", "linear"}
BUILD_TIMEOUT = 600
_FAULT = re.compile(r"^FAIL|^not ok|^ +seed|did not finish|[Ee]rror|hangs|not so:")
# A mutant may write or allocate for ever: then the kernel ends it, not another process.
LIMITS = 'ulimit -c 0; ulimit -f 2000000; echo 1000 >/proc/self/oom_score_adj; exec "$@"'


class Stopped(Exception):
    """The user has interrupted the run."""


class Processes:
    """The running processes, so that all of them can be ended with their children."""

    def __init__(self):
        self.lock, self.running, self.stopped = threading.Lock(), set(), False

    def run(self, argv, timeout, **how):
        """(exit status or "timeout", seconds)"""
        start = time.monotonic()
        with self.lock:
            if self.stopped:
                raise Stopped
            child = subprocess.Popen(argv, start_new_session=True, stdin=subprocess.DEVNULL, **how)
            self.running.add(child)
        try:
            status = child.wait(timeout)
        except subprocess.TimeoutExpired:
            status = "timeout"
        finally:
            self._end(child)
        if self.stopped:
            raise Stopped
        return status, time.monotonic() - start

    def _end(self, child):
        """Ends a process and its children."""
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        child.wait()
        with self.lock:
            self.running.discard(child)

    def stop(self):
        with self.lock:
            self.stopped = True
            for child in self.running:
                try:
                    os.killpg(child.pid, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    pass


@dataclasses.dataclass(frozen=True)
class Test:
    name: str
    argv: tuple
    env: tuple
    targets: tuple
    program: str  # file name without its directory
    tap: bool
    is_sim: bool
    alone: bool   # does not run beside other tests of this kind
    lines_of: str # name of the test that runs the same lines; its own name if there is none

    def fewer_seeds(self):
        """Return the same command with an eighth of the seeds; None if it has no seeds."""
        if not self.is_sim or "--seeds" not in self.argv:
            return None
        at = self.argv.index("--seeds") + 1
        seeds = str(max(2, int(self.argv[at]) // 8))
        return dataclasses.replace(self, name=self.name + ", few seeds", lines_of=self.name, argv=self.argv[:at] + (seeds,) + self.argv[at + 1:])


def _names(root):
    """The files of the project, including new ones that git does not track yet."""
    new = subprocess.run(["git", "-C", root, "ls-files", "-z", "--others", "--exclude-standard"], capture_output=True, check=False)
    names = new.stdout.decode().split("\0") if new.returncode == 0 and (root / ".git").exists() else []
    return {n for n in (*csource.tracked(str(root)), *names) if n and (root / n).is_file()}


def copy_sources(root, to):
    """Make @to a copy of the sources; unchanged files keep their times, so that their objects are not rebuilt."""
    names = _names(root)
    for old in csource.tracked(str(to)) if to.exists() else ():
        if old not in names:
            (to / old).unlink()
    for name in names:
        new, copy = root / name, to / name
        if copy.is_file() and copy.read_bytes() == new.read_bytes() and copy.stat().st_mode == new.stat().st_mode:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(new, copy)


class Tree:
    """DIRECTORY/src, a copy of ORIGIN; DIRECTORY/build, made from it."""

    alone = threading.Lock()

    def __init__(self, origin, directory, processes, jobs, options=()):
        self.origin, self.directory, self.processes, self.jobs = origin, directory, processes, jobs
        self.src, self.build, self.tmp = directory / "src", directory / "build", directory / "tmp"
        self.options = OPTIONS + tuple(options)
        self.mutation = None

    # ---- copies ----

    def sync(self):
        copy_sources(self.origin, self.src)
        shutil.rmtree(self.tmp, ignore_errors=True)
        self.tmp.mkdir(parents=True)

    def mutate(self, mutation):
        mutation.apply(self.src)
        self.mutation = mutation

    def restore(self):
        if self.mutation:
            shutil.copy(self.origin / self.mutation.file, self.src / self.mutation.file)
            self.mutation = None

    # ---- building ----

    def _run(self, argv, timeout, log, env=None, cwd=None):
        with open(log, "wb") as out:
            return self.processes.run(argv, timeout, stdout=out, stderr=subprocess.STDOUT, env=env, cwd=cwd)

    def _text(self, log, size=20000):
        with open(log, "rb") as file:
            file.seek(max(0, os.path.getsize(log) - size))
            return file.read().decode(errors="replace")

    def configure(self):
        stamp = self.directory / "options"
        if stamp.exists() and stamp.read_text() == repr(self.options) and (self.build / "build.ninja").exists():
            return
        shutil.rmtree(self.build, ignore_errors=True)
        log = self.directory / "setup.log"
        status, _ = self._run(["meson", "setup", self.build, self.src, *self.options], BUILD_TIMEOUT, log)
        if status:
            raise RuntimeError(f"meson setup failed:\n{self._text(log, 2000)}")
        stamp.write_text(repr(self.options))

    def make(self, targets):
        """Build the targets and return the compiler's errors, or ""."""
        log = self.tmp / "build.log"
        status, _ = self._run(["ninja", "-C", self.build, f"-j{self.jobs}", *targets], BUILD_TIMEOUT, log)
        return "" if status == 0 else self._text(log) or "timeout"

    def make_clean(self, targets):
        fault = self.make(targets)
        if fault:
            raise RuntimeError("the build without a mutation failed:\n" + fault[-2000:])

    def hashes(self, targets):
        return {t: hashlib.sha256((self.build / t).read_bytes()).digest() for t in targets if (self.build / t).is_file()}

    # ---- tests ----

    def library(self):
        """The target that most tests are linked with."""
        targets = json.loads((self.build / "meson-info/intro-targets.json").read_text())
        return next(os.path.relpath(t["filename"][0], self.build) for t in targets if t["name"] == "quiesce" and t["type"] == "shared library")

    def tests(self):
        info = self.build / "meson-info"
        files = {t["id"]: t["filename"] for t in json.loads((info / "intro-targets.json").read_text())}
        found = []
        for t in json.loads((info / "intro-tests.json").read_text()):
            suites = {s.split(":")[-1] for s in t["suite"]}
            targets = tuple(os.path.relpath(f, self.build) for d in t["depends"] for f in files.get(d, ()))
            programs = [os.path.basename(f) for f in targets if re.search(r"(^|/)[^./]+$", f) and not f.endswith("-clang")]
            if not suites & SUITES or "slow" in suites or not programs:
                continue
            argv = tuple(os.path.relpath(a, self.build) if a.startswith(str(self.build) + "/") else a for a in t["cmd"])
            env = tuple((k, v.replace(str(self.build), ".")) for k, v in t["env"].items())
            found.append(Test(" ".join(sorted(suites)) + "/" + t["name"], argv, env, targets, programs[0], t["protocol"] == "tap",
                              "sim" in suites, not t["is_parallel"], ""))
        return found

    def check(self, name):
        """The report of a style check on the copy, or ""."""
        log = self.tmp / "check.log"
        status, _ = self._run(["python3", self.src / f"scripts/check-{name}.py", self.src], BUILD_TIMEOUT, log)
        return self._text(log) if status else ""

    def run(self, test, limit, env=(), log="test.log"):
        """(True if it passed, seconds, output).  A test that skips itself passes."""
        with self.alone if test.alone else contextlib.nullcontext():
            return self._run_test(test, limit, env, self.tmp / log)

    def _run_test(self, test, limit, env, log):
        variables = {**os.environ, "TMPDIR": str(self.tmp), "MALLOC_PERTURB_": "165", **dict(test.env), **dict(env)}
        argv = ["sh", "-c", LIMITS, "sh", *(str(self.build / a) if (self.build / a).is_file() and "/" in a else a for a in test.argv)]
        status, seconds = self._run(argv, limit, log, variables, self.build)
        said = self._text(log)
        passed = status in (0, 77) and not (test.tap and re.search(r"^not ok", said, re.M))
        why = f"limit of {limit:.1f} s" if status == "timeout" else f"exit {status}"
        found = [line.strip() for line in said.split("\n") if _FAULT.search(line)] or said.strip().split("\n")[-2:]
        return passed, seconds, f"{why}: {' | '.join(found)[:300]}"
