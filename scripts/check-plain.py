#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A field that is loaded or stored atomically somewhere in src/ is not stored plainly, except in a function of scripts/plain.list.

A plain store beside an atomic load in another thread is a data race, which ThreadSanitizer reports only if a test runs both at once.
The list names functions whose stores no other thread can meet, with the reason.  Functions whose names end in _init or _fork_child
need no line: they run before other threads, or in a child that has one.  Plain loads are not checked, because a holder of the lock
under which all stores are made may load plainly.

The fields of each expression are those that clang-19 finds; without it the status is 77.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import csource

CLANG = ["clang-19", "-std=gnu11", "-D_GNU_SOURCE", "-DQUIESCE_UNPINNED", "-w", "-fsyntax-only", "-Xclang", "-ast-dump=json"]
ALONE = re.compile(r"_(init|fork_child)$")
THROUGH = ("ParenExpr", "ArraySubscriptExpr")


class Accesses:
    """Accesses of fields in one file: (field, "atomic" or "store", line, function)."""

    def __init__(self, tree):
        self.place, self.fields, self.found, self.stack = [None, None], {}, [], []
        self.visit(tree)
        self.found = [(self.fields[field], *rest) for field, *rest in self.found if self.fields.get(field)]

    def locate(self, where):
        """Clang names a file or line only where it is another than in the location before."""
        inner = [self.locate(where[k]) for k in where if k in ("spellingLoc", "expansionLoc")]
        if inner:
            return inner[list(k for k in where if k in ("spellingLoc", "expansionLoc")).index("expansionLoc")]
        self.place = [where.get("file", self.place[0]), where.get("line", self.place[1])]
        return tuple(self.place)

    def visit(self, node):
        declared = self.locate(node["loc"]) if "loc" in node else None
        begin = None
        if "range" in node:
            begin = self.locate(node["range"]["begin"])
            self.locate(node["range"]["end"])
        if node.get("kind") == "FieldDecl":
            self.fields[node["id"]] = (*declared, node.get("name"))
        self.stack.append(node)
        if node.get("kind") == "MemberExpr":
            kind = self.kind_of(node)
            if kind:
                function = next((n["name"] for n in self.stack if n.get("kind") == "FunctionDecl"), "")
                self.found.append((node.get("referencedMemberDecl"), kind, begin, function))
        for child in node.get("inner", ()):
            if child:
                self.visit(child)
        self.stack.pop()

    def kind_of(self, child):
        """Return "atomic" or "store" for the member at the end of the stack; None: it is loaded, or only its address is taken."""
        for i in range(len(self.stack) - 2, -1, -1):
            node, kind = self.stack[i], self.stack[i].get("kind")
            if kind == "UnaryOperator":
                if node.get("opcode") == "&":
                    return "atomic" if any(n.get("kind") == "AtomicExpr" for n in self.stack[:i]) else None
                return "store" if node.get("opcode") in ("++", "--") else None
            if kind == "CompoundAssignOperator" or kind == "BinaryOperator" and node.get("opcode") == "=":
                return "store" if node["inner"][0] is child else None
            if kind not in THROUGH and node.get("castKind") != "ArrayToPointerDecay" or kind == "ArraySubscriptExpr" and node["inner"][0] is not child:
                return None
            child = node
        return None


def accesses(root, name):
    sys.setrecursionlimit(20000)
    run = subprocess.run([*CLANG, f"-I{root}/include", f"-I{root}/src", root / name], capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"{name}: {run.stderr[:400]}")
    inside = str(root) + os.sep
    return [(field, kind, begin, function) for field, kind, begin, function in Accesses(json.loads(run.stdout)).found
            if field[0] and field[0].startswith(inside)]


def listed(root):
    """{function: reason}"""
    lines = (root / "scripts/plain.list").read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines if line and not line.startswith("#"))


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    if not shutil.which(CLANG[0]):
        print(f"check-plain: {CLANG[0]} is not installed")
        return 77
    names = [n for n in csource.c_files(str(root), "src/") if n.endswith(".c") and "/sim/" not in n]
    with concurrent.futures.ProcessPoolExecutor() as pool:
        found = {a for some in pool.map(accesses, [root] * len(names), names) for a in some}
    atomic = {field for field, kind, *_ in found if kind == "atomic"}
    stores = {(*begin, field[2], function) for field, kind, begin, function in found if kind == "store" and field in atomic}
    reasons, used, bad = listed(root), set(), []
    for file, line, field, function in sorted(stores):
        used.add(function)
        if function not in reasons and not ALONE.search(function):
            bad.append(f"{os.path.relpath(file, root)}:{line}: {function}() stores {field} plainly, which is atomic elsewhere: "
                       "quiesce_store_relaxed(), or a line of scripts/plain.list")
    bad += [f"scripts/plain.list: {function} has no such store" for function in sorted(set(reasons) - used)]
    print("\n".join(bad + [f"check-plain: {len(bad)} problems; {len(names)} files, {len(atomic)} fields, {len(stores)} plain stores"]))
    return 1 if bad or not atomic else 0


if __name__ == "__main__":
    sys.exit(main())
