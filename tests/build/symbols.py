#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The library's symbols: only quiesce_*, exactly those of symbols.list, in both forms.

A symbol that disappears breaks programs; one that appears becomes a promise.
Both are a change of symbols.list, made on purpose.  The static library must not
put other global names into a program either.
"""
import argparse
import pathlib
import sys

from tap import Tap, execute


def names(command):
    """{name: version} of the symbols that nm prints as defined."""
    run = execute(command)
    found = {}
    for line in run.stdout.splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] not in "Ua":
            name, _, version = fields[2].partition("@@")
            found[name] = version
    return {name: version for name, version in found.items() if not name.startswith("QUIESCE_")}


def compare(tap, title, found, wanted):
    tap.result(found.keys() >= wanted, f"{title}: no symbol has disappeared", "\n".join(sorted(wanted - found.keys())))
    tap.result(wanted >= found.keys(), f"{title}: no symbol has appeared", "\n".join(sorted(found.keys() - wanted)))
    foreign = [n for n in found if not n.startswith("quiesce_")]
    tap.result(not foreign, f"{title}: every symbol begins with quiesce_", "\n".join(foreign))


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--shared", required=True)
    args.add_argument("--static", required=True)
    args.add_argument("--list", type=pathlib.Path, required=True)
    args.add_argument("--version", required=True)
    args.add_argument("--nm", default="nm")
    opt = args.parse_args()
    wanted = {line for line in opt.list.read_text().split() if line.startswith("quiesce_")}
    *series, patch = opt.version.split(".")
    node = "QUIESCE_" + ".".join(series)
    nodes = {node, *(f"{node}.{added}" for added in range(1, int(patch) + 1))}
    tap = Tap()
    shared = names([opt.nm, "-D", "--defined-only", opt.shared])
    compare(tap, "shared", shared, wanted)
    bare = [n for n, version in shared.items() if version not in nodes]
    tap.result(shared and not bare, f"shared: every symbol carries the version {node}, or that of the patch that added it", "\n".join(bare))
    compare(tap, "static", names([opt.nm, "-g", "--defined-only", opt.static]), wanted)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
