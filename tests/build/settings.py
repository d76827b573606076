#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The environment variables that control.h lists are those of the sources, of the manual page and of docs/debugging.md.

    settings.py ROOT

The manual page also has to have each value and each default of control.h.
"""
import pathlib
import re
import sys

OF_LIBURCU = {"QUIESCE_URCU_PACE_MS"}  # a setting of the library with liburcu's names, which control.h does not list


def read(root, path):
    return (root / path).read_text(encoding="utf-8")


def of_header(text):
    """{variable: the words of its values, and its default}"""
    found = {}
    for name, value, what in re.findall(r"^ \*\s+(QUIESCE_\w+)=(\S+)\s+(.*)", text, re.M):
        words = re.findall(r"[a-z0-9_]+", value)
        default = re.search(r"default (\w+)", what)
        found[name] = {*words, *([default[1]] if default else [])}
    return found


def of_manual(text):
    """{variable: its entry}"""
    part = text.partition(".SH ENVIRONMENT\n")[2].partition("\n.SH ")[0]
    entries = [entry.partition("\n") for entry in part.split(".TP\n")]
    return {head.removeprefix(".B "): body for head, _, body in entries if head.startswith(".B QUIESCE_")}


def of_sources(root):
    text = "".join(path.read_text(encoding="utf-8") for place in ("src", "liburcu") for path in sorted((root / place).rglob("*.c")))
    return set(re.findall(r'"(QUIESCE_[A-Z_]+)"', text))


def problems(root):
    header, manual = of_header(read(root, "include/quiesce/control.h")), of_manual(read(root, "docs/man/quiesce.1.in"))
    every = {
        "control.h": {*header, *OF_LIBURCU},
        "the sources": of_sources(root),
        "docs/man/quiesce.1.in": set(manual),
        "docs/debugging.md": set(re.findall(r"^\| `(QUIESCE_\w+)` \|", read(root, "docs/debugging.md"), re.M)),
    }
    all_names = set().union(*every.values())
    for place, names in every.items():
        yield from (f"{name} is missing in {place}" for name in sorted(all_names - names))
    for name, words in header.items():
        yield from (f"the manual page's {name} does not have '{word}' of control.h" for word in sorted(words)
                    if name in manual and not re.search(rf"\b{word}\b", manual[name]))
    if len(header) < 5:
        yield f"only {len(header)} variables found in control.h"


def main():
    found = list(problems(pathlib.Path(sys.argv[1])))
    print("\n".join([*found, f"settings: {len(found)} problems"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
