#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tables of docs/ordering.md are made of the sources; without --update, report where the document says something else.

usage: check-ordering.py [ROOT] [--update]

Between "<!-- ledger RU GP -->" and "<!-- end -->" stand the tables of the labels that begin with RU or GP: what each label orders, from
the comments at the head of files, and the operations with their partners, from the comments at each site.  The other parts are
"<!-- tests -->" (the litmus files, mutants and models of each label), "<!-- equivalent -->" (mutants that no test can detect, with
the reasons in tests/mutants.list), "<!-- models -->" (tests/model/run.py) and "<!-- arm64 -->" (tests/litmus/gen_a64.py).
"""
import itertools
import pathlib
import re
import sys
import textwrap

import csource
import ledger

DOCUMENT = "docs/ordering.md"
WIDEST = 160
PART = re.compile(r"(<!-- (?!end)([a-z0-9]+)((?: [A-Z]{2})*) -->\n)(.*?)(?=<!-- end -->)", re.S)


def pack(items, width):
    """The items in lines of at most @width columns, unless one item is longer."""
    lines = []
    for item in items:
        if lines and len(lines[-1]) + 2 + len(item) <= width:
            lines[-1] += ", " + item
        else:
            lines.append(item)
    return lines or [""]


def fold(text, width):
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def table(head, rows):
    """A row is a list of cells, and a cell a list of lines: a row of the table for each line."""
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for cells in rows:
        for line in itertools.zip_longest(*cells, fillvalue=""):
            out.append("| " + " | ".join(line) + " |")
    return out


def base(name):
    return re.sub(r"^(include/quiesce|src|liburcu/(src|include))/", "", name)


def calls(functions):
    return [f"`{f}()`" for f in functions]


def statements_table(root, prefixes):
    rows, seen = [], set()
    for label, one, other, name in sorted(ledger.statements(root), key=lambda c: c[0]):
        if label[:2] in prefixes and (label, one, other) not in seen:
            seen.add((label, one, other))
            rows.append([[label], fold(one, 60), fold(other or "", 56), [f"`{base(name)}`"]])
    return table(["label", "one side", "other side", "ledger"], rows)


def sites_table(root, prefixes):
    """One row for the functions of a file that have the same operations with the same partners."""
    partners, operations, functions = {}, {}, {}
    for site in ledger.all_sites(root):
        if site.label[:2] in prefixes:
            key = site.label, site.where.split(":")[0], site.function, site.operation + ("" if site.kinds else " of another label")
            partners.setdefault(key, {}).update(dict.fromkeys(["the caller"] if site.caller else calls(site.partners)))
    for (label, name, function, operation), found in partners.items():
        operations.setdefault((label, name, function, tuple(found)), []).append(operation)
    for (label, name, function, found), done in operations.items():
        functions.setdefault((label, name, tuple(done), found), []).append(function)
    return table(["label", "file", "function", "operation", "pairs with"],
                 [[[label], [f"`{base(name)}`"], pack(calls(group), 46), pack(done, 24), pack(found, 46)]
                  for (label, name, done, found), group in sorted(functions.items())])


def ledger_part(root, prefixes):
    return statements_table(root, prefixes) + [""] + sites_table(root, prefixes)


def mutants(root):
    """(mutant, stage, command or reason) of each line of tests/mutants.list."""
    lines = (root / "tests/mutants.list").read_text().split("\n")
    return [line.split("\t") for line in lines if line.count("\t") == 2 and not line.startswith("#")]


def module(root, name):
    path = str((root / name).parent)
    sys.path.insert(0, path)
    found = __import__(pathlib.Path(name).stem)
    sys.path.remove(path)
    return found


def arm_kinds(root):
    """label: the kinds whose weakening Arm's model shows, and the others after "not"."""
    shown = {}
    for line in (root / "tests/litmus/arm.list").read_text().split("\n"):
        if line and not line.startswith("#"):
            mutant, name, _ = line.split("\t")
            label, kind = mutant.split(":")
            shown.setdefault(label, ([], []))[name == "-"].append(kind)
    return {label: yes + [f"not {kind}" for kind in no] for label, (yes, no) in shown.items()}


def tests_part(root, _):
    """A label's own litmus files, and further ones whose outcome a mutant of the label changes."""
    own, others, guards, models = {}, {}, {}, {}
    for path in sorted((root / "tests/litmus").glob("*.litmus"), key=lambda path: path.stem):
        head = path.read_text().split("*)", 1)[0]
        label = path.stem[:3]
        own.setdefault(label, []).append(path.stem[3:] or label)
        guards.setdefault(label, []).extend(re.findall(r"Guard: (\w+)", head))
        for other in set(re.findall(r"Weakened: (\w+):", head)) - {label}:
            others.setdefault(other, []).append(path.stem)
    for model, _settings, wrong in module(root, "tests/model/run.py").RUNS:
        for form, mutant in wrong:
            models.setdefault(mutant, []).append(f"{model} {form}")
    listed, arm, rows = {name: stage for name, stage, _ in mutants(root)}, arm_kinds(root), []
    for label in sorted(ledger.labels(root)):
        kinds = [name for name in listed if name.startswith(label + ":")]
        more = [name for name in dict.fromkeys(guards.get(label, [])) if name in listed]
        shown = dict.fromkeys(m for name in kinds + more for m in models.get(name, []))
        rows.append([[label], [f"`{line}`" for line in pack(own.get(label, []) + others.get(label, []), 58)],
                     pack([f"{name.partition(':')[2] or name} {listed[name]}" for name in kinds + more], 50), pack(shown, 24),
                     pack(arm.get(label, []), 20)])
    return table(["label", "litmus files", "mutants, each with the stage that kills it", "models", "AArch64"], rows)


def equivalent_part(root, _):
    return [line for name, stage, reason in mutants(root) if stage == "equivalent"
            for line in textwrap.wrap(f"- `{name}`: {reason}.", 100, subsequent_indent="  ", break_on_hyphens=False)]


def models_part(root, _):
    runs = {}
    for model, settings, wrong in module(root, "tests/model/run.py").RUNS:
        runs.setdefault(model, {}).update(dict.fromkeys(form for form, _ in wrong))
    return table(["model", "wrong forms, each of which fails"], [[[f"`{model}.pml`"], pack(forms, 120)] for model, forms in runs.items()])


def arm64_part(root, _):
    families = module(root, "tests/litmus/gen_a64.py").FAMILIES
    return table(["files", "they show"], [[[f"`A64-{family[0]}*`"], fold(family[1], 110)] for family in families])


PARTS = {"ledger": ledger_part, "tests": tests_part, "equivalent": equivalent_part, "models": models_part, "arm64": arm64_part}


def generated(root, text):
    def fill(match):
        return match.group(1) + "\n".join(PARTS[match.group(2)](root, match.group(3).split())) + "\n"
    return PART.sub(fill, text)


def faults(root, text, right):
    """Yield the first difference between document and sources; rows that are too wide; functions that do not exist; labels
    without a table."""
    for number, (now, want) in enumerate(itertools.zip_longest(text.split("\n"), right.split("\n")), 1):
        if now != want:
            yield f"{DOCUMENT}:{number}: the sources say otherwise: run scripts/check-ordering.py --update\n  - {now}\n  + {want}"
            break
    for number, line in enumerate(right.split("\n"), 1):
        if line.startswith("|") and len(line) > WIDEST:
            yield f"{DOCUMENT}:{number}: a row of {len(line)} columns, at most {WIDEST}"
    known = {name for path in csource.c_files(str(root), *ledger.DIRECTORIES) for name, _, _ in csource.functions(csource.read(root, path)[1])}
    for name in sorted(set(re.findall(r"`(\w+)\(\)`", PART.sub("", text)))):
        if not known.intersection((name, "quiesce_" + name, "quiesce__" + name)):
            yield f"{DOCUMENT}: there is no {name}()"
    prefixes = [prefix for match in PART.finditer(text) if match.group(2) == "ledger" for prefix in match.group(3).split()]
    for prefix in sorted({label[:2] for label in ledger.labels(root)}.union(prefixes)):
        if prefixes.count(prefix) != 1:
            yield f"{DOCUMENT}: the labels {prefix} have {prefixes.count(prefix)} tables"


def main():
    sys.dont_write_bytecode = True
    arguments = [argument for argument in sys.argv[1:] if argument != "--update"]
    root = pathlib.Path(arguments[0] if arguments else ".").resolve()
    if not (root / DOCUMENT).is_file():
        print(f"check-ordering: no {DOCUMENT}: not compared")
        return 0
    text = (root / DOCUMENT).read_text(encoding="utf-8")
    right = generated(root, text)
    if "--update" in sys.argv and text != right:
        (root / DOCUMENT).write_text(right, encoding="utf-8")
        text = right
    bad = list(faults(root, text, right))
    print("\n".join(bad + [f"check-ordering: {len(bad)} problems"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
