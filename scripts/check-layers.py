#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Dependencies between directories point down only: #includes, and, if objects are given, calls and variables, too.

    check-layers.py [ROOT [OBJECT...]]

A directory includes and calls directories of its own layer or below.  The only exception is the list of subsystems through which the
runtime calls directories above it: quiesce__subsystems, of src/subsystems.c.
The kernel's modules and everything else share no header.
Only include/quiesce/arch/, src/platform/ and liburcu/include/urcu/arch* contain conditions on the CPU or the system.
"""
import pathlib
import re
import subprocess
import sys

import csource

LAYERS = [  # the first prefix that fits
    ("platform", ("src/platform/", "include/quiesce/arch/", "include/quiesce/base.h", "include/quiesce/atomic.h",
                  "include/quiesce/detail/entry.h", "include/quiesce/detail/head.h", "include/quiesce/detail/tls.h", "include/quiesce/detail/claim.h", "include/quiesce/detail/percpu.h",
                  "include/quiesce/detail/sheaf.h")),
    ("runtime", ("src/runtime/", "include/quiesce/control.h", "include/quiesce/detail/promise.h", "include/quiesce/detail/thread.h",
                 "include/quiesce/detail/raise.hpp")),
    ("rcu", ("src/rcu/", "include/quiesce/rcu.h", "include/quiesce/detail/rcu_calls.h", "include/quiesce/detail/rcu_read.h")),
    ("urcu", ("src/urcu/", "include/quiesce/detail/qsbr.h", "include/quiesce/detail/urcu_words.h")),
    # The array of slots, and the public headers, whose inline halves claim in it; the two kinds of hazard pointers share a layer,
    # because a wait for guards of either kind reports those of both.
    ("slots", ("src/slots/", "include/quiesce/shazptr", "include/quiesce/detail/shazptr", "include/quiesce/hazptr",
               "include/quiesce/detail/hazptr")),
    ("hazard", ("src/shazptr/", "src/hazptr/", "include/quiesce/counted_ptr")),
    ("percpu", ("src/percpu/", "src/srcu/", "include/quiesce/srcu", "include/quiesce/detail/srcu.h", "include/quiesce/rcu_sync.h", "include/quiesce/percpu_", "include/quiesce/detail/percpu_rwsem_calls.h")),
    ("slab", ("src/slab/", "include/quiesce/slab")),
    ("ds", ("src/table/", "src/radix/", "src/queue/", "include/quiesce/ds/", "include/quiesce/detail/")),
    ("library", ("src/", "include/quiesce/")),
    ("face", ("liburcu/",)),
    ("programs", ("tools/", "cases/", "examples/", "kernel/")),
    ("tests", ("tests/",)),
]
ORDER = [name for name, _ in LAYERS]
POINTS_UP = {"quiesce__subsystems"}
ASKS = re.compile(r"#.*\b(__(?:x86_64|i386|aarch64|arm|riscv|powerpc64|s390x|SSE\w+|linux|GLIBC|gnu_linux)\w*)\b")
MAY_ASK = ("src/platform/", "include/quiesce/arch/", "liburcu/include/urcu/arch")


def layer(name):
    return next((f for f, prefixes in LAYERS if name.startswith(prefixes)), None)


def above(a, b):
    return ORDER.index(a) > ORDER.index(b)


def resolve(root, name, target):
    """The project's file that an #include names, or None."""
    for base in (pathlib.PurePath(name).parent, "include", "src", "liburcu/include"):
        path = (root / base / target).resolve()
        if path.is_file() and path.is_relative_to(root):
            return str(path.relative_to(root))
    return None


def include_problems(root):
    for name in csource.c_files(str(root)):
        lines, code = csource.read(root, name)
        here = layer(name)
        for number, line in enumerate(lines, 1):
            asks = ASKS.match(code[number - 1].lstrip()) if name.startswith(("src/", "include/", "liburcu/")) else None
            if asks and not name.startswith(MAY_ASK):
                yield f"{name}:{number}: asks for {asks.group(1)}, which belongs to include/quiesce/arch/ or src/platform/"
            match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
            target = match and resolve(root, name, match.group(1))
            if not target or here is None or layer(target) is None:
                continue
            if name.startswith("kernel/") != target.startswith("kernel/"):
                yield f"{name}:{number}: includes {target}, across the border of the kernel"
            if above(layer(target), here):
                yield f"{name}:{number}: includes {target}, which is a layer above ({layer(target)})"
            if here == "programs" and target.startswith("src/"):
                yield f"{name}:{number}: includes {target}, which is private to the library"


def symbols(paths):
    """By object: the symbols that it defines, and those that it needs from others.  One call, because nm takes long to start."""
    found = {path: (set(), set()) for path in paths}
    lines = subprocess.run(["nm", "-A", *paths], capture_output=True, text=True, check=True).stdout.splitlines() if paths else []
    for line in lines:
        kind, name = line.split()[-2:]
        defined, asked = found[line.split(":")[0]]
        if kind == "U":
            asked.add(name)
        elif kind.isupper():
            defined.add(name)
    return found


def call_problems(objects):
    """@objects: {source file: object}"""
    found = symbols(list(objects.values()))
    tables = {name: found[path] for name, path in objects.items()}
    home = {symbol: name for name, (defined, _) in tables.items() for symbol in defined}
    for name, (_, asked) in sorted(tables.items()):
        for symbol in sorted(asked - POINTS_UP):
            other = home.get(symbol)
            if other and above(layer(other), layer(name)):
                yield f"{name}: uses {symbol} of {other}, which is a layer above ({layer(other)})"


def sources(root):
    """The sources of objects by the names that Meson gives these: src/rcu/pass.c by rcu_pass.c.o."""
    return {n.removeprefix("src/").replace("/", "_") + ".o": n for n in csource.c_files(str(root), "src/")}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    paths = [str(o) for p in sys.argv[2:] for o in sorted(pathlib.Path(p).glob("*.o"))]
    source_of = sources(root)
    objects = {source_of.get(pathlib.Path(p).name): p for p in paths}
    bad = [f"{p}: of no source file" for n, p in objects.items() if n is None]
    objects.pop(None, None)
    if sys.argv[2:] and len(objects) < 40:
        bad.append(f"only {len(objects)} objects")
    bad += [*include_problems(root), *call_problems(objects)]
    print("\n".join(bad + [f"check-layers: {len(bad)} problems; {len(objects)} objects"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
