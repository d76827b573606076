#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Linker names: liburcu's are in a library of their own, and never in the face's; objects of its names have liburcu's symbols and sizes.

Prints TAP.
"""
import argparse
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "build"))
from tap import Tap, execute  # noqa: E402

FLAVORS = ("memb", "mb", "bp", "qsbr")
# Inlined code of liburcu reads and calls these; the mutexes and futexes of the hash table are no names of a flavour.
PRIVATE = re.compile(r"urcu_\w+_(gp|reader|has_sys_membarrier|sym)$|urcu_bp_register$|compat_futex_|rcu_dereference_sym2$")


def symbols(library):
    """Return the size of each exported symbol of a library, by name."""
    found = {}
    for line in execute(["readelf", "-W", "--dyn-syms", library]).stdout.splitlines():
        words = line.split()
        if len(words) > 7 and words[4] in ("GLOBAL", "WEAK") and words[6] != "UND" and words[3] != "NOTYPE":
            found[words[7].split("@")[0]] = int(words[2], 0)
    return found


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--face", required=True)
    args.add_argument("--names", required=True)
    args.add_argument("--objects", type=pathlib.Path)
    opt = args.parse_args()
    tap, face, names = Tap(), symbols(opt.face), symbols(opt.names)
    tap.result(face and all(n.startswith(("quiesce_", "QUIESCE_")) for n in face), "the face exports names of its own",
               [n for n in face if not n.startswith(("quiesce_", "QUIESCE_"))])
    for flavor in FLAVORS:
        tap.result(all(f"urcu_{flavor}_{n}" in names for n in ("read_lock", "read_unlock", "synchronize_rcu", "exit", "flavor", "barrier")),
                   f"liburcu's names of {flavor} can be linked", sorted(names))
        tap.result(names.get(f"urcu_{flavor}_flavor") == 128, f"the table of {flavor} has the members of 0.15", names)
    for flavor in FLAVORS if opt.objects else ():
        own = symbols(opt.objects / f"liburcu-{flavor}.so.8")
        left = [n for n in own if not PRIVATE.search(n) and n not in names]
        tap.result(own and not left, f"each call of liburcu-{flavor}.so.8 has its name there", left)
        tap.result(own.get(f"urcu_{flavor}_flavor") == 112, f"liburcu-{flavor}.so.8: the table's symbol has the size of 0.13", own)
        tap.result(f"urcu_{flavor}_exit" in own or flavor == "bp", f"liburcu-{flavor}.so.8 has an exit", sorted(own))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
