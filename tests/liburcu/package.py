# SPDX-License-Identifier: MIT
"""Unpack liburcu's sources, from the distribution's source package, and find the programs that its Makefile.am files define.

Nothing is installed and root is not needed: apt downloads with lists of its own, made from this machine's sources.
"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

PREFERRED = "trixie"  # the tests of 0.15: pollers, C++, memory orders
KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")
VARIABLE = re.compile(r"^([A-Za-z_0-9]+)\s*\+?=\s*(.*)$")
Program = collections.namedtuple("Program", "name directory sources defines libraries cxx")


class Unavailable(Exception):
    """The package cannot be obtained here: a reason to skip."""


def cache():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "quiesce-liburcu"


def archives():
    """Return the Debian archives among this machine's sources."""
    out = subprocess.run(["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)"], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, check=False).stdout
    found = [line.split()[-1] for line in out.splitlines() if line.split()[:1] == ["Debian"] and re.search(r"/debian/?$", line)]
    for name in sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*.sources")) if not found else ():  # no lists yet
        found += re.findall(r"^URIs:\s*(\S+/debian/?)$", name.read_text(encoding="utf-8", errors="replace"), re.M)
    return found


def suites(more=()):
    own = re.search(r"^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text(encoding="utf-8"), re.M)
    return [PREFERRED, *more] + ([own.group(1)] if own and own.group(1) != PREFERRED else [])


def download(directory, archive, suite, what):
    """Return the archive of the original sources of a package, or None and the reason."""
    shutil.rmtree(directory, ignore_errors=True)
    for name in ("lists/partial", "cache/archives/partial"):
        (directory / name).mkdir(parents=True)
    signed = f"Signed-By: {KEYRING}\n" if KEYRING.exists() else ""
    (directory / "apt.sources").write_text(f"Types: deb-src\nURIs: {archive}\nSuites: {suite}\nComponents: main\n{signed}")
    options = {"Dir::Etc::sourcelist": directory / "apt.sources", "Dir::Etc::sourceparts": "/dev/null", "Dir::State::lists": directory / "lists",
               "Dir::State::status": "/dev/null", "Dir::Cache": directory / "cache", "APT::Sandbox::User": "root",
               "Acquire::Languages": "none", "APT::Update::Error-Mode": "any"}
    apt = ["apt-get", "-q"] + [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    for command in (["update"], ["source", "--download-only", "--tar-only", what]):
        done = subprocess.run(apt + command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            return None, f"{suite}: {(done.stdout.strip().splitlines() or ['?'])[-1]}"
    return next(iter(directory.glob(f"{what}_*.orig.tar.*")), None), f"{suite}: no archive came"


def fetch(into, what="liburcu", more=()):
    """Unpack the newest sources of a package that can be had as into/source."""
    if not shutil.which("apt-get"):
        raise Unavailable("not a Debian system")
    why = ["this machine's apt sources name no Debian archive"]
    for suite in suites(more):
        for archive in archives():
            got, reason = download(into / "apt", archive, suite, what)
            if not got:
                why.append(reason)
                continue
            unpacked = into / "unpacked"
            shutil.rmtree(unpacked, ignore_errors=True)
            with tarfile.open(got) as tar:
                tar.extractall(unpacked)
            shutil.rmtree(into / "source", ignore_errors=True)
            next(unpacked.iterdir()).rename(into / "source")
            (into / "source/package-version").write_text(got.name.split("_")[1].split(".orig")[0])
            shutil.rmtree(into / "apt")
            return
    raise Unavailable(f"the source package {what} cannot be had: " + "; ".join(why[-2:]))


class Source:
    """An unpacked source tree of liburcu, which finds the programs in it."""

    def __init__(self, given=None):
        if given:
            self.root = pathlib.Path(given).resolve()
        else:
            self.root = cache() / "source"
            if not (self.root / "package-version").exists():
                cache().mkdir(parents=True, exist_ok=True)
                fetch(cache())
        if not (self.root / "tests").is_dir():
            raise Unavailable(f"{self.root} has no tests")

    def version(self):
        named = self.root / "package-version"
        text = named.read_text(encoding="utf-8") if named.exists() else ""
        found = re.search(r"^(\d+)\.(\d+)", text)
        if not found:
            text = (self.root / "configure.ac").read_text(encoding="utf-8")
            found = [re.search(rf"urcu_version_{word}\], \[(\d+)", text) for word in ("major", "minor")]
            return tuple(int(m.group(1)) for m in found) if all(found) else (0, 0)
        return int(found.group(1)), int(found.group(2))

    def variables(self, directory):
        """Makefile.am's variables, as words; a reference to another one is replaced by that."""
        text = (self.root / directory / "Makefile.am").read_text(encoding="utf-8").replace("\\\n", " ")
        found = {}
        for line in text.splitlines():
            match = VARIABLE.match(line)
            if match:
                found.setdefault(match.group(1), []).extend(match.group(2).split())
        def words(name, depth=0):
            for word in found.get(name, ()):
                inner = re.fullmatch(r"\$\((\w+)\)", word)
                if inner and inner.group(1) in found and depth < 4:
                    yield from words(inner.group(1), depth + 1)
                else:
                    yield word
        return {name: list(words(name)) for name in found}

    def programs(self, directory):
        """Return the programs of tests/directory."""
        values = self.variables(f"tests/{directory}")
        for name in values.get("noinst_PROGRAMS", ()):
            stem = re.sub(r"\W", "_", name)
            sources = [s for s in values.get(stem + "_SOURCES", [name + ".c"]) if s.endswith((".c", ".cpp"))]
            flags = values.get(stem + "_CFLAGS", []) + values.get(stem + "_CXXFLAGS", [])
            libraries = [m.group(1) for word in values.get(stem + "_LDADD", ()) for m in [re.search(r"/lib([\w-]+)\.l?a$", word)] if m]
            yield Program(name.replace(".tap", ""), directory, sources, [f for f in flags if f.startswith("-D")],
                          [library for library in libraries if library != "tap"], any(s.endswith(".cpp") for s in sources))

    def libraries(self):
        """(name, sources, defines, libraries) of each library."""
        values = self.variables("src")
        for name in values["lib_LTLIBRARIES"]:
            stem = re.sub(r"\W", "_", name)
            yield (name[:-3], [s for s in values[stem + "_SOURCES"] if s.endswith(".c")],
                   [f for f in values.get(stem + "_CFLAGS", ()) if f.startswith("-D")],
                   [word[:-3] for word in values.get(stem + "_LIBADD", ()) if word.endswith(".la")])


def main():
    """package.py NAME DIRECTORY [SUITE...]: the sources of a package, unpacked; from one of these suites rather than from this machine's."""
    if len(sys.argv) < 3:
        print(main.__doc__, file=sys.stderr)
        return 2
    into = pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as scratch:
        try:
            fetch(pathlib.Path(scratch), sys.argv[1], sys.argv[3:])
        except Unavailable as reason:
            print(f"package: {reason}", file=sys.stderr)
            return 77
        shutil.move(pathlib.Path(scratch) / "source", into)
    return 0


if __name__ == "__main__":
    sys.exit(main())
