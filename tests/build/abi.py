#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The shared library has the binary interface of the last release, or a name that says that it has not.

	abi.py --library FILE --include DIR --version V --descriptions DIR [--cc CC]
	abi.py ... --write      describe the library, in DIR/libquiesce-V.xml: a step of a release

The description is abidw's, of the exported symbols and of the types in public headers that these reach.  A version of the same series
(0.3.1 after 0.3.0) may only add symbols, by a node of its own in the version script.  A new series has another soname and another version
of all symbols, so that both can be installed; then the differences are counted.  With --cc small libraries, each with one change, try
the rules.
"""
import argparse
import pathlib
import re
import shutil
import sys
import tempfile

from tap import Tap, execute

ERRORS = 3  # the bits of abidiff's status that are no difference
NAME = re.compile(r"^libquiesce-(\d+\.\d+\.\d+)\.xml$")
SYMBOL = re.compile(r"<elf-symbol name='([^']*)'[^>]* version='([^']*)'")
HEADER = "struct item { int a; };\nvoid item_init(struct item *i);\n" \
         "struct quiesce_stats { int a; };\nvoid item_count(struct quiesce_stats *s);\n"
SOURCE = '#include "item.h"\nvoid item_init(struct item *i)\n{\n\ti->a = 0;\n}\n' \
         'void item_count(struct quiesce_stats *s)\n{\n\ts->a = 0;\n}\n'
MORE = "int item_more(struct item *i);\nint item_more(struct item *i)\n{\n\treturn i->a;\n}\n"


def number(version):
    return [int(part) for part in version.split(".")]


def series(version):
    return number(version)[:2]


class Library:
    """It has the names in a description or a shared library: soname, {symbol: version}."""

    def __init__(self, path):
        self.path = path
        if path.suffix == ".xml":
            text = path.read_text()
            self.version = NAME.match(path.name)[1]
            self.soname = re.search(r" soname='([^']*)'", text)[1]
            self.symbols = dict(SYMBOL.findall(text))
            return
        dynamic = execute(["objdump", "-p", path]).stdout
        self.soname = re.search(r"SONAME +(\S+)", dynamic)[1]
        names = re.findall(r"^\S+ [^Ua] ([^\s@]+)@@(\S+)$", execute(["nm", "-D", "--defined-only", path]).stdout, re.M)
        self.symbols = {name: version for name, version in names if name != version}


def describe(library, include, file):
    """Write the description, without directories and names of parameters, which change without consequence.

    A type is public by the file in its location: without locations all types are dropped.
    """
    return execute(["abidw", "--no-corpus-path", "--no-comp-dir-path", "--exported-interfaces-only", "--short-locs", "--no-parameter-names",
                    "--headers-dir", include, "--drop-private-types", "--out-file", file, library])


def differences(old, library, include, more=()):
    """Return abidiff's run, which fails where there are differences."""
    grows = pathlib.Path(__file__).parent / "abi" / "grows.suppr"
    return execute(["abidiff", "--suppressions", grows, "--headers-dir2", include, "--drop-private-types", "--no-show-locs", *more,
                    old, library])


def same_series(old, new, library, include, version):
    """Yield what a patch version may not have."""
    found = differences(old.path, library, include, ["--no-added-syms"])
    if found.returncode:
        what = "abidiff failed" if found.returncode & ERRORS else "changes"
        yield f"{what}, from {old.version} to {version}:\n{found.stdout}{found.stderr}"
    if old.soname != new.soname:
        yield f"the soname of {version} is {new.soname}, that of {old.version} {old.soname}"
    added = sorted(new.symbols.keys() - old.symbols.keys())
    bare = [name for name in added if new.symbols[name] in old.symbols.values()]
    if added and version == old.version:
        yield f"added without a new version: {' '.join(added)}"
    elif bare:
        yield f"added to a node of {old.version}, without one of their own in the version script: {' '.join(bare)}"


def new_series(old, new):
    """Yield names that a new series shares with the old one."""
    if new.soname == old.soname:
        yield f"the soname is that of {old.version}, {old.soname}"
    kept = sorted(name for name, node in new.symbols.items() if node in old.symbols.values())
    if kept:
        yield f"versions of symbols are those of {old.version}: {len(kept)}, from {kept[0]} on"


def problems(old, library, include, version):
    new = Library(library)
    if number(version) < number(old.version):
        yield f"{version} comes before {old.version}, which was released"
    elif series(version) == series(old.version):
        yield from same_series(old, new, library, include, version)
    else:
        yield from new_series(old, new)


def report(old, library, include, tmp):
    """Count the differences to the last series, as if the names had not changed."""
    new, text = Library(library), old.path.read_text()
    for was in set(old.symbols.values()):
        text = text.replace(f"{was}'", f"{sorted(new.symbols.values())[0]}'")
    alike = tmp / "alike.xml"
    alike.write_text(text.replace(f" soname='{old.soname}'", f" soname='{new.soname}'"))
    for line in differences(alike, library, include).stdout.splitlines():
        print("#", line) if "summary" in line else None


def made(tmp, cc, soname, scripts, header=HEADER, source=SOURCE):
    """Build a small library; @scripts: {node: names}, each node inherits from the one before."""
    directory = pathlib.Path(tempfile.mkdtemp(dir=tmp))
    (directory / "item.h").write_text(header)
    (directory / "item.c").write_text(source)
    nodes, before = "", ""
    for node, names in scripts.items():
        nodes += f"{node} {{ global: {names}; {'' if before else 'local: *; '}}} {before};\n"
        before = node
    (directory / "map").write_text(nodes)
    run = execute([*cc, "-g", "-shared", "-fPIC", f"-Wl,-soname,{soname}", f"-Wl,--version-script={directory / 'map'}",
                   "-o", directory / "lib.so", directory / "item.c"])
    if run.returncode:
        raise SystemExit(f"abi: {run.stderr}")
    return directory / "lib.so", directory


def try_rules(tap, cc, tmp):
    """Each change is found where it is not allowed, and only there."""
    one = {"ITEM_0.3": "item_*"}
    library, include = made(tmp, cc, "libitem.so.0.3", one)
    file = tmp / "libquiesce-0.3.0.xml"
    described = describe(library, include, file)
    if not tap.result(file.is_file(), "a small library is described", described.stderr):
        return
    grown = HEADER.replace("item { int a;", "item { int a, b;")
    ended = HEADER.replace("stats { int a;", "stats { int a, b;")
    inside = HEADER.replace("stats { int a;", "stats { long b; int a;")
    moved = HEADER.replace("item { int a;", "item { long b; int a;")
    own = {"ITEM_0.3": "item_init; item_count", "ITEM_0.3.1": "item_more"}
    for title, version, wanted, new in (
            ("no change", "0.3.0", "", ("libitem.so.0.3", one)),
            ("a structure that grows in a patch version", "0.3.1", "size changed", ("libitem.so.0.3", one, grown)),
            ("statistics that grow at their end", "0.3.1", "", ("libitem.so.0.3", one, ended)),
            ("statistics that change inside", "0.3.1", "offset", ("libitem.so.0.3", one, inside)),
            ("a field that moves", "0.3.1", "offset", ("libitem.so.0.3", one, moved)),
            ("a function that disappears", "0.3.1", "Removed", ("libitem.so.0.3", one, HEADER, SOURCE.replace("item_init", "item_start"))),
            ("an addition without a version", "0.3.0", "added without a new version", ("libitem.so.0.3", own, HEADER, SOURCE + MORE)),
            ("an addition without a node", "0.3.1", "one of their own", ("libitem.so.0.3", one, HEADER, SOURCE + MORE)),
            ("an addition with a node", "0.3.1", "", ("libitem.so.0.3", own, HEADER, SOURCE + MORE)),
            ("another soname in a patch version", "0.3.1", "the soname of 0.3.1", ("libitem.so.0.4", one)),
            ("a new series with the old soname", "0.4.0", "the soname is", ("libitem.so.0.3", {"ITEM_0.4": "item_*"}, grown)),
            ("a new series with the old version of symbols", "0.4.0", "versions of symbols", ("libitem.so.0.4", one, grown)),
            ("a new series", "0.4.0", "", ("libitem.so.0.4", {"ITEM_0.4": "item_*"}, moved)),
            ("a version before the last one", "0.2.9", "comes before", ("libitem.so.0.3", one))):
        library, include = made(tmp, cc, *new)
        found = "\n".join(problems(Library(file), library, include, version))
        tap.result(wanted in found if wanted else not found, f"{title}: {'refused' if wanted else 'allowed'}", found or "nothing was found")


def main():
    args = argparse.ArgumentParser()
    for name in ("library", "include", "descriptions"):
        args.add_argument(f"--{name}", type=pathlib.Path, required=True)
    args.add_argument("--version", required=True)
    args.add_argument("--cc", nargs="+")
    args.add_argument("--write", action="store_true")
    opt = args.parse_args()
    missing = [program for program in ("abidw", "abidiff", "objdump", "nm") if not shutil.which(program)]
    if missing:
        print(f"1..0 # SKIP {', '.join(missing)} not found: abigail-tools is not installed")
        return 0
    if opt.write:
        file = opt.descriptions / f"libquiesce-{opt.version}.xml"
        run = describe(opt.library, opt.include, file)
        print(run.stderr or f"{file}: {file.stat().st_size} bytes")
        return run.returncode
    tap = Tap()
    releases = {file: number(NAME.match(file.name)[1]) for file in opt.descriptions.iterdir() if NAME.match(file.name)}
    old = Library(max(releases, key=releases.get))
    with tempfile.TemporaryDirectory() as tmp:
        if series(opt.version) != series(old.version):
            report(old, opt.library, opt.include, pathlib.Path(tmp))
        found = list(problems(old, opt.library, opt.include, opt.version))
        tap.result(not found and len(old.symbols) > 100, f"{opt.version} has the binary interface of {old.version}, or names of its own",
                   "\n".join(found))
        if opt.cc:
            try_rules(tap, opt.cc, pathlib.Path(tmp))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
