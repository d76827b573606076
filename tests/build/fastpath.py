#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The inline fast paths, as the compilers translate them.

Compiles fastpath.c and follows each function of RCU from its entry to its return with
every conditional branch not taken: that is the path the CPU falls through.  On
it there is no call, no locked instruction and no fence, and at most as many
instructions as the table says.  Not counted: the return, and pushes and pops
of a frame that only the slow path needs (clang saves early).

Simple hazard pointers have two fast paths, of threads with a line of slots of their own and, by a
restartable sequence, of the others.  So every path through the function is
followed: among those without call, lock and fence that do all required stores, the shortest one that
enters no sequence, and the shortest one that does.  Hazard pointers whose slots readers own, and
call_hazptr() in the library, are checked in the same way; they enter no sequence.  Counters per CPU always enter one.
The find of an idr and the load of an xarray are loops: there is no call, lock or fence in the whole function.  Nor in lookups of tables, but for the one
call where a bucket has moved; counted are the instructions of the shortest way that finds something in the first line.
The sequences of arm64 find the thread by an instruction of its own, branch around the word that the kernel demands, and load a counter before they store
it, which x86-64 does in one.  The assembly of x86-64 is written for both of the assembler's syntaxes, which have to give the same instructions.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from tap import not_installed

BASE = ["-O2", "-std=gnu11", "-g0", "-fcf-protection=none", "-fno-stack-protector"]
# Instructions in lock, unlock, whole section.  A compiler that reaches an external
# variable through the GOT (clang; gcc with -fPIC) needs one more for quiesce_rcu_v1.
LIMITS = {"x86": (6, 5, 14), "x86-got": (7, 5, 15), "arm64": (11, 9, 23)}
# The number of these instructions that have an operand in memory, for x86.
OPERANDS = {"x86": (4, 3, 8), "x86-got": (5, 3, 9)}
# In the own line: acquire, clear, whole section; by a restartable sequence: acquire, whole section.
SHAZPTR_LIMITS = {"x86": (11, 6, 18, 23, 31), "x86-got": (11, 7, 19, 24, 32), "arm64": (12, 6, 22, 28, 36)}
SHAZPTR_OPERANDS = {"x86": (4, 2, 9, 10, 15), "x86-got": (4, 3, 10, 11, 16)}
# Slots that readers own: protect and tryprotect, and a section, with a slot in hand; with one taken and freed, the thread's
# own and a context's.
HAZPTR_LIMITS = {"x86": (8, 8, 11, 26, 28), "x86-got": (9, 9, 12, 27, 29), "arm64": (11, 12, 13, 30, 27)}
HAZPTR_OPERANDS = {"x86": (4, 4, 6, 11, 10), "x86-got": (5, 5, 7, 12, 11)}
HAZPTR_NEEDS = {"fast_hazptr_protect": ("set",), "fast_hazptr_tryprotect": ("set",), "fast_hazptr_section": ("set", "clear"),
                "fast_hazptr_whole": ("set", "set"), "fast_hazptr_whole_context": ("set", "set")} # the second clears and frees
# Walks along a list: with three slots the path that visits one node and leaves at the next; with two the one that leaves at the first
# node.  Instructions, operands in memory, and instructions that make and end the function's frame: on x86 a protection in a loop costs
# none.  Nothing between the first protection and the last one is on the stack.
WALK_LIMITS = {"x86": ((24, 8, 2), (14, 4, 0), (12, 5, 0)), "x86-got": ((25, 9, 4), (15, 5, 0), (13, 6, 0)),
               "x86-clang": ((30, 10, 3), (15, 5, 0), (13, 6, 0)), "arm64": ((31, 20, 11), (23, 15, 11), (19, 14, 9))}
WALK_NEEDS = {"hazptr_walk": ("set", "set"), "hazptr_set_walk": ("set",), "hazptr_try_walk": ("set",)}
# Counters per CPU, always by a restartable sequence: down and up of percpu_rwsem and a section, the same of srcu, get, put and
# tryget of percpu_ref, an allocation and a free.  Where there are no sequences there is a call.
COUNTED_LIMITS = {"x86": (9, 9, 22, 11, 10, 24, 9, 9, 10, 15, 17), "x86-got": (10, 10, 24, 12, 11, 26, 10, 10, 11, 17, 18),
                  "arm64": (18, 18, 38, 22, 20, 43, 17, 17, 18, 22, 26)}
# The number of these instructions that have a memory operand: the C library's word with the offset of the rseq area, once in each
# function; in each sequence the store of its descriptor, the id, the object's word, and the counter; and the caller's loads.
COUNTED_OPERANDS = {"x86": (5, 5, 11, 6, 5, 12, 5, 5, 5, 7, 8), "x86-got": (6, 6, 13, 7, 6, 14, 6, 6, 6, 8, 9),
                    "arm64": (7, 7, 21, 8, 7, 22, 7, 7, 7, 8, 9)}
COUNTED_NEEDS = {"fast_percpu_down_read": 1, "fast_percpu_up_read": 1, "fast_percpu_rwsem_section": 2, "fast_srcu_read_lock": 1,
                 "fast_srcu_read_unlock": 1, "fast_srcu_section": 2, "fast_percpu_ref_get": 1, "fast_percpu_ref_put": 1,
                 "fast_percpu_ref_tryget_live": 1, "fast_kmem_cache_alloc": 1, "fast_kmem_cache_free": 1}
# call_hazptr() is a call: its instructions where nothing is special (some of them count bytes, and the objects that only the helper may
# reclaim), and of those that make and end its frame.
CALL_LIMITS = {"x86": None, "x86-got": (49, 0), "arm64": None}
# Updates of a hashmap are calls, too: an insertion, a new value for a key, a removal.  Each has one locked instruction; those that change
# the number of elements count it in a sequence.  Those of a hashtable call the type's functions for the key and its hash, and a removal the
# search of a line, which gcc does not inline.
UPDATE_LIMITS = {"x86": None, "x86-got": (133, 91, 104), "arm64": None}
UPDATE_NEEDS = {"quiesce_hashmap_insert": ("count",), "quiesce_hashmap_set": (), "quiesce_hashmap_remove": ("count",)}
TABLE_UPDATE_LIMITS = {"x86": None, "x86-got": (102, 88), "x86-clang": (139, 115), "arm64": None}
TABLE_UPDATE_NEEDS = {"quiesce_hashtable_insert": ("count",), "quiesce_hashtable_remove": ("count",)}
UPDATE_CALL = r"call\s+(?!\s|\*|\w+ <find[.>])"
# Loops over the levels of a tree are counted as a whole: all instructions of the function.
WHOLE_LIMITS = {"x86": (27, 27), "x86-got": (27, 27), "arm64": (19, 19)}
WHOLE_NAMES = ("fast_idr_find", "fast_xa_load")
# Where the last word of a line is read nothing was found in it; what follows, five or so, is for lookups that find nothing.
TABLE_LIMITS = {"x86": (48, 41), "x86-got": (48, 41), "arm64": (50, 48)}
TABLE_NAMES = ("fast_hashmap_lookup", "fast_hashtable_lookup")
TABLE_CALL = re.compile(r"quiesce__(hashtable_search|hashmap_search)|\.text\.unlikely") # a section: what is cold
LAST_WORD = re.compile(r".*(0x38\(|#0x38\b|#56\])")
# The QSBR domain: a quiescent state where nothing is new, offline and online; and the full fences on each way, which fall through.
QSBR_LIMITS = {"x86": (5, 6, 10), "x86-got": (6, 6, 11), "arm64": (11, 10, 15)}
QSBR_NAMES = {"fast_qsbr_quiescent_state": 0, "fast_qsbr_offline": 1, "fast_qsbr_online": 1}
# With QUIESCE_FIBERS gcc loads the offset of the thread's block in each call anew: once more in a section.
for table in (LIMITS, OPERANDS, SHAZPTR_LIMITS, SHAZPTR_OPERANDS, HAZPTR_LIMITS, HAZPTR_OPERANDS, WALK_LIMITS, COUNTED_LIMITS,
              COUNTED_OPERANDS, CALL_LIMITS, UPDATE_LIMITS, WHOLE_LIMITS, TABLE_LIMITS, QSBR_LIMITS):
    table["x86-fibers"] = table["x86"]
for table in (LIMITS, OPERANDS, SHAZPTR_LIMITS, SHAZPTR_OPERANDS, HAZPTR_LIMITS, HAZPTR_OPERANDS, COUNTED_LIMITS, COUNTED_OPERANDS,
              CALL_LIMITS, UPDATE_LIMITS, WHOLE_LIMITS, TABLE_LIMITS, QSBR_LIMITS):
    table["x86-clang"] = table["x86-got"]
# clang's for arm64: fewer, but for the bits of tags, whose masks it makes in registers at the first word.
LIMITS["arm64-clang"], SHAZPTR_LIMITS["arm64-clang"] = (10, 9, 22), (11, 6, 22, 26, 35)
HAZPTR_LIMITS["arm64-clang"], WALK_LIMITS["arm64-clang"] = (10, 10, 12, 26, 22), ((31, 20, 11), (13, 13, 9), (14, 13, 9))
COUNTED_LIMITS["arm64-clang"] = (17, 18, 38, 21, 20, 43, 17, 17, 18, 22, 26)
COUNTED_OPERANDS["arm64-clang"] = (7, 7, 16, 8, 7, 17, 7, 7, 7, 8, 9)
WHOLE_LIMITS["arm64-clang"], TABLE_LIMITS["arm64-clang"], QSBR_LIMITS["arm64-clang"] = (15, 16), (47, 51), (10, 9, 14)
CALL_LIMITS["arm64-clang"] = None
LIMITS["x86-fibers"], OPERANDS["x86-fibers"], SHAZPTR_LIMITS["x86-fibers"] = (6, 5, 15), (4, 3, 9), (11, 6, 19, 23, 31)
SHAZPTR_NAMES = ("fast_shazptr_acquire", "fast_shazptr_clear", "fast_shazptr_section")
PADDING = re.compile(r"nop|data16|cs\b|endbr64|bti|paciasp|autiasp")
NAMES = ("fast_rcu_read_lock", "fast_rcu_read_unlock", "fast_rcu_section")
X86 = {
    "stop": re.compile(r"ret"), "jump": re.compile(r"jmp"), "branch": re.compile(r"j[a-z]+"),
    "frame": re.compile(r"(push|pop|endbr64|nop[wl]?|data16|cs|leave)\b|(add|sub)\s+\$\w+,%rsp|mov\s+%rsp,%rbp"),
    "set": re.compile(r"movq?\s+(%r\w+|\$0x[1-9a-f]\w*),(0x0)?\(%r\w+\)"), "clear": re.compile(r"movq\s+\$0x0,(0x0)?\(%r\w+\)"),
    "sequence": re.compile(r"mov\s+%r\w+,%fs:0x8\(%r\w+\)"), "count": re.compile(r"incq\s+(0x\w+)?\(%r\w+\)"),
    "commit": re.compile(r"movq?\s+%r\w+,(0x0)?\(%r\w+\)"), "memory": re.compile(r"(?!lea|nop|cs nop|data16).*(\(%|%fs:)"),
    "stack": re.compile(r"\(%rsp"),
    "call": re.compile(r"call|syscall|cmpxchg"), "fence": re.compile(r"lock\b|mfence"),
    "bad": re.compile(r"call|lock\b|[lms]fence|xchg\s.*\(|cmpxchg|syscall|int\b"),
}
ARM64 = {
    "stop": re.compile(r"ret"), "jump": re.compile(r"b$|b\s"), "branch": re.compile(r"b\.|cbn?z|tbn?z"),
    "frame": re.compile(r"(stp|ldp)\s|mov\s+x29, sp|nop|bti|paciasp|autiasp|(str|ldr)\s.*\[sp"),
    "set": re.compile(r"stlr\s+x\d+,"), "clear": re.compile(r"stlr\s+xzr,"), "sequence": re.compile(r"str\s+x\d+, \[x\d+, #8\]"), "count": re.compile(r"(str|stlr)\s+x17, \[x16"),
    "commit": re.compile(r"(str|stlr)\s+x\d+, \[x\d+\]"),
    "stack": re.compile(r"\[sp"), "memory": re.compile(r"(ld|st)\w*\s"),
    "call": re.compile(r"blr?\b|svc|ldx|stx"), "fence": re.compile(r"dmb"),
    "bad": re.compile(r"blr?\b|dmb|dsb|isb|ldx|stx|ldax|stlx|cas|swp|ld(add|set|clr)|svc"),
}
BUILDS = [
    ("gcc", [], "objdump", X86, "x86"),
    ("gcc", ["-fPIC"], "objdump", X86, "x86-got"),
    ("gcc", ["-O3"], "objdump", X86, "x86"),
    ("gcc", ["-DQUIESCE_FIBERS"], "objdump", X86, "x86-fibers"),
    ("clang-19", [], "objdump", X86, "x86-clang"),
    ("clang-19", ["-fPIC"], "objdump", X86, "x86-clang"),
    ("aarch64-linux-gnu-gcc", [], "aarch64-linux-gnu-objdump", ARM64, "arm64"),
    ("aarch64-linux-gnu-gcc", ["-fPIC"], "aarch64-linux-gnu-objdump", ARM64, "arm64"),
    ("clang-19", ["--target=aarch64-linux-gnu"], "aarch64-linux-gnu-objdump", ARM64, "arm64-clang"),
    ("clang-19", ["--target=aarch64-linux-gnu", "-fPIC"], "aarch64-linux-gnu-objdump", ARM64, "arm64-clang"),
]


def disassemble(objdump, obj):
    """{function: [(address, instruction, target of a branch or None, "" or the relocation)]}"""
    text = subprocess.run([objdump, "-dr", "--no-show-raw-insn", obj], capture_output=True, text=True, check=True).stdout
    functions, current = {}, None
    for line in text.split("\n"):
        head = re.match(r"[0-9a-f]+ <([\w.]+)>:", line)
        code = re.match(r"\s+([0-9a-f]+):\t(.*)", line)
        if head:
            current = functions.setdefault(head.group(1), [])
        elif code and re.match(r"\s*R_", code.group(2)):
            current[-1][3] = code.group(2)
        elif code:
            target = re.search(r"\s([0-9a-f]+) <", code.group(2))
            current.append([int(code.group(1), 16), re.sub(r"# .*", "", code.group(2)).strip(),
                            int(target.group(1), 16) if target else None, ""])
        elif re.match(r"\t+[0-9a-f]+: R_", line):
            current[-1][3] = line
    return functions


def walk(function, arch):
    """(instructions counted, what is wrong) on the path that falls through."""
    index = {address: i for i, (address, *_) in enumerate(function)}
    i, count, path = 0, 0, []
    while len(path) < 200:
        address, text, target, relocated = function[i]
        path.append(text)
        if arch["stop"].match(text):
            return count, None, path
        if arch["bad"].match(text):
            return count, f"'{text}' on the fast path", path
        if arch["jump"].match(text):
            if relocated or target not in index:
                return count, f"leaves by '{text}'", path
            i = index[target]
        else:
            i += 1
        if not arch["frame"].match(text):
            count += 1
        if i >= len(function):
            break
    return count, "does not return", path


def ways(function, arch):
    """Yield every path through the function without call, lock, fence or loop, as a list of instructions."""
    index = {address: i for i, (address, *_) in enumerate(function)}
    to_do = [(0, (), frozenset())]
    while to_do:
        i, path, seen = to_do.pop()
        while i is not None and i < len(function) and i not in seen:
            _, text, target, relocated = function[i]
            path, seen = path + (text,), seen | {i}
            if arch["stop"].match(text):
                yield path
                break
            if arch["bad"].match(text):
                break
            known = None if relocated else index.get(target)
            if arch["jump"].match(text):
                i = known
                continue
            if arch["branch"].match(text) and known is not None:
                to_do.append((known, path, seen))
            i += 1


def shortest(function, arch, needed, sequence):
    """Return the shortest path that makes the stores @needed: (instructions counted, the path), or None."""
    found = []
    for path in ways(function, arch):
        if all(sum(bool(arch[what].match(text)) for text in path) >= needed.count(what) for what in needed) \
                and any(arch["sequence"].match(text) for text in path) == sequence:
            found.append((sum(not arch["frame"].match(t) and not arch["stop"].match(t) for t in path), path))
    return min(found, default=None)


def judged(name, limit, operands, count, path, arch):
    """Return the result for a function whose path has @count instructions: (good, text, details)."""
    memory = sum(bool(arch["memory"].match(text)) for text in path) if "memory" in arch else None
    good = count <= limit and (memory is None or operands is None or memory <= operands)
    text = f"{name}: {count} instructions" + ("" if memory is None else f", {memory} operands in memory")
    return good, text + ("" if good else f": more than {limit} or {operands}"), [] if good else path


def examine_shazptr(functions, arch, limits, operands):
    needs = {"fast_shazptr_acquire": ("set",), "fast_shazptr_clear": ("clear",), "fast_shazptr_section": ("set", "clear")}
    operands = operands or [None] * len(limits)
    own = dict(zip(SHAZPTR_NAMES, zip(limits, operands)))
    near = dict(zip(("fast_shazptr_acquire", "fast_shazptr_section"), zip(limits[3:], operands[3:])))
    for sequence, table in ((False, own), (True, near)):
        for name, (limit, most) in table.items():
            best = shortest(functions[name], arch, needs[name], sequence)
            title = f"{name}, {'by a sequence' if sequence else 'own line'}: "
            if best is None:
                yield False, title + "only ways with a call, lock or fence", [text for _, text, *_ in functions[name]]
            else:
                yield judged(title[:-2], limit, most, *best, arch)
    for name, needed, limit in (("planted_shazptr_fence", ("clear",), 0), ("planted_shazptr_call", ("set",), 0),
                                ("planted_shazptr_long", ("set",), own["fast_shazptr_acquire"][0])):
        best = shortest(functions[name], arch, needed, False)
        refused = best is None or (limit and best[0] > limit)
        yield bool(refused), f"{name} is refused", [] if refused else best[1]


def examine_hazptr(functions, arch, limits, operands):
    for (name, needed), limit, most in zip(HAZPTR_NEEDS.items(), limits, operands or [None] * len(limits)):
        best = shortest(functions[name], arch, needed, False)
        if best is None:
            yield False, f"{name}: only ways with a call, lock or fence", [text for _, text, *_ in functions[name]]
        else:
            yield judged(name, limit, most, *best, arch)
    for name in ("planted_hazptr_fence", "planted_hazptr_call", "planted_hazptr_long"):
        best = shortest(functions[name], arch, ("set",), False)
        refused = best is None or best[0] > limits[0]
        yield refused, f"{name} is refused", [] if refused else best[1]


def examine_qsbr(functions, arch, limits):
    calls = dict(arch, bad=arch["call"])
    for (name, fences), limit in zip(QSBR_NAMES.items(), limits):
        count, wrong, path = walk(functions[name], calls)
        found = sum(bool(arch["fence"].match(text)) for text in path)
        good = not wrong and count <= limit and found == fences
        yield good, f"{name}: {count} instructions, {found} fences" + ("" if good else f": {wrong}, or not {limit} and {fences}"), \
            [] if good else path
    count, wrong, path = walk(functions["planted_qsbr_call"], calls)
    yield bool(wrong), "planted_qsbr_call is refused", [] if wrong else path
    _, _, path = walk(functions["planted_qsbr_two_fences"], calls)
    found = sum(bool(arch["fence"].match(text)) for text in path)
    yield found != 1, "planted_qsbr_two_fences is refused", [] if found != 1 else path


def on_stack(path, arch):
    """True if a path accesses the stack between its first protection and its last."""
    sets = [i for i, text in enumerate(path) if arch["set"].match(text)]
    return any(arch["stack"].search(text) for text in path[sets[0]:sets[-1]])


def frame_of(function, arch):
    """Return the number of instructions of the function that save registers and move the stack pointer, and back."""
    return sum(bool(arch["frame"].match(text)) and not PADDING.match(text) for _, text, *_ in function)


def judged_walk(function, arch, needed, name, limits):
    """Return the result for a walk: (good, text, the path)."""
    best = shortest(function, arch, needed, False)
    if best is None:
        return False, f"{name}: only ways with a call, lock or fence", []
    good, text, _ = judged(name, *limits[:2], *best, arch)
    stack, frame = on_stack(best[1], arch), frame_of(function, arch)
    text += f", {frame} of its frame" + (", on the stack" if stack else "")
    return good and not stack and frame <= limits[2], text, best[1]


def examine_walk(functions, arch, limits):
    for (name, needed), limit in zip(WALK_NEEDS.items(), limits):
        good, text, path = judged_walk(functions["fast_" + name], arch, needed, "fast_" + name, limit)
        yield good, text, [] if good else path
        if "planted_" + name in functions:
            good, text, path = judged_walk(functions["planted_" + name], arch, needed, "planted_" + name, limit)
            yield not good, f"planted_{name} is refused", path if good else []


def examine_counted(functions, arch, limits, operands):
    for (name, counts), limit, most in zip(COUNTED_NEEDS.items(), limits, operands):
        commit = "commit" if "kmem" in name else "count" # a sequence on a sheaf ends with the store of its number of objects
        best = shortest(functions[name], arch, (commit,) * counts, True)
        if best is None:
            yield False, f"{name}: only ways with a call, lock or fence", [text for _, text, *_ in functions[name]]
        else:
            yield judged(name, limit, most, *best, arch)
    for name in ("planted_count_fence", "planted_count_call", "planted_count_long"):
        best = shortest(functions[name], arch, ("count",), True)
        refused = best is None or best[0] > limits[list(COUNTED_NEEDS).index("fast_percpu_ref_get")]
        yield refused, f"{name} is refused", [] if refused else best[1]


def whole(function, arch):
    """Return the number of instructions of the function, and the first one that is a call, a lock or a fence."""
    texts = [text for _, text, *_ in function if not arch["frame"].match(text) and not arch["stop"].match(text)]
    return len(texts), next((text for text in texts if arch["bad"].match(text)), None)


def examine_whole(functions, arch, limits):
    for name, limit in zip(WHOLE_NAMES, limits):
        count, bad = whole(functions[name], arch)
        good = bad is None and count <= limit
        yield good, f"{name}: {count} instructions in all" + ("" if good else f": more than {limit}, or '{bad}'"), \
            [] if good else [text for _, text, *_ in functions[name]]
    for name in ("planted_idr_fence", "planted_idr_call", "planted_idr_long"):
        count, bad = whole(functions[name], arch)
        yield bad is not None or count > limits[0], f"{name} is refused", []


def table(function, arch):
    """(instructions of the shortest way that finds something in the first line, one that calls another function, locks or fences)"""
    counts = [sum(not arch["frame"].match(text) and not arch["stop"].match(text) for text in path)
              for path in ways(function, arch) if not any(LAST_WORD.match(text) for text in path)]
    bad = [text for _, text, _, symbol in function if arch["bad"].match(text) and not TABLE_CALL.search(text + symbol)]
    return min(counts, default=None), bad[0] if bad else None


def examine_tables(functions, arch, limits):
    for name, limit in zip(TABLE_NAMES, limits):
        count, bad = table(functions[name], arch)
        good = bad is None and count is not None and count <= limit
        yield good, f"{name}: {count} instructions" + ("" if good else f": more than {limit}, or '{bad}'"), \
            [] if good else [text for _, text, *_ in functions[name]]
    for name in ("planted_table_fence", "planted_table_call", "planted_table_long"):
        count, bad = table(functions[name], arch)
        yield bad is not None or count is None or count > limits[0], f"{name} is refused", []


def examine_call(functions, arch, limits):
    function = functions["quiesce_call_hazptr"]
    best = shortest(function, arch, (), False)
    if best is None:
        yield False, "call_hazptr: only ways with a call, lock or fence", [text for _, text, *_ in function]
        return
    frame = sum(bool(arch["frame"].match(text)) for text in best[1])
    good = best[0] <= limits[0] and frame <= limits[1]
    yield good, f"call_hazptr: {best[0]} instructions, {frame} more of its frame" + ("" if good else f": more than {limits}"), \
        [] if good else best[1]


def examine_update(functions, arch, needs, limits, call):
    one_lock = dict(arch, bad=re.compile(call + r"|[lms]fence|syscall|int\b"))
    for (name, needed), limit in zip(needs.items(), limits):
        locked = (("fence",) + needed) # the locked instruction
        best = shortest(functions[name], one_lock, locked, bool(needed))
        locks = best and sum(bool(arch["fence"].match(text)) for text in best[1])
        good = bool(best) and best[0] <= limit and locks == 1
        text = f"{name}: {best[0]} instructions, {locks} locked" if best else f"{name}: only ways with a call or fence"
        yield good, text + ("" if good else f": not {limit} and 1"), [] if good else best[1] if best else []


def compile_one(compiler, flags, objdump, source, tmp):
    obj = str(pathlib.Path(tmp) / "fastpath.o")
    subprocess.run([compiler, *BASE, *flags, "-c", source, "-o", obj], check=True)
    return disassemble(objdump, obj)


def examine(compiler, flags, objdump, arch, limits, opt, tmp):
    flags = [*flags, f"-I{opt.include}"]
    functions = compile_one(compiler, flags, objdump, opt.source, tmp)
    if arch is X86:
        intel = compile_one(compiler, [*flags, "-masm=intel"], objdump, opt.source, tmp)
        yield intel == functions, "the same instructions with -masm=intel", []
    for name, limit, most in zip(NAMES, LIMITS[limits], OPERANDS.get(limits, [None] * len(NAMES))):
        count, wrong, path = walk(functions[name], arch)
        if wrong:
            yield False, f"{name}: {count} instructions: {wrong}", path
        else:
            yield judged(name, limit, most, count, path, arch)
    for name in ("planted_fence", "planted_call", "planted_long"):
        count, wrong, path = walk(functions[name], arch)
        refused = wrong or count > LIMITS[limits][0]
        yield bool(refused), f"{name} is refused", [] if refused else path
    yield from examine_shazptr(functions, arch, SHAZPTR_LIMITS[limits], SHAZPTR_OPERANDS.get(limits))
    yield from examine_hazptr(functions, arch, HAZPTR_LIMITS[limits], HAZPTR_OPERANDS.get(limits))
    yield from examine_walk(functions, arch, WALK_LIMITS[limits])
    yield from examine_qsbr(functions, arch, QSBR_LIMITS[limits])
    yield from examine_whole(functions, arch, WHOLE_LIMITS[limits])
    yield from examine_tables(functions, arch, TABLE_LIMITS[limits])
    if COUNTED_LIMITS[limits]:
        yield from examine_counted(functions, arch, COUNTED_LIMITS[limits], COUNTED_OPERANDS[limits])
    if CALL_LIMITS[limits] and "-fPIC" in flags:
        flags += [f"-I{opt.library}", "-D_GNU_SOURCE"]
        functions = compile_one(compiler, flags, objdump, f"{opt.library}/hazptr/hazptr_retire.c", tmp)
        yield from examine_call(functions, arch, CALL_LIMITS[limits])
        functions = compile_one(compiler, [*flags, "-DQUIESCE_UNPINNED"], objdump, f"{opt.library}/table/hashmap.c", tmp)
        yield from examine_update(functions, arch, UPDATE_NEEDS, UPDATE_LIMITS[limits], "call")
        functions = compile_one(compiler, [*flags, "-DQUIESCE_UNPINNED"], objdump, f"{opt.library}/table/hashtable.c", tmp)
        yield from examine_update(functions, arch, TABLE_UPDATE_NEEDS, TABLE_UPDATE_LIMITS[limits], UPDATE_CALL)
        best = shortest(functions["quiesce_hashtable_update"], dict(arch, bad=re.compile(UPDATE_CALL)), ("fence", "count"), True)
        yield best is None, "quiesce_hashtable_update is refused, as it calls", [] if best is None else best[1]


def refuses_instructions_behind_loads(opt):
    """An instruction behind the store that commits would make a sequence count twice: such an assembly fails."""
    command = ["gcc", "-O2", f"-I{opt.include}", "-Wa,-mlfence-after-load=yes", "-c", opt.source, "-o", "/dev/null"]
    run = subprocess.run(command, capture_output=True, text=True)
    return run.returncode and "instructions behind loads" in run.stderr


# Each row of the page has a title, and the numbers among the limits of a build.
PAGE = [(f"`{name}`", table, at) for table, names in (
    (LIMITS, ("rcu_read_lock()", "rcu_read_unlock()")),
    (HAZPTR_LIMITS, ("hazptr_protect()",)),
    (COUNTED_LIMITS, ("percpu_down_read()", "percpu_up_read()", None, "srcu_read_lock()", "srcu_read_unlock()", None, "percpu_ref_get()",
                      "percpu_ref_put()", None, "kmem_cache_alloc()", "kmem_cache_free()"))) for at, name in enumerate(names) if name]
PAGE[3:3] = [("a guard of `shazptr.h`, in a line of the thread's own", SHAZPTR_LIMITS, 0), ("the same by a restartable sequence", SHAZPTR_LIMITS, 3)]
PAGE_BUILDS = (("x86-64, gcc", "x86"), ("x86-64, clang", "x86-clang"), ("arm64, gcc", "arm64"), ("arm64, clang", "arm64-clang"))


def page():
    """Return the table of docs/platforms.md: what this test permits."""
    lines = ["| at most so many instructions | " + " | ".join(title for title, _ in PAGE_BUILDS) + " |", "|---" * (1 + len(PAGE_BUILDS)) + "|"]
    return "\n".join(lines + [f"| {title} | " + " | ".join(str(limits[build][at]) for _, build in PAGE_BUILDS) + " |"
                              for title, limits, at in PAGE])


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--page", help="docs/platforms.md, which has to have the table of page()")
    args.add_argument("--include", required=True)
    args.add_argument("--source", required=True)
    args.add_argument("--library", required=True, help="where the library's sources are")
    opt = args.parse_args()
    number = bad = 0
    machine = subprocess.run(["gcc", "-dumpmachine"], capture_output=True, text=True).stdout
    for compiler, flags, objdump, arch, limits in BUILDS:
        title = " ".join([compiler, *flags])
        missing = next((name for name in (compiler, objdump) if not shutil.which(name)), None)
        if missing or (arch is X86 and "x86_64" not in machine):
            number += 1
            print(f"ok {number} - {title} # SKIP {not_installed(missing) if missing else 'another CPU'}")
            continue
        with tempfile.TemporaryDirectory() as tmp:
            for ok, text, path in examine(compiler, flags, objdump, arch, limits, opt, tmp):
                number += 1
                bad += not ok
                print(f"{'ok' if ok else 'not ok'} {number} - {title}: {text}")
                for line in path:
                    print("#   ", line)
    if "x86_64" in machine:
        number += 1
        good = refuses_instructions_behind_loads(opt)
        bad += not good
        print(f"{'ok' if good else 'not ok'} {number} - sequences are not assembled with instructions behind loads")
    if opt.page:
        number += 1
        good = page() in pathlib.Path(opt.page).read_text(encoding="utf-8")
        bad += not good
        print(f"{'ok' if good else 'not ok'} {number} - the page has the table of these limits")
        if not good:
            print("# " + page().replace("\n", "\n# "))
    print(f"1..{number}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
