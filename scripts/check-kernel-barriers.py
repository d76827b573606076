#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every ordering of kernel/ names its partner, and a litmus file or a test notices its removal.

 1. smp_mb() and its like, acquires and releases have on their line or in the three above a comment
        LABEL: [acquire, |release, |full, ]pairs with LABEL in f() [and g()]
        LABEL: [...]pairs with the caller
    In the modules themselves this also holds for atomic operations with an implied order (xchg(), llist_add()), or they
    have "No order: reason"; relaxed ones have "Relaxed: reason" or "Orders nothing: reason" in the five lines above.
 2. Each f() exists and has an operation with that label; a label whose partner is not the caller has two ends.
 3. Labels: SK (shazptr), HK (hazptr), TK (kernel/tests).  Each SK and HK label has kernel/litmus/LABEL*.litmus.
 4. The Source line of a litmus file claims each such operation, and the verdict turns from Never to Sometimes when it
    is weakened; or a MUTANT() stands in the three lines above it.  tests/kernel/litmus.py runs herd7.
"""
import pathlib
import re
import sys

import csource
import kernel_orders

WEAK = re.compile(r"(?:Relaxed|[Oo]rders nothing|No order): \S")
MUTANT = re.compile(r"\bS?HAZPTR_MUTANT\(\w+\)")
USERS = ("kernel/tests/", "kernel/examples/")  # a read-modify-write of these needs no label
REASON = 5  # lines above an operation in which a reason may stand
FAMILY = (("kernel/tests/", "TK"), ("kernel/shazptr", "SK"), ("kernel/include/linux/shazptr", "SK"),
          ("kernel/hazptr", "HK"), ("kernel/include/linux/hazptr", "HK"))


class Site:
    def __init__(self, name, line, function, op, kind, pair):
        self.name, self.where, self.function, self.op, self.kind = name, f"{name}:{line}", function, op, kind
        self.label = pair.group(1)
        self.other = pair.group(2)
        self.partners = re.findall(r"(\w+)\(\)", pair.group(3) or "")
        self.planted = False


def scan_file(root, name, bad):
    lines, code = csource.read(root, name)
    spans = csource.functions(code)
    sites = []
    for i, line in enumerate(code):
        for op, kind, _ in kernel_orders.operations(line):
            pair = kernel_orders.pair_at(lines, i)
            near = kernel_orders.comment_near(lines, i, REASON)
            if pair:
                site = Site(name, i + 1, csource.function_at(spans, i), op, kind, pair)
                site.planted = bool(MUTANT.search("\n".join(code[max(0, i - 3):i + 1])))
                sites.append(site)
            elif not (kind == "rmw" and (name.startswith(USERS) or WEAK.search(near))):
                bad.append(f"{name}:{i + 1}: {op}() has no comment 'LABEL: pairs with LABEL in f()'")
        for match in kernel_orders.RELAXED.finditer(line):
            if not name.startswith(USERS) and not WEAK.search(kernel_orders.comment_near(lines, i, REASON)):
                bad.append(f"{name}:{i + 1}: {match.group(1)}() without 'Relaxed: reason'")
    return sites, {s[0] for s in spans}


def check_partners(sites, names, bad):
    for s in sites:
        family = next((f for prefix, f in FAMILY if s.name.startswith(prefix)), "")
        if not s.label.startswith(family):
            bad.append(f"{s.where}: {s.label} is not a label of this file ({family})")
        if s.other and s.other != s.label:
            bad.append(f"{s.where}: {s.label} says that it pairs with {s.other}")
        for f in s.partners:
            if f not in names:
                bad.append(f"{s.where}: {s.label} pairs with {f}(), which does not exist")
            elif not any(o.label == s.label and o.function == f for o in sites):
                bad.append(f"{s.where}: {s.label} pairs with {f}(), which has no operation of that label")
    for label in sorted({s.label for s in sites}):
        ends = [s for s in sites if s.label == label]
        if len(ends) < 2 and not any(s.other is None for s in ends):
            bad.append(f"{ends[0].where}: {label} has one end only")


def litmus_kills(root):
    """{(file, function, label, operation)} that a litmus file weakens to Sometimes; names of the files"""
    killed, names = set(), []
    for path in sorted((root / "kernel/litmus").glob("*.litmus")):
        text = path.read_text()
        names.append(path.name)
        if not re.search(r"^ \* Result: Never$", text, re.M):
            continue
        weak = set(re.findall(r"^ \* Weakened: (\w+):(\w+)@\w+ Sometimes$", text, re.M))
        for name, function, ops in re.findall(r"^ \* Source: (\S+) (\S+) (.*)$", text, re.M):
            for label, op in re.findall(r"\b([A-Z]{2}\d+) (\w+)\(", ops):
                kind = next((k for _, k, _ in kernel_orders.operations(op + "(")), None)
                # A queue's exchange may be modelled as the release or acquire that it contains.
                if (label, kind) in weak or kind == "rmw" and {(label, "acquire"), (label, "release")} & weak:
                    killed.add((name, function, label, op))
    return killed, names


def check_killers(root, sites, bad):
    killed, names = litmus_kills(root)
    sites = [s for s in sites if not s.label.startswith("TK")]
    for label in sorted({s.label for s in sites}):
        if not any(re.match(label + r"[-.]", n) for n in names):
            bad.append(f"kernel/litmus: no file for label {label}")
    for s in sites:
        if not s.planted and (s.name, s.function, s.label, s.op) not in killed:
            bad.append(f"{s.where}: nothing misses {s.op}() ({s.label}): no litmus file weakens it, no bug is planted")
    labels = {s.label for s in sites}
    bad += [f"kernel/litmus/{n}: there is no such label" for n in names if re.match(r"\w+", n).group() not in labels]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    bad, sites, names = [], [], set()
    for name in csource.c_files(str(root), "kernel/"):
        found, functions = scan_file(root, name, bad)
        sites, names = sites + found, names | functions
    check_partners(sites, names, bad)
    check_killers(root, sites, bad)
    print("\n".join(bad), end="\n" if bad else "")
    print(f"check-kernel-barriers: {len(bad)} problems; {len(sites)} sites, {len({s.label for s in sites})} labels")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
