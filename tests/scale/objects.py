#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The code that runs on the modelled machine has no accesses of memory that the machine does not see.

    objects.py OBJDUMP ARCHIVE [WRAPPED...]

An instruction that moves or compares a block (rep stos, rep movs, ...) is such an access, unless the hook for ranges is called just before;
and so is a call of a function of strings, or of the heap, that the linker does not replace: WRAPPED lists those that it does.  A store of 16 bytes or
more in a function without the call of a hook for writes is one, too; whether each store has its own hook objdump does not say.
"""
import re
import subprocess
import sys

BLOCKS = re.compile(r"\brep[nz]*\s+\w*(?:stos|movs|cmps|scas)|\b(?:stos|movs|cmps|scas)[bwlq]\s+.*%es:")
STORE = re.compile(r"\bv?mov(?:[au]p[sd]|dq[au]\d*|nt\w+)\s+%[xyz]mm\d+,(?!.*%r[sb]p)")
RANGE = re.compile("__tsan_(?:read|write)_range")
NEAR = 24 # lines between that hook and a block
HARMLESS = {"strerror"}
WRITES = re.compile(r"__tsan_(?:unaligned_)?write|__tsan_atomic")
STRINGS = re.compile(r"R_X86_64_(?:PLT32|PC32|GOTPCRELX?|REX_GOTPCRELX)\s+((?:__)?(?:mem(?:p?cpy|ccpy|move|set|r?chr|cmp|mem)|str[a-z]+|stpn?cpy|b(?:cmp|copy|zero)|[mc]alloc|realloc(?:array)?|free|aligned_alloc|posix_memalign)(?:_chk)?)\b")


def problems(text, wrapped):
    member = function = ""
    stores, hooks, since_range, found = 0, False, NEAR, []

    def end():
        if stores and not hooks:
            found.append(f"{member}: {function} has {stores} stores of 16 bytes or more, and no hook for writes")

    for line in text.splitlines():
        since_range = 0 if RANGE.search(line) else since_range + 1
        if match := re.match(r"(\S+):\s+file format", line):
            end()
            member, function, stores, hooks = match.group(1), "", 0, False
        elif match := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            end()
            function, stores, hooks = match.group(1), 0, False
        elif BLOCKS.search(line):
            if since_range >= NEAR:
                found.append(f"{member}: {function}: {line.split(':', 1)[1].strip()}")
        elif (match := STRINGS.search(line)) and match.group(1) not in wrapped | HARMLESS:
            found.append(f"{member}: {function} calls {match.group(1)}(), which is not wrapped")
        else:
            stores += bool(STORE.search(line))
            hooks |= bool(WRITES.search(line))
    end()
    return found


def main():
    objdump, archive, *wrapped = sys.argv[1:]
    text = subprocess.run([objdump, "-dr", "--no-show-raw-insn", archive], capture_output=True, text=True, check=True).stdout
    functions = len(re.findall(r"^[0-9a-f]+ <", text, re.M))
    bad = problems(text, set(wrapped))
    print("\n".join(bad + [f"objects: {functions} functions, {len(bad)} problems"]))
    return 1 if bad or not functions else 0


if __name__ == "__main__":
    sys.exit(main())
