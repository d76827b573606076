# SPDX-License-Identifier: MIT
"""kernel_orders.py - the orderings of kernel/: their positions, and the labels in their comments.

    smp_mb(); /* SK1: full, pairs with SK1 in synchronize_shazptr() */

The comment stands on the operation's line or in the three above it.
"""
import re

KINDS = {  # operation: its weakened form in a litmus file
    "mb": r"smp_mb|smp_rmb|smp_wmb|smp_mb__\w+|smp_acquire__after_ctrl_dep|smp_store_mb",
    "acquire": r"smp_load_acquire|smp_cond_load_acquire|(?:atomic\w*_|try_)?\w+_acquire",
    "release": r"smp_store_release|rcu_assign_pointer|(?:atomic\w*_|try_)?\w+_release",
    "rmw": r"(?:try_)?cmpxchg|xchg|atomic\w*_(?:xchg|cmpxchg|try_cmpxchg)|atomic\w*_\w+_return|atomic\w*_fetch_\w+"
           r"|atomic\w*_\w+_and_test|atomic\w*_add_unless|atomic\w*_inc_not_zero"
           r"|llist_add|llist_add_batch|llist_del_all|llist_del_first|test_and_\w+_bit(?:_lock)?",
}
# Orderings by their names; other names that end in _acquire or _release are functions.
NOT_ORDERS = re.compile(r"^(?:hazptr|shazptr|kobject|rwsem|mutex|lock|rwlock|spin|seqcount|rcu_lock|lock_map|srcu_lock)_"
                        r"|^fops?_release$|^single_release$|^seq_release")
OPERATION = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join("(?P<%s>%s)" % pair for pair in KINDS.items()))
RELAXED = re.compile(r"(?<![\w.>])(\w+_relaxed)\s*\(")
PAIR = re.compile(r"\b([A-Z]{2,4}\d+): (?:(?:acquire|release|full), )?pairs with (?:the caller|([A-Z]{2,4}\d+) in "
                  r"((?:\w+\(\)(?:, | and )?)+))")


def operations(code_line):
    """[(name, kind, position)] of the orderings in a line without comments."""
    if re.match(r"\s*#\s*define\s+(?:smp_|X\b)", code_line):
        return
    for m in OPERATION.finditer(code_line):
        if not NOT_ORDERS.search(m.group(1)):
            yield m.group(1), next(k for k in KINDS if m.group(k)), m.start()


def comment_near(lines, i, above=3):
    """Return the text of the lines above an operation and of its own line."""
    text = " ".join(line.strip().strip("/*\\ \t") for line in lines[max(0, i - above):i + 1])
    return re.sub(r"\s+", " ", text)


def pair_at(lines, i):
    """Return a match of the last "LABEL: pairs with ..." near the line, or None."""
    found = list(PAIR.finditer(comment_near(lines, i)))
    return found[-1] if found else None


def annotated(lines, code):
    """Return the code with the label of each ordering before its name: "SK1 smp_mb()"."""
    out = []
    for i, line in enumerate(code):
        pair = pair_at(lines, i)
        for _, _, at in reversed(list(operations(line)) if pair else []):
            line = "%s%s %s" % (line[:at], pair.group(1), line[at:])
        out.append(line)
    return "\n".join(out)
