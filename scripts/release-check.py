#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Print what a release of the tree still lacks; the exit status is 1 if that is anything.

	release-check.py [--root DIR] [--library FILE]      before a release; the library's binary interface is compared with the last release's
	release-check.py --always                           only what holds in each commit: versions agree, and are later than the last release's
	release-check.py --write                            set the version of meson.build in the files that repeat it, as far as their text allows
"""
import argparse
import pathlib
import re
import subprocess
import sys

PLACEHOLDERS = ("quiesce@example.org", "https://quiesce.example")
PLACEHOLDERS_ARE_NAMED_IN = "SECURITY.md"
FULL, SERIES = r"(\d+\.\d+\.\d+)", r"(\d+\.\d+)"
# Each file that repeats the version, with the texts around it.
COPIES = {
    "include/quiesce/base.h": [f'#define QUIESCE_VERSION "{FULL}"'],
    "src/quiesce.map": [rf"^QUIESCE_{SERIES} \{{"],
    "liburcu/quiesce-urcu.map": [rf"^QUIESCE_URCU_{SERIES} \{{"],
    "liburcu/quiesce-urcu-names.map": [rf"^QUIESCE_URCU_NAMES_{SERIES} \{{"],
    "README.md": [rf"libquiesce\.so\.{SERIES}"],
    "docs/cpp.md": [r"quiesce_(\d+_\d+)"],
    "docs/debugging.md": [f"quiesce: version {FULL}"],
    "docs/kernel.md": [f"dkms install quiesce/{FULL}"],
    "docs/languages.md": [rf"libquiesce\.so\.{SERIES}"],
    "docs/platforms.md": [rf"libquiesce\.so\.{SERIES}"],
    "docs/watching.md": [rf"libquiesce\.so\.{SERIES}"],
    "docs/releasing.md": [rf"libquiesce\.so\.{SERIES}", rf"`version 'QUIESCE_{SERIES}'"],
    "packaging/debian/changelog": [rf"\Aquiesce \({FULL}-"],
    "packaging/debian/control": [rf"libquiesce{SERIES}"],
    "packaging/debian/rules": [rf"libquiesce{SERIES}"],
    "packaging/arch/PKGBUILD": [f"^pkgver={FULL}$"],
    "packaging/fedora/quiesce.spec": [rf"^Version: +{FULL}$"],
    "packaging/homebrew/quiesce.rb": [rf"/quiesce-{FULL}\.tar\.xz"],
    "rust/Cargo.toml": [f'^version = "{FULL}"$'],
    "rust/quiesce/Cargo.toml": [f'quiesce-sys", version = "{FULL}"'],
    "docs/rust.md": [f'^quiesce = "{SERIES}"$'],
    "packaging/vcpkg/vcpkg.json": [f'"version": "{FULL}"'],
}
NAMED = ("packaging/debian/libquiesce{}.install", "packaging/debian/libquiesce{}.symbols")
# The recipes that read meson.build themselves.
READERS = {"packaging/conan/conanfile.py": "meson.build", "packaging/nix/default.nix": "meson.build"}
MONTHS = "January February March April May June July August September October November December".split()
SECTION = re.compile(r"^## (\S+)(?: - (\d{4}-\d\d-\d\d))?$", re.M)


def number(version):
    return [int(part) for part in version.split(".")]


class Tree:
    def __init__(self, root):
        self.root = root
        self.version = re.search(rf"^  version: '{FULL}'", self.text("meson.build"), re.M)[1]
        self.series = self.version.rpartition(".")[0]
        self.sections = SECTION.findall(self.text("CHANGELOG.md"))
        self.released = next((name for name, date in self.sections if date), "0.0.0")

    def text(self, name):
        return (self.root / name).read_text(encoding="utf-8")

    def git(self, *command):
        return subprocess.run(["git", "-C", self.root, *command], capture_output=True, text=True, check=False)

    def wanted(self, found):
        """Return the version in the form of @found: 0.3.0, 0.3 or 0_3."""
        return self.version if found.count(".") == 2 else self.series.replace(".", "_") if "_" in found else self.series


def copies(tree):
    for name, patterns in COPIES.items():
        for pattern in patterns:
            found = re.findall(pattern, tree.text(name), re.M)
            if not found:
                yield f"{name}: nothing matches {pattern}"
            wrong = sorted(each for each in set(found) if each != tree.wanted(each))
            yield from (f"{name}: version {each}, and {tree.wanted(each)} in meson.build" for each in wrong)
    for name in NAMED:
        if not (tree.root / name.format(tree.series)).is_file():
            yield f"{name.format(tree.series)} is missing: files of Debian's packages have the name of the package"
    for name, source in READERS.items():
        if source not in tree.text(name):
            yield f"{name} does not read {source}"


def moved_on(tree):
    """Yield a version that was released already.  The release itself is the commit whose first section is dated and has the version."""
    name, date = tree.sections[0]
    if not (date and name == tree.version) and number(tree.version) <= number(tree.released):
        yield f"the version is {tree.version}, and {tree.released} was released: raise it in meson.build"
    if name not in ("Unreleased", tree.version):
        yield f"CHANGELOG.md begins with {name}: neither 'Unreleased' nor {tree.version}"
    if not (tree.root / f"tests/build/abi/libquiesce-{tree.released}.xml").is_file():
        yield f"tests/build/abi has no description of {tree.released}, which was released"


def dated(tree):
    name, date = tree.sections[0]
    if name != tree.version or not date:
        yield f"CHANGELOG.md begins with {name}, not with '## {tree.version} - DATE'"
    if tree.text("packaging/debian/changelog").split("\n")[0].split()[2] == "UNRELEASED;":
        yield "packaging/debian/changelog is UNRELEASED"
    manual = re.search(r"manual_date = '(.*)'", tree.text("src/meson.build"))[1]
    written = re.sub(r"^(\w+) (\d+), (\d+)$", lambda m: f"{m[3]}-{MONTHS.index(m[1]) + 1:02}-{int(m[2]):02}", manual)
    if date and written != date:
        yield f"manual_date in src/meson.build is {manual}, and the changelog's date {date}"


def figures(tree):
    last = tree.git("log", "-1", "--format=%H", "--", "docs/figures").stdout.strip()
    sources = "src", "include", ":!include/quiesce/base.h", ":!*meson.build"
    newer = tree.git("log", "--format=%h", f"{last}..", "--", *sources).stdout.split() if last else []
    if not last or newer:
        yield f"docs/figures are older than {len(newer)} commits to the library's sources: make figures"


def placeholders(tree):
    names = tree.git("grep", "-lF", *(word for text in PLACEHOLDERS for word in ("-e", text))).stdout.split()
    names = [name for name in names if name not in ("scripts/release-check.py", "tests/build/release.py")]
    if names:
        yield f"placeholders of the address or home page ({PLACEHOLDERS_ARE_NAMED_IN}): {' '.join(names)}"


def committed(tree):
    if tree.git("rev-parse", "--git-dir").returncode:
        yield "not a checkout: commits, tags, figures' age and placeholders are unknown"
        return
    changed = tree.git("status", "--porcelain").stdout.splitlines()
    if changed:
        yield f"{len(changed)} files are not committed: {' '.join(line[3:] for line in changed[:3])}"
    if tree.git("tag", "--list", f"v{tree.version}").stdout:
        yield f"the tag v{tree.version} exists"
    yield from figures(tree)
    yield from placeholders(tree)


def interface(tree, library):
    if not library:
        yield "the binary interface was not compared: --library is missing"
        return
    run = subprocess.run([sys.executable, tree.root / "tests/build/abi.py", "--library", library, "--include", tree.root / "include",
                          "--version", tree.version, "--descriptions", tree.root / "tests/build/abi"],
                         capture_output=True, text=True, check=False)
    if run.returncode == 77:
        yield "the binary interface was not compared: abigail-tools is not installed"
    elif run.returncode:
        yield f"the binary interface: {run.stderr.strip() or run.stdout}"
    if not (tree.root / f"tests/build/abi/libquiesce-{tree.version}.xml").is_file():
        yield f"the binary interface of {tree.version} is not described: tests/build/abi.py --write"


def write(tree):
    """Set the version in all copies."""
    for name, patterns in COPIES.items():
        text = tree.text(name)
        for pattern in patterns:
            text = re.sub(pattern, lambda m: m[0].replace(m[1], tree.wanted(m[1])), text, flags=re.M)
        if text != tree.text(name):
            (tree.root / name).write_text(text, encoding="utf-8")
            print(f"{name}: written")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    args.add_argument("--library", type=pathlib.Path)
    args.add_argument("--always", action="store_true")
    args.add_argument("--write", action="store_true")
    opt = args.parse_args()
    tree = Tree(opt.root)
    if opt.write:
        write(tree)
    found = [*copies(tree), *moved_on(tree)]
    if not (opt.always or opt.write):
        found += [*dated(tree), *interface(tree, opt.library), *committed(tree)]
    for line in found:
        print(f"release-check: {line}")
    if not found:
        print(f"release-check: {tree.version}: nothing is missing")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
