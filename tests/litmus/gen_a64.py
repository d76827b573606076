#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write the AArch64 litmus files A64-*.litmus into DIR.  run.py and check_ties.py generate them in each run.

Here the membarrier is written out as the kernel's steps: an interrupt to the
reader's CPU (ipi), a full barrier there, an answer (ack), and full barriers at
both ends of the caller.  The interrupt may come at any place of the reader's program,
so there is one file for each place.  Arm's own model judges these files,
and thus checks the claims of herd/quiesce.cat about light and heavy fences.

VERDICTS: one letter per place of the interrupt, N Never, S Sometimes.  A correct
form is Never at every place; a wrong one is shown by a single Sometimes."""
import os
import sys

INTERRUPT = ["LDR W9,[X13]", "DMB SY", "MOV W8,#1", "STR W8,[X14]"]
HEAVY = ["DMB SY", "MOV W8,#1", "STR W8,[X13]", "LDR W9,[X14]", "DMB SY"]
UNLINK = ["MOV W1,#2", "STR W1,[X12]"]
ADVANCE = ["STR W1,[X10]"]
LOCK = [["LDR W1,[X10]"], ["STR W1,[X11]"]]
FETCH = [["LDR W3,[X12]"]]
USE = [["LDR W4,[X15]"]]
UNLOCK = [["STLR WZR,[X11]"]]
FREE = ["MOV W3,#9", "STR W3,[X15]", "L0:"]
SCAN = ["LDAR W2,[X11]", "CMP W2,#1", "B.EQ L0"]
TOOK_PLACE = r"0:X9=1 /\ 1:X9=1"
RCU_H = "include/quiesce/detail/rcu_read.h"
LOCK_SOURCE = RCU_H + " quiesce__rcu_read_trylock quiesce_own_store_relaxed(self, rcu_word, quiesce_load_relaxed(&quiesce_rcu_v1.gp)) ; quiesce_fence_light(RU1)"
UNLOCK_SOURCE = RCU_H + " quiesce__rcu_read_tryunlock quiesce_own_store_release(RU2, self, rcu_word, 0)"
ADVANCE_SOURCE = "src/rcu/rcu_gp.c gp_advance quiesce_fence_heavy(RU1) ; publish(number)"
SCAN_SOURCE = "src/rcu/rcu_gp.c quiesce__rcu_blocks quiesce_load_acquire(RU2"
SH_H = "include/quiesce/detail/shazptr.h"
SLOT_H = "include/quiesce/detail/shazptr_slot.h"
CLAIM = [["LDAR W5,[X11]"], ["MOV W1,#1", "STLR W1,[X11]"]]
AGAIN = [["LDAR W3,[X12]"]]
CLAIM_SOURCE = SLOT_H + " quiesce__shazptr_claim quiesce__claim_own( ; quiesce_fence_light(SH1)"
OWN_SOURCE = "include/quiesce/detail/claim.h quiesce__claim_own quiesce_load_acquire(SH2, slot) ; quiesce_store_release(SH2, slot, value)"
AGAIN_SOURCE = SH_H + " quiesce__shazptr_attempt quiesce__shazptr_claim( ; quiesce_load_acquire(SH3, where)"
CLEAR_SOURCE = SLOT_H + " quiesce__shazptr_release quiesce_store_release(SH2, slot, (uintptr_t)0)"
SLOT_SOURCE = "src/slots/slots.h quiesce__slot_read quiesce_load_acquire(SH2, slot)"
WAIT_SOURCE = "src/shazptr/shazptr_wait.c quiesce_synchronize_shazptr quiesce_fence_heavy_shared(SH1) ; is_held_now("
GUARD_SOURCES = [CLAIM_SOURCE, OWN_SOURCE, AGAIN_SOURCE, CLEAR_SOURCE, WAIT_SOURCE, SLOT_SOURCE]
HP_H = "include/quiesce/detail/hazptr.h"
FIRST = [["LDR W1,[X12]"]]
SET = [["STLR W1,[X11]"]]
PLAIN_AGAIN = [["LDR W3,[X12]"]]
USE_FIRST = [["EOR W7,W1,W1", "LDR W4,[X15,W7,SXTW]"]]
USE_SECOND = [["EOR W7,W3,W3", "LDR W4,[X15,W7,SXTW]"]]
# The scan has found no slot: the object is freed, and its memory is an object again at the same address.
REUSE = ["MOV W3,#5", "STR W3,[X15]", "MOV W6,#1", "STLR W6,[X12]", "L0:"]
STALE = r"0:X1=1 /\ 0:X3=1 /\ 0:X4=1 /\ 1:X6=1 /\ " + TOOK_PLACE
SLOT_SOURCES = [HP_H + " quiesce__hazptr_attempt quiesce_load_relaxed(where) ; quiesce__hazptr_set( ; quiesce_load_acquire(SH3, where)",
                HP_H + " quiesce__hazptr_set_fast quiesce_store_release(SH2, &slot->value, value) ; quiesce_fence_light(HP1)",
                HP_H + " quiesce__hazptr_clear quiesce_store_release(SH2, &slot->value, (uintptr_t)0)",
                "src/hazptr/hazptr_scan.c quiesce__hazptr_scan_begin quiesce_fence_heavy_shared(HP1) ; scan_all(set)", SLOT_SOURCE]
GP_SOURCES = [LOCK_SOURCE, UNLOCK_SOURCE, ADVANCE_SOURCE, SCAN_SOURCE]


def plain_unlock(steps):
    return [[line.replace("STLR", "STR") for line in step] for step in steps]


# Each family has a name, the property that it shows, verdicts, the reader's steps, the other threads, a condition, sources.
FAMILIES = [
    ("gp", "A whole section against a whole grace period: unlink, fence, advance, scan by number, free.",
     "NNNNNN", LOCK + FETCH + USE + UNLOCK, [UNLINK + HEAVY + ADVANCE + SCAN + FREE],
     r"0:X3=1 /\ 0:X4=9 /\ " + TOOK_PLACE, GP_SOURCES),
    ("gp-advance-first", "The number advances before the fence: too short.",
     "NNNSNN", LOCK + FETCH + USE + UNLOCK, [UNLINK + ADVANCE + HEAVY + SCAN + FREE],
     r"0:X3=1 /\ 0:X4=9 /\ " + TOOK_PLACE, [LOCK_SOURCE, "src/rcu/rcu_gp.c gp_advance QUIESCE_MUTANT(gp_advance_before_fence) ; publish(number) ; quiesce_fence_heavy(RU1)"]),
    ("gp-late", "The fence comes before the unlinking: too short.",
     "SSNNNN", LOCK + FETCH + USE + UNLOCK, [HEAVY + UNLINK + ADVANCE + SCAN + FREE],
     r"0:X3=1 /\ 0:X4=9 /\ " + TOOK_PLACE, [LOCK_SOURCE, ADVANCE_SOURCE]),
    ("gp-plain-unlock", "The unlock is a plain store: then a second fence after the scan would be needed.",
     "NNNSNN", LOCK + FETCH + USE + plain_unlock(UNLOCK), [UNLINK + HEAVY + ADVANCE + SCAN + FREE],
     r"0:X3=1 /\ 0:X4=9 /\ " + TOOK_PLACE, GP_SOURCES),
    ("write", "The section's stores are visible after the grace period.",
     "NNNNNN", LOCK + FETCH + [["MOV W4,#5", "STR W4,[X15]"]] + UNLOCK,
     [UNLINK + HEAVY + ADVANCE + SCAN + ["LDR W4,[X15]", "L0:"]],
     r"0:X3=1 /\ 1:X2=0 /\ 1:X4=1 /\ " + TOOK_PLACE, GP_SOURCES),
    ("write-plain-poll", "The scan uses plain loads: the section's stores may be missed.",
     "NNNSNN", LOCK + FETCH + [["MOV W4,#5", "STR W4,[X15]"]] + UNLOCK,
     [UNLINK + HEAVY + ADVANCE + ["LDR W2,[X11]"] + SCAN[1:] + ["LDR W4,[X15]", "L0:"]],
     r"0:X3=1 /\ 1:X2=0 /\ 1:X4=1 /\ " + TOOK_PLACE, GP_SOURCES),
    ("again", "The scan sees only the next section, by its number: the first one is over.",
     "NNNNNNN", LOCK + FETCH + USE + UNLOCK + [["MOV W7,#2", "STR W7,[X11]"]],
     [UNLINK + HEAVY + ADVANCE + SCAN + FREE],
     r"0:X3=1 /\ 0:X4=9 /\ 1:X2=2 /\ " + TOOK_PLACE, GP_SOURCES),
    ("again-plain-unlock", "The same with a plain store as unlock.",
     "NNNSNNN", LOCK + FETCH + USE + plain_unlock(UNLOCK) + [["MOV W7,#2", "STR W7,[X11]"]],
     [UNLINK + HEAVY + ADVANCE + SCAN + FREE],
     r"0:X3=1 /\ 0:X4=9 /\ 1:X2=2 /\ " + TOOK_PLACE, GP_SOURCES),
    ("cookie", "RU6: one thread unlinks and takes a cookie (full fence), another leads (heavy fence).",
     "NNN", [["MOV W1,#1", "STR W1,[X11]"]] + FETCH,
     [["MOV W1,#1", "STR W1,[X16]"] + HEAVY + ["LDAR W2,[X11]"], UNLINK + ["DMB SY", "LDR W3,[X16]"]],
     r"0:X3=1 /\ 1:X2=0 /\ 2:X3=0 /\ " + TOOK_PLACE,
     [LOCK_SOURCE, SCAN_SOURCE, "src/rcu/rcu_gp.c quiesce__rcu_cookie quiesce_fence_full(RU6)",
      "src/rcu/rcu_gp.c gp_advance quiesce_fetch_add(RU9, &state.started ; quiesce_fence_heavy(RU1)"]),
    ("cookie-no-fence", "The same without the cookie's fence.",
     "SNN", [["MOV W1,#1", "STR W1,[X11]"]] + FETCH,
     [["MOV W1,#1", "STR W1,[X16]"] + HEAVY + ["LDAR W2,[X11]"], UNLINK + ["LDR W3,[X16]"]],
     r"0:X3=1 /\ 1:X2=0 /\ 2:X3=0 /\ " + TOOK_PLACE,
     [LOCK_SOURCE, SCAN_SOURCE, "src/rcu/rcu_gp.c quiesce__rcu_cookie quiesce_fence_full(RU6)"]),
    ("sb", "The bare fence pair without an interrupt: nothing orders the reader.",
     "S", [["MOV W1,#1", "STR W1,[X11]"]] + FETCH, [UNLINK + ["DMB SY", "LDAR W2,[X11]"]],
     r"0:X3=1 /\ 1:X2=0", [LOCK_SOURCE, SCAN_SOURCE]),
    ("sb-full", "Full-fence mode.",
     "N", [["MOV W1,#1", "STR W1,[X11]", "DMB SY"]] + FETCH, [UNLINK + ["DMB SY", "LDAR W2,[X11]"]],
     r"0:X3=1 /\ 1:X2=0", ["src/rcu/rcu.c fenced_lock quiesce_store_relaxed(&self->rcu_word ; quiesce_fence_full(RU1)", SCAN_SOURCE]),
    ("rmw-llsc", "A read-modify-write of two instructions is no fence for a load after it: why atomic.h adds one.",
     "S", [["MOV W5,#1", "LDAXR W6,[X11]", "STLXR W7,W5,[X11]"]] + FETCH, [UNLINK + ["DMB SY", "LDAR W2,[X11]"]],
     r"0:X7=0 /\ 0:X3=1 /\ 1:X2=0", ["src/rcu/rcu.c unregistered_lock quiesce_fetch_add(RU8"]),
    ("rmw-llsc-fence", "The same with a fence.",
     "N", [["MOV W5,#1", "LDAXR W6,[X11]", "STLXR W7,W5,[X11]", "DMB SY"]] + FETCH,
     [UNLINK + ["DMB SY", "LDAR W2,[X11]"]],
     r"0:X7=0 /\ 0:X3=1 /\ 1:X2=0", ["src/rcu/rcu.c unregistered_lock quiesce_fetch_add(RU8"]),
    ("rmw-llsc-acquire", "The same without the fence, but the load is an acquire load, as rcu_dereference() is.",
     "N", [["MOV W5,#1", "LDAXR W6,[X11]", "STLXR W7,W5,[X11]", "LDAR W3,[X12]"]],
     [UNLINK + ["DMB SY", "LDAR W2,[X11]"]],
     r"0:X7=0 /\ 0:X3=1 /\ 1:X2=0", ["src/rcu/rcu.c unregistered_lock quiesce_fetch_add(RU8"]),
    ("rmw-lse", "One instruction (Armv8.1): it is a fence.",
     "N", [["MOV W5,#1", "SWPAL W5,W6,[X11]"]] + FETCH, [UNLINK + ["DMB SY", "LDAR W2,[X11]"]],
     r"0:X3=1 /\ 1:X2=0", ["src/rcu/rcu.c unregistered_lock quiesce_fetch_add(RU8"]),
    ("guard", "A whole guard against a whole wait: claim, find the object again, use, clear; unlink, fence, scan, free.",
     "NNNNNN", CLAIM + AGAIN + USE + UNLOCK, [UNLINK + HEAVY + SCAN + FREE],
     r"0:X3=1 /\ 0:X4=9 /\ " + TOOK_PLACE, GUARD_SOURCES),
    ("guard-late", "The fence comes before the unlinking: too early.",
     "SSNNNN", CLAIM + AGAIN + USE + UNLOCK, [HEAVY + UNLINK + SCAN + FREE],
     r"0:X3=1 /\ 0:X4=9 /\ " + TOOK_PLACE, GUARD_SOURCES),
    ("guard-plain-clear", "The clear is a plain store.",
     "NNNSNN", CLAIM + AGAIN + USE + plain_unlock(UNLOCK), [UNLINK + HEAVY + SCAN + FREE],
     r"0:X3=1 /\ 0:X4=9 /\ " + TOOK_PLACE, GUARD_SOURCES),
    ("guard-leader", "The caller unlinks, fences and queues (release); another thread takes the queue (acquire) and scans.",
     "NNNNNN", CLAIM + AGAIN + USE + UNLOCK,
     [UNLINK + HEAVY + ["MOV W2,#1", "STLR W2,[X16]"], ["LDAR W5,[X16]", "CBZ W5,L0"] + SCAN + FREE],
     r"0:X3=1 /\ 0:X4=9 /\ 2:X5=1 /\ " + TOOK_PLACE,
     GUARD_SOURCES + ["src/shazptr/shazptr_wait.c join_queue quiesce__lock( ; quiesce__shazptr_scan.queue = me ; quiesce__unlock("]),
    ("guard-again", "The scan sees only the next guard (2), which another thread claimed: the first one is over.  3: empty.",
     "N", USE + [["MOV W1,#3", "STLR W1,[X11]"]], [["LDAR W5,[X11]", "CMP W5,#3", "B.NE L1", "MOV W1,#2", "STLR W1,[X11]", "L1:"],
                         ["LDAR W2,[X11]", "CMP W2,#2", "B.NE L0"] + FREE],
     r"0:X4=9", [OWN_SOURCE, CLEAR_SOURCE, SLOT_SOURCE]),
    ("hazptr", "A whole protection in a slot against a whole reclaim: load, set, load again, use, clear; unlink, fence, scan, free.",
     "NNNNNN", FIRST + SET + AGAIN + USE + UNLOCK, [UNLINK + HEAVY + SCAN + FREE],
     r"0:X1=1 /\ 0:X3=1 /\ 0:X4=9 /\ " + TOOK_PLACE, SLOT_SOURCES),
    ("hazptr-aba", "The object is freed, and another is at its address, between the two loads: the second acquires the contents.",
     "NNNNN", FIRST + SET + AGAIN + USE_FIRST, [UNLINK + HEAVY + SCAN + REUSE], STALE, SLOT_SOURCES),
    ("hazptr-aba-second", "A plain second load is enough if the address of what is read depends on it.",
     "NNNNN", FIRST + SET + PLAIN_AGAIN + USE_SECOND, [UNLINK + HEAVY + SCAN + REUSE], STALE, SLOT_SOURCES),
    ("hazptr-aba-first", "The address depends on the first load, and the second is only compared: stale contents.  A "
     "compiler may make this of the form before.",
     "NSNNN", FIRST + SET + PLAIN_AGAIN + USE_FIRST, [UNLINK + HEAVY + SCAN + REUSE], STALE, SLOT_SOURCES),
]


def threads_of(steps, others, place):
    reader = []
    for i, step in enumerate(steps):
        reader += (INTERRUPT if i == place else []) + step
    return [reader + (INTERRUPT if place == len(steps) else [])] + others


def render(family, place):
    """One file; @place None: no interrupt."""
    name, what, verdicts, steps, others, condition, sources = family
    name = "A64-" + name + ("" if place is None else "-%d" % place)
    threads = threads_of(steps, others, place)
    height = max(len(t) for t in threads)
    width = max(len(i) for t in threads for i in t)
    registers = "X10=gp; %d:X11=word; %d:X12=p; %d:X13=ipi; %d:X14=ack; %d:X15=data; %d:X16=started;"
    lines = ["AArch64 " + name, "(* SPDX-License-Identifier: MIT", " * Written by gen_a64.py.", " *", " * " + what]
    if place is not None:
        lines.append(" * Interrupt before step %d of the reader's %d." % (place, len(steps)))
    lines += [" *", " * Result: " + {"N": "Never", "S": "Sometimes"}[verdicts[place or 0]]]
    lines += [" * Source: " + s for s in sources] + [" *)", "{ p=1; gp=1; word=0; data=1; ipi=0; ack=0; started=0;"]
    lines += ["%d:%s" % (i, registers % ((i,) * 6)) for i in range(len(threads))] + ["}"]
    lines.append(" " + " | ".join("P%d".ljust(width + 1) % i for i in range(len(threads))) + " ;")
    for row in range(height):
        lines.append(" " + " | ".join((t[row] if row < len(t) else "").ljust(width) for t in threads) + " ;")
    return name + ".litmus", "\n".join(lines) + "\nexists (" + condition + ")\n"


def files():
    for family in FAMILIES:
        alone = len(family[2]) == 1
        for place in [None] if alone else range(len(family[3]) + 1):
            yield render(family, place)


def write(directory):
    """Write all files into @directory, and return their paths."""
    paths = []
    for name, text in files():
        paths.append(os.path.join(directory, name))
        with open(paths[-1], "w") as f:
            f.write(text)
    return paths


def main():
    if len(sys.argv) != 2:
        sys.exit("gen_a64.py DIR: write the files there")
    os.makedirs(sys.argv[1], exist_ok=True)
    print("%d files in %s" % (len(write(sys.argv[1])), sys.argv[1]))


if __name__ == "__main__":
    main()
