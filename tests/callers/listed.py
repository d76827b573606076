#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that every public call is in one of the lists of calls (calls_*.c).

    listed.py [--stamp FILE [--depfile FILE]] --include DIR calls_*.c... exempt.list

Public is what a header declares at file scope, or defines as a macro with arguments, unless its name begins with `_` or `quiesce__`.  A call is
in the list if an entry CALL(name, "covers ...", flags) names it; a call that no situation can harm is in exempt.list, in the form
`pattern<TAB>reason`.  A pattern with a slash is a header, all of whose names are exempt but those that are covered.  An entry for
nothing is an error, too.  quiesce_X() is the exported name of X().
"""
import argparse
import fnmatch
import pathlib
import re
import sys

PRIVATE = re.compile(r"_|quiesce__|QUIESCE__")
WORDS = {"defined", "typeof", "sizeof", "alignas", "static_assert"}


def plain(text):
    """Return the source without comments, string literals and continued lines."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//.*", "", text)
    text = re.sub(r'extern\s+"C"(?:\+\+)?\s*\{', "", text)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text.replace("\\\n", " "))


def outermost(text):
    """Return the text at file scope, without bodies."""
    depth, kept = 0, []
    for char in text:
        if char == "{":
            depth += 1
        elif char == "}":
            depth = max(0, depth - 1)
            kept.append(";" if depth == 0 else "")
        elif depth == 0:
            kept.append(char)
    return "".join(kept)


def names_of(text):
    """Return the calls and macros with arguments of a header's text."""
    text = plain(text)
    names = set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(", text, re.M))
    text = outermost(re.sub(r"^[ \t]*#.*", "", text, flags=re.M))
    for statement in text.split(";"):
        head = re.sub(r"__attribute__\s*\(\(.*?\)\)", " ", " ".join(statement.split()))
        found = re.match(r"[\w\s*]*?[\s*](\w+)\s*\((?!\s*\*)", " " + head)
        if found and not head.startswith("typedef"):
            names.add(found[1])
    return {n for n in names if not PRIVATE.match(n) and n not in WORDS}


def public_names(include):
    """{name: header}; calls.h only declares the exported names of other headers' calls."""
    found = {}
    for header in sorted((include / "quiesce").rglob("*.h")):
        if header.parent.name != "arch" and header.name != "calls.h":
            where = str(header.relative_to(include / "quiesce"))
            found.update({name: where for name in names_of(header.read_text()) if name not in found})
    return found


def covered_by(text):
    """Return the names in the second argument of each CALL()."""
    covers = re.findall(r'\bCALL\(\s*\w+\s*,\s*((?:"[^"]*"\s*)+),', text)
    return {name for entry in covers for part in re.findall(r'"([^"]*)"', entry) for name in part.split()}


def exemptions(text):
    rows = [line.split("\t") for line in text.split("\n") if line.strip() and not line.startswith("#")]
    wrong = [f"exempt.list: want pattern<TAB>reason: {row[0]}" for row in rows if len(row) != 2 or len(row[1].split()) < 3]
    return [row[0] for row in rows], wrong


def exempts(pattern, name, header):
    return header == pattern if "/" in pattern else fnmatch.fnmatchcase(name, pattern)


def compare(public, covered, patterns):
    """Yield each fault as a line."""
    wrong = [f"no entry of a list covers {name}(), which {header} has" for name, header in public.items()
             if name not in covered and name.removeprefix("quiesce_") not in covered and not any(exempts(p, name, header) for p in patterns)]
    wrong += [f"an entry covers {name}, which no header has" for name in sorted(covered) if name not in public]
    for pattern in patterns:
        meant = [n for n, header in public.items() if exempts(pattern, n, header) and n not in covered]
        if not meant:
            wrong.append(f"exempt.list: {pattern} exempts nothing")
    return wrong


def self_test():
    """A comparison that notices nothing proves nothing."""
    header = ('/* int no(void); */\n#define twice(x) ((x) + \\\n (x))\nint plain_call(int a);\nstatic inline void *in_line(void)\n{ other(1); }\n'
              "typedef void (*fn_t)(int a);\nvoid quiesce__private(void);\nextern int (*hook)(int a);\n"
              "__attribute__((cold)) const char *stops(void) __attribute__((noreturn));\n")
    names = names_of(header)
    assert names == {"twice", "plain_call", "in_line", "stops"}, names
    public = dict.fromkeys(names, "x.h")
    calls = covered_by('CALL(a, "twice"\n" in_line", F), CALL(b, "plain_call", 0)')
    assert compare(public, calls, []) == ["no entry of a list covers stops(), which x.h has"]
    assert not compare(public, calls, ["st*"])
    assert len(compare(public, calls | {"gone"}, ["st*", "nothing"])) == 2


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--stamp", type=pathlib.Path)
    args.add_argument("--depfile", type=pathlib.Path)
    args.add_argument("--include", type=pathlib.Path, required=True)
    args.add_argument("files", type=pathlib.Path, nargs="+")
    opt = args.parse_args()
    self_test()
    public = public_names(opt.include)
    covered = set().union(*(covered_by(f.read_text()) for f in opt.files if f.suffix == ".c"))
    patterns, wrong = exemptions("\n".join(f.read_text() for f in opt.files if f.suffix == ".list"))
    wrong += compare(public, covered, patterns)
    for line in wrong:
        print(f"listed.py: {line}", file=sys.stderr)
    if wrong:
        return 1
    if opt.depfile:
        headers = " ".join(str(h) for h in sorted(opt.include.rglob("*.h")))
        opt.depfile.write_text(f"{opt.stamp}: {headers}\n")
    if opt.stamp:
        opt.stamp.write_text(f"{len(public)} names\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
