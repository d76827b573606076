#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that every litmus file, and every spin model, still matches the source.

A line " * Source: FILE FUNCTION OP ; OP ..." asserts that these texts stand in
that function (or macro), in this order.  Further, every operation with a label in
a program of our dialect must be quoted by one of the file's Source lines, with
the same operation and label; quiesce_fence_light and quiesce_fence_full may stand
for quiesce_fence_mode, a full fence also for a heavy one, a heavy one for a shared
one and for one that restarts sequences, an acquire load and a release store for
quiesce_claim and for those that count, a release store for one into the own block.  So an order that
changes in the source breaks this test until the litmus file is checked again.
Names in Weakened lines must be in src/platform/labels.h, and those in Guard lines in mutants.h."""
import glob
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
import gen_a64  # noqa: E402

STANDS_FOR = {"quiesce_fence_light": ("quiesce_fence_mode",),
              "quiesce_fence_full": ("quiesce_fence_mode", "quiesce_fence_heavy", "quiesce_fence_heavy_shared"),
              "quiesce_fence_heavy": ("quiesce_fence_heavy_shared", "quiesce_fence_heavy_try", "quiesce_fence_restart"),
              "quiesce_load_acquire": ("quiesce_claim", "quiesce_claim_own", "quiesce_count_unless", "quiesce_count_acquire",
                                       "quiesce_count_acquire_at", "quiesce_sheaf_pop", "quiesce_sheaf_push"),
              "quiesce_store_release": ("quiesce_claim", "quiesce_claim_own", "quiesce_own_store_release", "quiesce_count_release",
                                        "quiesce_count_release_unless", "quiesce_count_release_always",
                                        "quiesce_sheaf_push")}
# What "Rmw: full" rests on; x86 needs nothing, a locked instruction is a full fence.
RMW_FULL = [("include/quiesce/arch/generic.h", "quiesce__after_rmw", ["__atomic_thread_fence(__ATOMIC_SEQ_CST)"]),
            ("include/quiesce/arch/x86_64.h", "quiesce__after_rmw", ["(result)"])]
RMW_FULL += [("include/quiesce/atomic.h", op, ["quiesce__after_rmw(__atomic_"])
             for op in ("quiesce_xchg", "quiesce_fetch_add", "quiesce_cmpxchg")]


def read(path):
    with open(path) as f:
        return f.read()


def plain(text):
    """Return the text without comments, and with any white space as one blank."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"[\s\\]+", " ", re.sub(r"//[^\n]*", " ", text))


def body_of(source, name):
    """The text of a function and of all definitions of a macro; None if there is neither."""
    macros = re.findall(r"^[ \t]*#[ \t]*define %s\((?:.*\\\n)*.*" % re.escape(name), source, re.M)
    found = re.search(r"^[^\s#/*{}][^;{}]*\b%s\([^;{}]*\)\s*\{.*?^\}|^[^\s#/*{}][^;{}\n]*\b%s\([^;{}\n]*\)\s*\{[^\n]*\}$"
                      % (re.escape(name), re.escape(name)), source, re.M | re.S)
    if found:
        macros.append(found.group(0))
    return plain(" ".join(macros)) if macros else None


def sources_of(text):
    """[(file, function, [op ...])]"""
    out = []
    for line in re.findall(r"^ \* Source: (.*)$", text, re.M):
        path, function, ops = line.split(None, 2)
        out.append((path, function, [op.strip() for op in ops.split(" ; ")]))
    return out


def check_source(source):
    path, function, ops = source
    full = os.path.join(TOP, path)
    if not os.path.exists(full):
        return path + " does not exist"
    body = body_of(read(full), function)
    if body is None:
        return "no %s() in %s" % (function, path)
    at = 0
    for op in ops:
        found = body.find(plain(op), at)
        if found < 0:
            return "%s() in %s: no '%s'%s" % (function, path, op, " after what precedes it" if at else "")
        at = found + len(plain(op))
    return None


def unquoted(program, sources):
    ops = " ".join(op for _, _, some in sources for op in some)
    for op, label in sorted(set(re.findall(r"\b(quiesce_\w+)\(([A-Z]{2}\d+)\b", program))):
        if not any(re.search(r"\b%s\(%s\b" % (name, label), ops) for name in (op,) + STANDS_FOR.get(op, ())):
            if op == "quiesce_fence_full" and "quiesce_fence_full(label)" in ops:
                continue
            yield "no Source line for %s(%s" % (op, label)


def unknown_mutants(text, mutants):
    for label, kind in re.findall(r"^ \* Weakened: (\w+):(\w+) ", text, re.M):
        if not re.search(r"\bX\(%s\)" % label, mutants):
            yield "src/platform/labels.h has no label " + label
    for guard in re.findall(r"^ \* Guard: (\w+)$", text, re.M):
        if not re.search(r"\bX\(%s\)" % guard, mutants):
            yield "src/platform/mutants.h has no guard " + guard


def check(path, mutants):
    text = read(path)
    sources = sources_of(text)
    if path.endswith(".pml"):
        return [e for e in map(check_source, sources) if e] or ([] if sources else ["no Source line"])
    head, program = text.split(" *)\n", 1)
    errors = [e for e in map(check_source, sources) if e]
    errors += unknown_mutants(text, mutants)
    if re.search(r"^ \* Rmw: full$", text, re.M):
        errors += [e for e in map(check_source, RMW_FULL) if e]
    if not sources:
        errors.append("no Source line")
    if text.startswith("C "):
        errors += unquoted(program, sources)
        if text[2:].split("\n", 1)[0] != os.path.basename(path)[:-len(".litmus")]:
            errors.append("the name in the first line is not that of the file")
    return errors


def main():
    with tempfile.TemporaryDirectory() as tmp:
        return check_all(sys.argv[1:] or sorted(glob.glob(os.path.join(HERE, "*.litmus")) + gen_a64.write(tmp)) +
                         sorted(glob.glob(os.path.join(TOP, "tests/model/*.pml"))))


def check_all(files):
    mutants = read(os.path.join(TOP, "src", "platform", "labels.h")) + read(os.path.join(TOP, "src", "platform", "mutants.h"))
    labels = re.findall(r"X\(([A-Z]{2}\d+)\)", mutants)
    bad = 0
    for path in files:
        errors = check(path, mutants)
        bad += bool(errors)
        for e in errors:
            print("%s: %s" % (os.path.basename(path), e))
    if not sys.argv[1:]:
        for label in labels:
            if not any(os.path.basename(f).startswith(label) for f in files):
                print("no litmus file for label " + label)
                bad += 1
    print("litmus ties: %d passed, %d failed" % (len(files) - min(bad, len(files)), bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
