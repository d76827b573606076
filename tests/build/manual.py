#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The manual pages of section 3: every public call has one, each function that a macro defines stands there with its types, and mandoc
finds nothing to say about any.

	manual.py --listed DIR --include DIR --pages DIR [--cc COMMAND...]

DIR of --listed has listed.py, which knows the public names.  A name without a page stands in UNDOCUMENTED with the reason.  With a
compiler, the signatures in the page of a macro are compiled as declarations of what an instance of the macro, in INSTANCES, defines.
"""
import argparse
import fnmatch
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

UNDOCUMENTED = {
    "detail/*": "not for programs",
    "atomic.h": "of the library, described in its own comments",
    "base.h": "of the library, described in its own comments",
    "LIST_HEAD": "on the page of LIST_HEAD_INIT",
    "QUIESCE_*": "parts of other macros",
    "quiesce_hash*_next*": "parts of loops",
    "quiesce_xa_*": "what inline calls of other names call",
}
# Arguments of a macro that defines functions, and what comes before an instance of it.
FLOW = "#include <quiesce/ds/hashtable.h>\nstruct flow { uint64_t id; char name[16]; };\n"
INSTANCES = {
    "HASHTABLE_TYPE": (FLOW, ["flow", "struct flow", "id"]),
    "HASHTABLE_TYPE_HASHED": (FLOW, ["flow", "struct flow", "id", "quiesce_hash_u64(seed, 1)"]),
    "HASHTABLE_TYPE_STRING": (FLOW, ["flow", "struct flow", "name"]),
}


def missing(names, pages):
    for name, header in sorted(names.items()):
        plain = name.removeprefix("quiesce_")
        if name not in pages and plain not in pages and not any(fnmatch.fnmatch(x, p) for p in UNDOCUMENTED for x in (name, header)):
            yield f"{header}: {name} has no manual page"


# ---- functions that macros define ----

def macros_of(include):
    """{name: (parameters, body)} of all macros with arguments."""
    found = {}
    for header in sorted((include / "quiesce").rglob("*.h")):
        text = header.read_text(encoding="utf-8").replace("\\\n", " ")
        for name, parameters, body in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^)]*)\)(.*)", text, re.M):
            found[name] = [p.strip() for p in parameters.split(",")], body
    return found


def functions_of(name, macros, seen=()):
    """Return the ends of names that a macro, or one that it invokes, appends to its first parameter to define functions."""
    parameters, body = macros[name]
    found = {end for first, end in re.findall(r"(\w+)\s*##\s*(\w+)\s*\([^;{}]*\)\s*\{", body) if first == parameters[0]}
    for other in set(re.findall(r"\w+", body)) & set(macros) - {name, *seen}:
        found |= functions_of(other, macros, (name, *seen))
    return found


def signatures(page):
    """{function: [result, argument...]} of a page's SYNOPSIS."""
    found, result, arguments = {}, "", None
    for line in page.split("\n"):
        if line.startswith(".Ft "):
            result = line[4:]
        elif line.startswith(".Fo "):
            arguments = found.setdefault(line[4:], [result])
            result = ""
        elif line.startswith(".Fa ") and arguments is not None:
            arguments.append(line[4:].strip('"'))
        elif line.startswith(".Fc"):
            arguments = None
    return found


def unsigned(macros, folder):
    """Yield the faults of pages of macros that define functions, then the number of these functions."""
    number = 0
    for name in sorted(macros):
        ends = set() if re.match(r"_|quiesce__|QUIESCE__", name) else functions_of(name, macros)
        page = folder / f"{name}.3"
        stated = signatures(page.read_text(encoding="utf-8")) if page.exists() else {}
        for end in sorted(ends):
            number += 1
            if not all(stated.get(macros[name][0][0] + end, [""])):
                yield f"{name}.3: the signature of {macros[name][0][0]}{end}() is not there"
        if ends and name not in INSTANCES:
            yield f"{name} defines functions, and has no instance in {pathlib.Path(__file__).name}"
    yield number


def refused(name, macros, folder, include, cc):
    """Return the compiler's errors for the signatures in the page of macro NAME."""
    before, arguments = INSTANCES[name]
    values = dict(zip(macros[name][0], arguments))
    text = before + f"{name}({', '.join(arguments)});\n"
    for function, (result, *taken) in signatures((folder / f"{name}.3").read_text(encoding="utf-8")).items():
        if result:
            declaration = f"static {result} {function}({', '.join(taken)});\n"
            declaration = re.sub(rf"\b{macros[name][0][0]}_(?=\w+\()", values[macros[name][0][0]] + "_", declaration, count=1)
            text += re.sub(r"\w+", lambda word: values.get(word[0], word[0]), declaration)
    with tempfile.TemporaryDirectory() as place:
        source = pathlib.Path(place, name + ".c")
        source.write_text(text, encoding="utf-8")
        done = subprocess.run([*cc, "-std=gnu11", "-w", "-fsyntax-only", f"-I{include}", source], capture_output=True, text=True, check=False)
    return [line for line in done.stderr.split("\n") if "error" in line or "note:" in line] if done.returncode else []


def lint(folder):
    files = sorted(p for p in folder.glob("*.3") if not p.is_symlink())
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "style", *map(str, files)], capture_output=True, text=True, check=False)
    # Only pages that are installed are found; and a line without a page is about the installed ones.
    return [line for line in (done.stdout + done.stderr).strip().splitlines() if ".3:" in line and "referenced manual not found" not in line]


def self_test():
    """A search that finds no function, or a page that lacks none, proves nothing."""
    macros = {"OUTER": (["n", "T"], " INNER(n, T, int)"),
              "INNER": (["name", "T", "K"], " static inline T *name##_get(K key) { return name##_find(key); } struct swallow")}
    assert functions_of("OUTER", macros) == {"_get"}
    assert signatures('.Ft T *\n.Fo n_get\n.Fa "int key"\n.Fc\n.Fo n_put\n.Fc\n') == {"n_get": ["T *", "int key"], "n_put": [""]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("listed", "include", "pages"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    parser.add_argument("--cc", nargs=argparse.REMAINDER, default=[])
    options = parser.parse_args()
    self_test()
    sys.path.insert(0, str(options.listed))
    import listed  # pylint: disable=import-error,import-outside-toplevel
    pages = {p.stem for p in options.pages.glob("*.3")}
    macros = macros_of(options.include)
    wrong = list(missing(listed.public_names(options.include), pages))
    *without, number = unsigned(macros, options.pages)
    errors = [line for name in INSTANCES for line in refused(name, macros, options.pages, options.include, options.cc)] if options.cc else []
    have = shutil.which("mandoc")
    faults = lint(options.pages) if have else []
    print("1..4")
    print("\n".join("# " + line for line in wrong + without + errors + faults))
    print(f"{'not ' if wrong or len(pages) < 300 else ''}ok 1 - a page for every public call, {len(pages)} in all")
    print(f"{'not ' if without or number < 27 else ''}ok 2 - a signature of each function that a macro defines, {number} in all")
    print(f"{'not ' if errors else ''}ok 3 - the compiler agrees with these signatures" + ("" if options.cc else " # SKIP there is no compiler"))
    print(f"{'not ' if faults else ''}ok 4 - mandoc finds nothing" + ("" if have else " # SKIP there is no mandoc"))
    return 1 if wrong or without or errors or faults else 0


if __name__ == "__main__":
    sys.exit(main())
