# SPDX-License-Identifier: MIT
"""ledger.py - the barrier ledger, read from the sources: the labelled operations, and what each label states.

A site is an operation with a label, whose partners the comment above it names:
    /* RU1: pairs with RU1 in gp_advance() */
    quiesce_fence_light(RU1);
A statement is a row in the comment at the head of a file, with the order of one side and that of the other:
     * RU1  word set, then the section's reads | unlink, then words are read
A further line of a statement is indented by six columns, and begins another statement of the label if it has a bar of its own.
"""
import functools
import pathlib
import re

import csource

KINDS = {  # operation: the mutants that weaken it
    "load_acquire": ("acquire",), "load_consume": ("acquire",), "store_release": ("release",),
    "xchg": ("rmw",), "cmpxchg": ("rmw",), "fetch_add": ("rmw",),
    "fence_light": ("light",), "fence_full": ("full",), "fence_heavy": ("heavy", "full"),
    "fence_heavy_try": ("heavy", "full"), "fence_heavy_shared": ("heavy", "full"), "fence_mode": ("light", "full"),
    "fence_restart": ("heavy",),
    "claim": ("acquire", "release"), "claim_own": ("acquire", "release"), "own_store_release": ("release",),
    "count_release": ("release",), "count_release_unless": ("release",), "count_release_always": ("release",),
    "count_acquire": ("acquire",), "count_unless": ("acquire",),
    "sheaf_pop": ("acquire",), "sheaf_take": ("acquire",), "sheaf_push": ("acquire", "release"), "sheaf_add": ("acquire", "release"),
}
OPERATION = re.compile(r"\bquiesce_(" + "|".join(KINDS) + r")\s*\(\s*(\w+)\s*[,)]")
PAIR = re.compile(r"\b([A-Z]{2,4}\d+): (?:(?:acquire|release|full), )?pairs with (?:the caller|([A-Z]{2,4}\d+) in "
                  r"((?:\w+\(\)(?:, | and )?)+))")
GUARD = re.compile(r"\bQUIESCE_MUTANT\((\w+)\)")
STATEMENT = re.compile(r"^ \* ([A-Z]{2}\d)  (?!see )(\S.*)")
FURTHER = re.compile(r"^ \* {6}(\S.*)")
DIRECTORIES = ("src/", "include/", "liburcu/")
# The layer itself: it defines the operations and has no sites of its own.
LAYER = ("include/quiesce/atomic.h", "include/quiesce/arch/", "src/platform/", "src/runtime/fence.h")
LABELS = "src/platform/labels.h"


class Site:
    def __init__(self, where, function, operation, label, partners, caller, kinds):
        self.where, self.function, self.operation, self.kinds, self.label = where, function, operation, kinds, label
        self.partners, self.caller = partners, caller


def has_sites(name):
    return not name.startswith(LAYER) or name == "src/platform/count.h"


def _comment_text(lines):
    text = " ".join(line.strip().strip("/*\\ \t") for line in lines)
    return re.sub(r"\s+", " ", text)


def _site_of(lines, i, function, match, where, bad):
    operation, label = match.groups()
    if label == "label":  # a wrapper that passes on its own argument
        return None
    pairs = [p for p in PAIR.finditer(_comment_text(lines[max(0, i - 3):i + 1])) if p.group(1) == label]
    if not pairs:
        bad.append(f"{where}: {operation}({label}) has no comment '{label}: pairs with {label} in f()'")
        return Site(where, function, operation, label, [], False, KINDS[operation])
    pair = pairs[-1]
    if pair.group(2) and pair.group(2) != label:
        bad.append(f"{where}: {label} says that it pairs with {pair.group(2)}")
    partners = re.findall(r"(\w+)\(\)", pair.group(3) or "")
    return Site(where, function, operation, label, partners, pair.group(2) is None, KINDS[operation])


def _riders(lines, code, i, function, match, where):
    """A fence may serve further labels: comments straight above it, one per label."""
    first = i
    while first > 0 and not code[first - 1].strip() and lines[first - 1].strip():
        first -= 1
    if not match.group(1).startswith("fence"):
        return
    for pair in PAIR.finditer(_comment_text(lines[first:i])):
        if pair.group(1) != match.group(2):
            partners = re.findall(r"(\w+)\(\)", pair.group(3) or "")
            yield Site(where, function, match.group(1), pair.group(1), partners, pair.group(2) is None, ())


def sites_of(name, lines, code, spans, bad):
    """The sites of one file; faults of their comments are appended to @bad."""
    sites = []
    for i, line in enumerate(code):
        function = csource.function_at(spans, i)
        for match in OPERATION.finditer(line):
            site = _site_of(lines, i, function, match, f"{name}:{i + 1}", bad)
            sites += [site] if site else []
            sites += _riders(lines, code, i, function, match, f"{name}:{i + 1}")
    return sites


@functools.lru_cache(maxsize=None)
def all_sites(root):
    sites = []
    for name in filter(has_sites, csource.c_files(str(root), *DIRECTORIES)):
        lines, code = csource.read(root, name)
        sites += sites_of(name, lines, code, csource.functions(code), [])
    return sites


@functools.lru_cache(maxsize=None)
def statements(root):
    """(label, one side, other side, file) of each statement, in the order of the files; the other side is None where a bar is missing."""
    found = []
    for name in csource.c_files(str(root), *DIRECTORIES):
        label, open_statement = None, False
        for line in (root / name).read_text(encoding="utf-8").split("\n"):
            row, further = STATEMENT.match(line), FURTHER.match(line)
            if row:
                label = row.group(1)
                found.append([label, row.group(2), name])
            elif label and further and " | " in found[-1][1] and " | " in further.group(1) and not further.group(1).startswith("| "):
                found.append([label, further.group(1), name])
            elif label and further:
                found[-1][1] += " " + further.group(1)
            else:
                label = None
    rows = []
    for label, text, name in found:
        one, bar, other = (re.sub(r"\s+", " ", part).strip() for part in text.partition(" | "))
        rows.append((label, one, other if bar else None, name))
    return rows


def labels(root):
    """Return the labels in the order of their declaration."""
    return re.findall(r"X\((\w+)\)", (pathlib.Path(root) / LABELS).read_text())
