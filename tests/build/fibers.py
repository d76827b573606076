#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Functions that go on in another thread keep nothing of the thread that they came from.

No language knows that switch_() may return in another thread, so compilers keep addresses of thread-local variables over it. The
headers' inline code must prevent that.

1. fibers.c, which has each inlined call several times in one function, is compiled, and every path through each function is followed:
a value that comes from the thread pointer, or was loaded through it, is not used after a call of switch_(), and an address that comes
from it is not stored outside of the stack, where coroutines keep values that live over a co_await.
2. With QUIESCE_FIBERS a program for a CPU that has no file in quiesce/arch/ does not name the variable; nor does a shared object for a
C library that provides no room for it.
3. unit/test_fibers.c and coroutines.cpp are linked and run.

Prints TAP. Compilers that are not installed are reported as skipped.
"""
import argparse
import heapq
import os
import pathlib
import re
import shutil
import sys
import tempfile

from tap import Tap, execute

HERE = pathlib.Path(__file__).resolve().parent
# A canary of the stack protector is loaded through the thread pointer, and is the same in all threads.
BASE = ["-g0", "-Wall", "-Wextra", "-Werror", "-fno-stack-protector", "-fcf-protection=none", "-fno-asynchronous-unwind-tables"]
C, CXX, CXX20 = ["-x", "c", "-std=gnu11"], ["-x", "c++", "-std=c++17"], ["-x", "c++", "-std=c++20"]
ARM = ["--target=aarch64-linux-gnu"]
DIRECT = ["-DQUIESCE_FIBERS", "-mno-tls-direct-seg-refs"]
# Each build has a compiler, a language and flags.  Levels between, and code that is smaller or for a debugger, are for the long run.
STATIC = [
    *(("gcc", C, flags) for flags in (["-O0"], ["-O2"], ["-O3", "-fPIC"], ["-O2", *DIRECT],
                                      ["-O2", "-fsanitize=address,undefined"], ["-O2", "-fsanitize=thread"], ["-O2", "-flto"])),
    *(("g++", CXX, flags) for flags in (["-O2"], ["-O2", *DIRECT])),
    *(("clang-19", C, flags) for flags in (["-O2"], ["-O3", "-fPIC"], ["-O2", "-mno-tls-direct-seg-refs"], ["-O2", "-fsanitize=address"])),
    ("clang++-19", CXX, ["-O2"]),
    *(("aarch64-linux-gnu-gcc", C, flags) for flags in (["-O0"], ["-O2"], ["-O3", "-fPIC"])),
    ("clang-19", C, [*ARM, "-O2"]),
]
if os.environ.get("CI_LONG"):
    STATIC += [*(("gcc", C, flags) for flags in (["-O1"], ["-Os"], ["-Og"])), *(("clang-19", C, flags) for flags in (["-O1"], ["-Os"])),
               *(("aarch64-linux-gnu-gcc", C, flags) for flags in (["-O1"], ["-Os"]))]
COROUTINES = [("g++", CXX20, ["-O2"]), ("clang++-19", CXX20, ["-O2"]), ("aarch64-linux-gnu-g++", CXX20, ["-O2"]),
              ("clang++-19", CXX20, [*ARM, "-O2"])]
RUN = [("test_fibers.c", "gcc", C, ["-O2"]), ("test_fibers.c", "gcc", C, ["-O2", "-flto"]), ("test_fibers.c", "gcc", C, ["-O2", *DIRECT]),
       ("test_fibers.c", "clang-19", C, ["-O2"]), ("test_fibers.c", "clang-19", C, ["-O3", "-fPIE", "-pie"]),
       ("coroutines.cpp", "g++", CXX20, ["-O0"]), ("coroutines.cpp", "g++", CXX20, ["-O2"]),
       ("coroutines.cpp", "clang++-19", CXX20, ["-O0"]), ("coroutines.cpp", "clang++-19", CXX20, ["-O2"])]

# Kinds of values in a register or word.  ADDRESS: in the thread's block; VALUE: loaded from there; OLD: from before a switch.
ADDRESS, VALUE, OLD = 1, 2, 4

NO_RETURN = re.compile(r"__asan_report|_abort|terminate|__stack_chk_fail|__throw")


class X86:
    STOP, JUMP, BRANCH = re.compile(r"ret|ud2|hlt"), re.compile(r"jmp"), re.compile(r"j[a-z]+")
    CALL = re.compile(r"call")
    LOST = {f"r{n}" for n in ("ax", "cx", "dx", "si", "di", "8", "9", "10", "11")} # by a call
    NAMES = {alias: "r" + name for name in ("ax", "bx", "cx", "dx") for alias in ("r" + name, "e" + name, name, name[0] + "l")}
    NAMES |= {alias: "r" + name for name in ("si", "di", "bp", "sp") for alias in ("r" + name, "e" + name, name, name + "l")}
    NAMES |= {f"r{n}{suffix}": f"r{n}" for n in range(8, 16) for suffix in ("", "d", "w", "b")}

    def __init__(self, function):
        self.frame = "rsp|rbp" if any(re.match(r"mov\s+%rsp,%rbp", i.text) for i in function) else "rsp"

    def place(self, operand):
        """Return the register, or word of the stack, whose state is tracked; None for an immediate, or memory."""
        if operand.startswith("%") and ":" not in operand:
            return self.NAMES.get(operand[1:])
        return operand if re.fullmatch(rf"(-?0x[0-9a-f]+)?\(%({self.frame})\)", operand) else None

    def step(self, text, state, used):
        name, rest = (text.split(None, 1) + [""])[:2]
        while name in ("lock", "cs", "data16", "rep", "notrack", "bnd"):
            name, rest = (rest.split(None, 1) + [""])[:2]
        operands = re.split(r",(?![^(]*\))", rest) if rest else []
        if not operands or name.startswith(("nop", "push", "leave")):
            return
        loaded, addresses = 0, []
        for operand in operands:
            through = [state.get(self.NAMES.get(r), 0) for r in re.findall(r"%(\w+)", operand)] if "(" in operand else []
            addresses.extend(through)
            if "%fs:" in operand or any(t & (ADDRESS | VALUE) for t in through):
                loaded = VALUE
            if not name.startswith("lea"):
                used.extend(through)
        last = operands[-1]
        target = self.place(last)
        sources = [state.get(self.place(operand), 0) for operand in operands[:-1]]
        if operands[0] == "%fs:0x0" and target:
            state[target] = ADDRESS
        elif name.startswith(("cmp", "test", "bt", "j", "call")):
            used.extend(state.get(self.place(operand), 0) for operand in operands)
        elif name.startswith("lea"):
            state[target] = joined(addresses)
            used.append(state[target])
        elif target:
            if re.match(r"xor\w?\s+(%\w+),\1$", text):
                sources = []
            elif not name.startswith(("mov", "set", "pop")): # two operands
                sources.append(state.get(target, 0))
                used.extend(sources)
            # A word of the stack has the value stored there, not one loaded through an address.
            plain = self.place(operands[0]) if operands[:-1] else None
            state[target] = joined([*sources, 0 if plain else loaded])
        else:
            used.extend(t | OLD for t in sources if t & ADDRESS and "%fs:" not in last) # an address goes to memory
            used.extend(t for t in sources if t & OLD)


class Arm64:
    STOP, JUMP, BRANCH = re.compile(r"ret|udf|brk"), re.compile(r"b$"), re.compile(r"b\.|cbn?z|tbn?z")
    CALL = re.compile(r"blr?$")
    LOST = {f"x{n}" for n in range(19)}

    def __init__(self, function):
        self.frame = ("sp", "x29") if any(re.match(r"(mov|add)\s+x29, sp", i.text) for i in function) else ("sp",)

    @staticmethod
    def register(text):
        found = re.fullmatch(r"[xw](\d+)|(sp)", text.strip())
        return None if not found else found.group(2) or "x" + found.group(1)

    def step(self, text, state, used):
        name, rest = (text.split(None, 1) + [""])[:2]
        operands = [o.strip() for o in re.split(r",(?![^\[]*\])", rest)]
        memory = next((o for o in operands if o.startswith("[")), None)
        slot, loaded = None, 0
        if memory:
            inside = [self.register(r) for r in re.findall(r"\b(?:[xw]\d+|sp)\b", memory)]
            through = [state.get(r, 0) for r in inside]
            used.extend(through)
            loaded = VALUE if any(t & (ADDRESS | VALUE) for t in through) else 0
            if len(inside) == 1 and inside[0] in self.frame:
                at = re.search(r"#(-?\d+)", memory)
                slot = (inside[0], int(at.group(1)) if at else 0)
        values = [self.register(o) for o in operands if not o.startswith(("[", "#"))]
        if name == "mrs" and "tpidr_el0" in rest:
            state[values[0]] = ADDRESS
        elif memory and name.startswith(("ld", "prfm")):
            for i, target in enumerate(v for v in values if v):
                state[target] = state.get((slot[0], slot[1] + 8 * i), 0) if slot else loaded
        elif memory:
            for i, source in enumerate(values):
                if slot:
                    state[slot[0], slot[1] + 8 * i] = state.get(source, 0)
                elif state.get(source, 0) & (ADDRESS | OLD):
                    used.append(OLD)
        elif name in ("cmp", "cmn", "tst", "ccmp", "cbz", "cbnz", "tbz", "tbnz", "br"):
            used.extend(state.get(v, 0) for v in values)
        elif values and values[0] and not name.startswith(("b.", "nop", "dmb", "hint", "bti")):
            state[values[0]] = joined(state.get(v, 0) for v in values[1:])
            if not name.startswith("mov"):
                used.append(state[values[0]])


class Instruction:
    def __init__(self, address, text, target):
        self.address, self.text, self.target, self.symbol = address, text, target, ""


def joined(values):
    result = 0
    for value in values:
        result |= value
    return result


def disassemble(objdump, path):
    """{function: [Instruction]}"""
    functions, current = {}, []
    for line in execute([objdump, "-dr", "--no-show-raw-insn", path]).stdout.split("\n"):
        head = re.match(r"[0-9a-f]+ <([\w.$]+)>:", line)
        code = re.match(r"\s+([0-9a-f]+):\t(?!\s*R_)(.*)", line)
        if head:
            current = functions.setdefault(head.group(1), [])
        elif code:
            target = re.search(r"\s([0-9a-f]+) <([\w.$]+)", code.group(2))
            text = re.sub(r"\s*(#(?!\w|-)|//).*|\s<.*", "", code.group(2)).strip()
            current.append(Instruction(int(code.group(1), 16), text, target and int(target.group(1), 16)))
            current[-1].symbol = target.group(2) if target else ""
        elif "R_" in line and current:
            current[-1].symbol, current[-1].target = line.split()[-1], None # what is printed as its target is none yet
    return {name: function for name, function in functions.items() if function}


def kept(function, Cpu):
    """Return the instructions that use a value of a thread that the function may have left."""
    cpu, index = Cpu(function), {i.address: n for n, i in enumerate(function)}
    states, todo, bad = {0: {}}, [0], set()
    while todo:
        n = heapq.heappop(todo) # the lowest address first: most branches that join are then seen before the instructions after them
        instruction, state, used = function[n], dict(states[n]), []
        name = instruction.text.split()[0]
        cpu.step(instruction.text, state, used)
        if any(u & OLD for u in used):
            bad.add(n)
        if cpu.CALL.match(name):
            away = "switch_" in instruction.symbol
            state = {place: what | (OLD if away and what else 0) for place, what in state.items() if place not in cpu.LOST}
        after = [index[instruction.target]] if instruction.target in index and (cpu.JUMP.match(name) or cpu.BRANCH.match(name)) else []
        if not cpu.STOP.match(name) and not cpu.JUMP.match(name) and not NO_RETURN.search(instruction.symbol):
            after.append(n + 1)
        for m in after:
            if m < len(function):
                known = states.get(m)
                merged = {p: what | (known or {}).get(p, 0) for p, what in {**(known or {}), **state}.items() if what or (known or {}).get(p)}
                if known is None or merged != known:
                    states[m] = merged
                    if m not in todo:
                        heapq.heappush(todo, m)
    return [function[n].text for n in sorted(bad)]


def compiled(opt, job, source, more, tmp):
    """Return the path, and the compiler's messages."""
    compiler, language, flags = job
    path = pathlib.Path(tmp) / "fibers.o"
    optional = [f for f in BASE if "cf-protection" not in f or not is_arm(job)]
    command = [compiler, *language, *optional, *flags, *more, f"-I{opt.include}", "-c", source, "-o", path]
    run = execute(command)
    if not run.returncode and "-flto" in flags:
        linked = path.with_suffix(".linked.o")
        run = execute([compiler, *flags, "-r", "-nostdlib", "-flinker-output=nolto-rel", path, "-o", linked])
        path = linked
    return (None, run.stderr) if run.returncode else (path, run.stderr)


def is_arm(job):
    return "aarch64" in job[0] or ARM[0] in job[2]


def title_of(job, *more):
    return " ".join([job[0], job[1][-1], *job[2], *more])


def has_headers(job):
    """C and C++ libraries of another CPU may not be installed."""
    run = execute([job[0], *job[1], *job[2], "-fsyntax-only", "-include", "coroutine" if job[1] is CXX20 else "stdlib.h", "-"], input="")
    return run.returncode == 0


def installed(job):
    return shutil.which(job[0]) and (not is_arm(job) or shutil.which("aarch64-linux-gnu-objdump") and has_headers(job))


def examine(tap, opt, job, source, more, planted):
    title = title_of(job, source.name, *more[:1])
    if not installed(job):
        tap.skip(title, "not installed here")
        return
    with tempfile.TemporaryDirectory() as tmp:
        path, said = compiled(opt, job, source, more, tmp)
        if not path:
            tap.result(False, title, said)
            return
        functions = disassemble("aarch64-linux-gnu-objdump" if is_arm(job) else "objdump", path)
    found = {name: lines for name, f in functions.items() if (lines := kept(f, Arm64 if is_arm(job) else X86))}
    bad = {name: lines for name, lines in found.items() if not name.startswith("planted_") and "migrate_enter" not in name}
    tap.result(functions and not bad, f"{title}: {len(functions)} functions keep nothing",
               "\n".join(f"{name}: {lines[:4]}" for name, lines in bad.items()))
    if planted:
        missed = [name for name in functions if name.startswith("planted_") and name not in found]
        tap.result(not missed and len(found) >= 4, f"{title}: what was planted is found", missed)


def way(command):
    """Return whether inlined calls name the thread-local variable, and whether they call the library for it."""
    run = execute([*command, "-S", HERE / "fibers.c", "-DSELF=0", "-o", "-"])
    text = re.sub(r"^planted_\w+:.*?^\s*(\.Lfunc_end|\.size\s+planted_)", "", run.stdout, flags=re.M | re.S)
    return bool(re.search(r"[\s@(,:]quiesce_tls_v1", text)), "quiesce__own_call" in text


def elsewhere(tap, opt):
    """Check CPUs that use the generic path."""
    for cpu in ("powerpc64le", "loongarch64"):
        title = f"clang-19 {cpu}: with QUIESCE_FIBERS by a call"
        if not shutil.which("clang-19"):
            tap.skip(title, "not installed here")
            continue
        names = []
        for more in ([], ["-DQUIESCE_FIBERS"]):
            names.append(way(["clang-19", f"--target={cpu}-linux-gnu", "-ffreestanding", "-nostdlibinc", *C, "-O2", *more, f"-I{opt.include}"]))
        tap.result(names == [(True, False), (False, True)], title, names)


def shared_objects(tap, opt):
    """Check the code of programs and of shared objects for C libraries that load no object with initial-exec variables."""
    for compiler in ("gcc", "clang-19", "aarch64-linux-gnu-gcc"):
        title = f"{compiler}: with QUIESCE_TLS_DYNAMIC a shared object calls, and a program does not"
        if not shutil.which(compiler):
            tap.skip(title, "not installed here")
            continue
        names = [way([compiler, *C, "-O2", *more, f"-I{opt.include}"]) for more in
                 (["-fPIC", "-DQUIESCE_TLS_DYNAMIC=1"], ["-fPIE", "-DQUIESCE_TLS_DYNAMIC=1"], ["-fPIC", "-DQUIESCE_TLS_DYNAMIC=0"])]
        tap.result(names == [(False, True), (True, False), (True, False)], title, names)


def run_all(tap, opt):
    for name, *job in RUN:
        title = title_of(job, name)
        if not shutil.which(job[0]):
            tap.skip(title, "not installed here")
            continue
        source = HERE.parent / "unit" / name if name.endswith(".c") else HERE / name
        with tempfile.TemporaryDirectory() as tmp:
            program = pathlib.Path(tmp) / "program"
            run = execute([job[0], *job[1], *job[2], f"-I{opt.include}", source, "-x", "none", opt.static, "-lpthread", "-o", program])
            if run.returncode:
                tap.result(False, title, run.stderr)
            else:
                tap.run(title, [program, "0"] if name.endswith(".c") else [program])


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--include", type=pathlib.Path, required=True)
    args.add_argument("--static", help="the library: link with it, and run")
    opt = args.parse_args()
    tap = Tap()
    if opt.static:
        run_all(tap, opt)
        return tap.finish()
    face = ["-DFACE", f"-I{opt.include.parent / 'liburcu/include'}"]
    for job in STATIC:
        # A load by ThreadSanitizer is the result of a call.
        examine(tap, opt, job, HERE / "fibers.c", [], "-fsanitize=thread" not in job[2])
        if job[2] in (["-O2"], ["-O2", *DIRECT], [*ARM, "-O2"]):
            examine(tap, opt, job, HERE / "fibers.c", face, False)
    for job in COROUTINES:
        examine(tap, opt, job, HERE / "coroutines.cpp", [], False)
    elsewhere(tap, opt)
    shared_objects(tap, opt)
    outline = (opt.include.parent / "src/outline.c").read_text()
    missing = [name for name in sorted(set(re.findall(r"^\w.*\bquiesce_([a-z]\w+)\(", outline, re.M)))
               if f"CALL({name}," not in (HERE / "fibers.c").read_text()]
    tap.result(not missing, "fibers.c has every call that src/outline.c writes out", missing)
    named = [path.name for where in (opt.include, opt.include.parent / "liburcu/include") for path in where.rglob("*.h*")
             if path.name != "tls.h" and "quiesce__self()" in path.read_text()]
    tap.result(not named, "headers have quiesce__own(), not quiesce__self()", named)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
