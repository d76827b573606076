#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every ordering names its partner, and every partner exists.

In src/ and include/:
 1. An operation stronger than relaxed carries a label, and on its line or the
    three above a comment says
        LABEL: [acquire, |release, |full, ]pairs with LABEL in f() [and g()]
        LABEL: [...]pairs with the caller
    with that same label.
 2. Each f() exists and contains an operation of that label; a label whose
    partner is not the caller has at least two ends.
 3. A relaxed operation has a reason: "Relaxed: ..." on its line or the three
    above (or above the run of relaxed lines that it is part of), a "Relaxed throughout" in its function, or, for a public operation
    that promises nothing, "no order" in the comment above it.  The thread's own
    TLS block (self->, quiesce__self(), quiesce_own_...()) needs none, nor does a planted bug.
 4. Labels are declared in src/platform/labels.h, guards in mutants.h, and all of those are in use.  Each label has a statement at the head
    of a file: one side | other side (scripts/ledger.py).  The head of each .c file of src/ has a row for each label in it.
 5. Each (label, kind) and each guard in use is in tests/mutants.list, with a
    killer, or as "equivalent" with a written reason.
"""
import pathlib
import re
import sys

import csource
import ledger

RELAXED = re.compile(r"\bquiesce_(?:load|store|fetch_add|count)_relaxed\s*\(")
OWN = re.compile(r"_relaxed\(\s*&?\s*(?:self->|quiesce__self\(\))")


def relaxed_reason(lines, code, i, span):
    if all(OWN.search(code[i][m.start():]) for m in RELAXED.finditer(code[i])):
        return True
    if any("QUIESCE_MUTANT(" in line for line in code[max(0, i - 2):i]):
        return True  # the bug itself
    first = i  # one reason may stand above a run of relaxed lines
    while first > 0 and RELAXED.search(code[first - 1]):
        first -= 1
    near = "\n".join(lines[max(0, first - 3):i + 1])
    whole = "\n".join(lines[max(0, span[1] - 3):span[2] + 1]) if span else ""
    return bool(re.search(r"Relaxed: \S", near) or re.search(r"Relaxed throughout: \S", whole)
                or re.search(r"\bno order\b", near, re.I))


def scan_file(root, name, bad):
    lines, code = csource.read(root, name)
    spans = csource.functions(code)
    guards = []
    for i, line in enumerate(code):
        where = f"{name}:{i + 1}"
        span = next((s for s in spans if s[1] <= i <= s[2]), None)
        guards += [(g, where) for g in ledger.GUARD.findall(line)]
        if RELAXED.search(line) and not relaxed_reason(lines, code, i, span):
            bad.append(f"{where}: a relaxed operation without 'Relaxed: reason'")
    return ledger.sites_of(name, lines, code, spans, bad), guards, {s[0] for s in spans}


def check_partners(sites, names, bad):
    for s in sites:
        for f in s.partners:
            both = (f, "quiesce__" + f)  # a public inline and the half of it that debug builds replace
            if not names.intersection(both):
                bad.append(f"{s.where}: {s.label} pairs with {f}(), which does not exist")
            elif not any(o.label == s.label and o.function in both for o in sites):
                bad.append(f"{s.where}: {s.label} pairs with {f}(), which has no operation labelled {s.label}")
    for label in sorted({s.label for s in sites}):
        ends = [s for s in sites if s.label == label]
        # an operation may pair with itself in another thread
        if len(ends) < 2 and not any(s.caller or s.function in s.partners for s in ends):
            bad.append(f"{ends[0].where}: {label} has one end only")


def declared_guards(root):
    text = (root / "src/platform/mutants.h").read_text()
    return set(re.findall(r"X\((\w+)\)", text[text.index("define QUIESCE_GUARDS"):text.index("define QUIESCE_X")]))


def check_declared(root, sites, guards, bad):
    labels, names = ledger.labels(root), declared_guards(root)
    used = {s.label for s in sites}
    bad += [f"{s.where}: label {s.label} is not declared in {ledger.LABELS}" for s in sites if s.label not in labels]
    bad += [f"{w}: guard {g} is not declared in src/platform/mutants.h" for g, w in guards if g not in names]
    bad += [f"{ledger.LABELS}: label {label} is not in use" for label in sorted(set(labels) - used)]
    bad += [f"src/platform/mutants.h: guard {g} is not in use" for g in sorted(names - {g for g, _ in guards})]


def check_statements(root, bad):
    stated = set()
    for label, one, other, name in ledger.statements(root):
        stated.add(label)
        if other is None:
            bad.append(f"{name}: the statement of {label} has one side only: {one}")
    bad += [f"{ledger.LABELS}: no comment at the head of a file states what {label} orders: ' * {label}  one side | other side'"
            for label in ledger.labels(root) if label not in stated]


def check_heads(root, sites, bad):
    """The head of each .c file of src/ has a row for each label that the file uses: a statement, or " * LABEL, LABEL  see FILE"."""
    for name in sorted({s.where.partition(":")[0] for s in sites}):
        if not re.match(r"src/.*\.c$", name):
            continue
        head = (root / name).read_text(encoding="utf-8").partition("#include")[0]
        rows = {label for row in re.findall(r"^ \* ((?:[A-Z]{2}\d(?:, )?)+)  ", head, re.M) for label in row.split(", ")}
        missing = sorted({s.label for s in sites if s.where.startswith(name + ":")} - rows)
        bad += [f"{name}: the head has no row for {label}, neither a statement nor ' * {label}  see FILE'" for label in missing]


def check_list(root, sites, guards, bad):
    listed = {}
    for number, line in enumerate((root / "tests/mutants.list").read_text().split("\n"), 1):
        if not line or line.startswith("#"):
            continue
        fields = line.split("\t")
        listed[fields[0]] = f"tests/mutants.list:{number}"
        if len(fields) != 3 or not fields[2].strip():
            bad.append(f"tests/mutants.list:{number}: want mutant<TAB>stage<TAB>command or reason")
        elif fields[1] == "equivalent" and len(fields[2]) < 40:
            bad.append(f"tests/mutants.list:{number}: 'equivalent' needs a reason in a sentence")
    used = {f"{s.label}:{kind}": s.where for s in sites for kind in s.kinds}
    used.update(dict(guards))
    bad += [f"{where}: mutant {m} is not in tests/mutants.list" for m, where in sorted(used.items()) if m not in listed]
    bad += [f"{where}: there is no mutant {m}" for m, where in sorted(listed.items()) if m not in used]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    bad, sites, guards, names = [], [], [], set()
    for name in csource.c_files(str(root), *ledger.DIRECTORIES):
        if name == "src/platform/perturb.h":  # this file has mutants of its own
            guards += [(g, name) for g in ledger.GUARD.findall((root / name).read_text())]
        elif ledger.has_sites(name):
            s, g, n = scan_file(root, name, bad)
            sites, guards, names = sites + s, guards + g, names | n
    for path in sorted((root / "tests/guarded").rglob("*.patch")):  # headers have their guards in these patches
        guards += [(g, str(path.relative_to(root))) for line in path.read_text().split("\n") if line.startswith("+")
                   for g in ledger.GUARD.findall(line)]
    check_partners(sites, names, bad)
    check_declared(root, sites, guards, bad)
    check_statements(root, bad)
    check_heads(root, sites, bad)
    if (root / "tests/mutants.list").is_file():
        check_list(root, sites, guards, bad)
    else:
        print("check-barriers: no tests/mutants.list yet: not compared")
    print("\n".join(bad), end="\n" if bad else "")
    labels = len({s.label for s in sites})
    print(f"check-barriers: {len(bad)} problems; {len(sites)} sites, {labels} labels, {len(guards)} guards")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
