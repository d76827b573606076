#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The sequences of the modelled machine make the accesses of the assembly that they stand for.

    sequences.py ROOT

The model has the restartable sequences in C.  ACCESSES lists the operands in memory of each sequence in the library's
assembly, and how many loads and stores the C makes.  Where the assembly has changed, or the C, the two have parted: change
both, and this table.
"""
import pathlib
import re
import sys

RSEQ = "include/quiesce/arch/x86_64_rseq.h"
COUNT = "src/platform/linux/count.c"
SHEAF = "src/platform/linux/sheaf.c"
MODEL = "tests/scale/include/quiesce/arch/x86_64_rseq.h"

# Each row has a file, the lines from and to which its assembly goes, and the operands in memory there, in order.
ASSEMBLY = [
    (RSEQ, "#define QUIESCE_RSEQ_ENTER", "#define QUIESCE_RSEQ_UNCHANGED", ["mov %%fs:8(%[area])"]),
    (RSEQ, "#define QUIESCE__CLAIM_RSEQ", "QUIESCE_FAST uintptr_t \\*quiesce__claimed",
     ["mov %%fs:(%[id])", "cmp cached_id", "mov cached_slot", "cmp (%[claimed])", "mov (%[claimed])"]),
    (RSEQ, "#define QUIESCE_COUNT_RSEQ", "/\\* For detail/sheaf.h", ["mov %%fs:24(%[area])", "sub %[open]", "count word"]),
    (RSEQ, "#define QUIESCE_SHEAF_OF_ID", "#define QUIESCE_SHEAF_POP", ["mov %%fs:24(%[area])", "sub %[open]", "mov (%[at])"]),
    (RSEQ, "#define QUIESCE_SHEAF_POP", "#define QUIESCE_SHEAF_PUSH", ["mov 16(%[at], %[nr], 8)", "mov (%[at])"]),
    (RSEQ, "#define QUIESCE_SHEAF_PUSH", "#endif", ["cmp %[limit]", "mov 16(%[at], %[nr], 8)", "mov (%[at])"]),
    (COUNT, "bool quiesce__count_call", "#el", ["cmpq (%[closed])", "movl %%fs:(%[id])", "cmpq %[limit]", "count word"]),
    (SHEAF, "#define MOVE", "uint64_t quiesce__sheaf_take",
     ["movq field closed", "cmpq (%[at])", "movl %%fs:(%[id])", "cmpq %[limit]", "addq field base", "movq (%[at])", "movq (%[to], %[done], 8)",
      "movq (%[at])"]),
]
# Function or macro of the model, and how many loads and stores it makes; the id and the descriptor have functions of their own.
IN_C = {"quiesce__scale_enter": (0, 1), "quiesce__scale_id": (1, 0), "quiesce__claim_rseq": (3, 1), "quiesce__scale_count": (2, 1),
        "QUIESCE_SHEAF_POP": (3, 1), "QUIESCE_SHEAF_PUSH": (3, 2)}
OPERAND = re.compile(r"%%fs:\d*\(%\[\w+\]\)|\d*\(%\[\w+\](?:, %\[\w+\](?:, 8)?)?\)|%\[(?:open|limit)\]|\" (?:cached_id|cached_slot) \"|\" FIELD\(\w+\) \"")


def operands(text):
    """The instructions with an operand in memory: {A|B} is A."""
    found = []
    for line in text.splitlines():
        for part in re.findall(r"((?:mov|cmp|sub|add|inc|lea|shl|cmova)\w*(?:\{\w+)?)\s+(.*?)(?:\||\\n)", line):
            name, rest = re.sub(r"\{.*", "", part[0]), part[1]
            match = OPERAND.search(rest)
            if match and not name.startswith("lea"):
                operand = re.sub(r"\" FIELD\((\w+)\) \"", r"field \1", match.group()).strip('" ')
                found.append(f"{name} {operand}")
        if re.search(r"QUIESCE_COUNT\(word\)| COUNT\b", line) and "define" not in line:
            found.append("count word")
    return found


def between(root, name, start, end):
    text = (root / name).read_text()
    match = re.search(rf"^{start}.*?(?=^{end})", text, re.M | re.S)
    return match.group() if match else ""


def body(text, name):
    """Return the text of a function or macro of the model."""
    match = re.search(rf"^(?:#define {name}\(|[^\n]*\b{name}\().*?(?=^\}}|\n\n/\*|\n\n#endif)", text, re.M | re.S)
    return match.group() if match else ""


def problems(root):
    for name, start, end, expected in ASSEMBLY:
        found = operands(between(root, name, start, end))
        if found != expected:
            yield f"{name}: {start}: the assembly accesses {found}, the model was made for {expected}"
    text = (root / MODEL).read_text()
    for name, expected in IN_C.items():
        code = body(text, name)
        found = (code.count("quiesce_load_relaxed("), code.count("quiesce_store_relaxed("))
        if found != expected:
            yield f"{MODEL}: {name} makes {found} loads and stores, not {expected}"


def main():
    bad = list(problems(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print("\n".join(bad + [f"sequences: {len(bad)} problems"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
