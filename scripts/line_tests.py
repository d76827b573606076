# SPDX-License-Identifier: MIT
"""line_tests.py - find the tests that run a line of the library: in a special build each basic block leaves a trace (tests/traced.c)."""
import bisect
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess

FLAGS = "-g1 -fsanitize-coverage=trace-pc"
LIMIT = 120
TRACE = "TRACE_DIRECTORY" # a test may drop variables named QUIESCE_...
_PLACE = re.compile(r"^(/\S+):(\d+)(?: \(discriminator \d+\))?$")
_CODE = re.compile(r"^ +([0-9a-f]+):\t(\S+)(.*)")


def options(directory, cc):
    """Options of Meson for a traced build; makes the object that the build is linked with."""
    directory.mkdir(parents=True, exist_ok=True)
    traced = directory / "traced.o"
    source = pathlib.Path(__file__).resolve().parent.parent / "tests/traced.c"
    subprocess.run([*cc, "-O2", "-fPIC", "-c", source, "-o", traced], check=True)
    return [f"-D{language}_{what}={value}" for language in ("c", "cpp") for what, value in (("args", FLAGS), ("link_args", traced))]


class _Object:
    """The lines of each basic block of an executable or shared object, by the offset that the block leaves in the trace."""

    def __init__(self, path, src):
        self.lines = {}
        dump = subprocess.run(["objdump", "-dl", "--no-show-raw-insn", path], capture_output=True, text=True, errors="replace", check=True)
        place, block, after_call = None, None, False
        for line in dump.stdout.split("\n"):
            code = _CODE.match(line)
            if code:
                if after_call:
                    block = self.lines.setdefault(int(code[1], 16) // 4, set())
                after_call = code[2].startswith("call") and "<__sanitizer_cov_trace_pc>" in code[3]
                if place and not after_call and block is not None:
                    block.add(place)
            elif line.endswith(">:"):
                block = None
            elif line.startswith("/"):
                found = _PLACE.match(line)
                path = os.path.normpath(found[1]) if found else ""
                place = (os.path.relpath(path, src), int(found[2])) if path.startswith(str(src) + "/") else None


class LineTests:
    """Names of tests by file and line; and the lines that have code."""

    def __init__(self, known, by_test):
        self.known = {name: sorted(lines) for name, lines in known.items()}
        self.by_test = by_test

    def of(self, name, first, last):
        """The tests that run a line from @first to @last, counted from 1, or else the nearest line before."""
        lines = self.known.get(name, [])
        wanted = {n for n in range(first, last + 1) if n in set(lines)}
        if not wanted:
            at = bisect.bisect_right(lines, first)
            wanted = set(lines[max(0, at - 1):at + 1])
        return {test for test, files in self.by_test.items() if wanted & files.get(name, set())}

    def save(self, path, key):
        document = {"key": key, "known": self.known, "by_test": {t: {f: sorted(n) for f, n in files.items()} for t, files in self.by_test.items()}}
        path.write_text(json.dumps(document))

    @classmethod
    def load(cls, path, key):
        try:
            document = json.loads(path.read_text())
        except (OSError, ValueError):
            return None
        if document.get("key") != key:
            return None
        return cls(document["known"], {t: {f: set(n) for f, n in files.items()} for t, files in document["by_test"].items()})


def _executed(directory, objects):
    """{file: lines} of the traces in the directory."""
    found = {}
    for trace in directory.iterdir():
        for hit in re.finditer(b"\x01", trace.read_bytes()) if trace.name in objects else ():
            for name, line in objects[trace.name]().lines.get(hit.start(), ()):
                found.setdefault(name, set()).add(line)
    return found


def _objects(tree):
    """Executables, shared objects and the names by which these are loaded; each is read when it is needed."""
    read = functools.lru_cache(None)(lambda path: _Object(path, tree.src))
    found = {}
    for path in tree.build.rglob("*"):
        if path.is_file() and path.suffix not in (".o", ".a"):
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    found[path.name] = functools.partial(read, path.resolve())
    return found


def take(tree, tests, jobs):
    """Build all of @tests, traced, and run each once; but for programs that another compiler links, without the traced object."""
    tests = [test for test in tests if not any("-clang" in target for target in test.targets)]
    fault = tree.make(sorted({t for test in tests for t in test.targets}))
    if fault:
        raise RuntimeError("the traced build failed:\n" + fault[-2000:])
    objects, known = _objects(tree), {}

    def one(numbered):
        number, test = numbered
        directory = tree.directory / "trace" / str(number)
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        tree.run(test, LIMIT, [(TRACE, str(directory))], f"test-{number}.log")
        lines = _executed(directory, objects)
        shutil.rmtree(directory)
        return test.name, lines

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        by_test = dict(pool.map(one, enumerate(tests)))
    for each in objects.values():
        for block in each().lines.values():
            for name, line in block:
                known.setdefault(name, set()).add(line)
    return LineTests(known, by_test)
