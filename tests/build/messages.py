#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/debugging.md has every message of the library, but those of misuse, which are explained by their kinds.

    messages.py ROOT

The formats of quiesce__say() and of the calls of runtime/report.h are compared piece by piece, between conversions.
"""
import pathlib
import re
import sys

CALL = re.compile(r"\bquiesce__(?:say|report_(?:add|stall|garbage|count|code))\(((?:[^;\"]|\"(?:[^\"\\]|\\.)*\")*)\);")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
JOINED = re.compile(r'"\s*(?:QUIESCE_VERSION\s*)?"')
CONVERSION = re.compile(r"%[.0-9*]*(?:ll|z|#)?[a-z]")
SHORT = 6  # pieces that say nothing alone: ", ", " ms "
ACCEPTED = re.compile(r"static const char \*const accepted\[\] = \{(.*?)\};", re.S)


def pieces(source):
    text = JOINED.sub("", source)
    found = [m.group(1) for m in CALL.finditer(text)] + ACCEPTED.findall(text)
    for arguments in found:
        for literal in LITERAL.findall(arguments):
            yield from (p for p in CONVERSION.split(literal.replace('\\"', '"')) if len(p.strip(" ,;:()")) >= SHORT)


def main():
    root = pathlib.Path(sys.argv[1])
    said = re.sub(r"\s+", " ", (root / "docs/debugging.md").read_text(encoding="utf-8"))
    missing, nr = [], 0
    for path in sorted((root / "src").rglob("*.c")):
        if "sim" in path.parts:
            continue
        for piece in pieces(path.read_text(encoding="utf-8")):
            nr += 1
            if piece.strip(" ,;:()") not in said:
                missing.append(f"{path.relative_to(root)}: '{piece}' is not in docs/debugging.md")
    if nr < 40:
        missing.append(f"only {nr} pieces of messages found")
    print("\n".join(missing + [f"messages: {nr} pieces, {len(missing)} problems"]))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
