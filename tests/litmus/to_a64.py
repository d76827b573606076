# SPDX-License-Identifier: MIT
"""to_a64.py - compile litmus files of our dialect to AArch64, as gcc compiles atomic.h, for Arm's own model to judge.

There are two forms.  LSE has one instruction for a read-modify-write, and LLSC has two,
LDAXR and STLXR; the final condition demands that each STLXR succeeds.  An acquire is
LDAPR in both, the weaker of the two that compilers make.

A light fence is no instruction.  A heavy fence is the kernel's membarrier, spelled out: a full fence,
an interrupt to each other thread, and a full fence.  An interrupt is a full fence of
its thread, between two loads and stores that order it with the caller.  It may come at any
place, so a file becomes one program for each combination of places; in full mode, one program.
To show that an outcome cannot be, it is enough to interrupt the threads that have a light fence."""
import itertools
import math
import re

PROGRAMS = 1000  # A file has at most so many.
OTHER = "99"  # a constant of the sources, which differs from all numbers of the file


class TooMany(ValueError):
    """The interrupts have too many combinations of places."""


class Form:
    def __init__(self, name, acquire, one_step):
        self.name, self.acquire, self.one_step = name, acquire, one_step


LSE = Form("LSE", "LDAPR", True)
LLSC = Form("LLSC", "LDAPR", False)


class Thread:
    """The registers and the code of one thread.  The code is a list of lines, and of None for each place of an interrupt."""

    def __init__(self, number, parameters, body, everywhere):
        self.number, self.code, self.labels = number, [], 0
        self.address, self.wanted = {}, {}
        self.used = {int(n) for n in re.findall(r"\br(\d+)\b", body)}
        for name in parameters:
            self.address[name] = self.register()
        self.scratch = self.register()
        self.interrupted = everywhere or "quiesce_fence_light(" in body

    def register(self):
        free = next(n for n in range(31) if n not in self.used)
        self.used.add(free)
        return free

    def at(self, variable):
        if variable not in self.address:
            self.address[variable] = self.register()
        return "[X%d]" % self.address[variable]

    def label(self):
        self.labels += 1
        return "L%d%d" % (self.number, self.labels)

    def emit(self, *lines):
        self.code += lines


class Compiler:
    def __init__(self, text, form, everywhere):
        self.form, self.heavies = form, 0
        body = text[text.index("\n *)\n") + 5:]
        self.start, self.condition = re.match(r"\{(.*?)\}\n(?:.*\n)*?exists (\(.*\))\s*$", body, re.S).groups()
        parts = re.findall(r"^P(\d+)\(([^)]*)\)\n\{\n(.*?)^\}\n", body, re.M | re.S)
        self.threads = [Thread(int(n), re.findall(r"\*\s*(\w+)", parameters), code, everywhere) for n, parameters, code in parts]
        for thread, part in zip(self.threads, parts):
            tokens = re.findall(r"\s*(if \([^()]*\)|else|[{}]|[^{};]+;)", part[2])
            self.block(thread, [t for t in tokens if not t.startswith("int ")])

    # ---- statements ----

    def block(self, thread, tokens):
        while tokens:
            self.statement(thread, tokens)
            thread.emit(None)

    def group(self, thread, tokens):
        """The statement, or the block, after an if or an else."""
        heavies = self.heavies
        if tokens[0] != "{":
            self.statement(thread, tokens)
        else:
            end = tokens.index("}")
            inner, tokens[:end + 1] = tokens[1:end], []
            self.block(thread, inner)
        if self.heavies != heavies:  # the condition demands that each interrupt takes place
            raise ValueError("a heavy fence in a branch")

    def statement(self, thread, tokens):
        if thread.code[-1:] != [None]:
            thread.emit(None)
        token = tokens.pop(0)
        if token.startswith("if"):
            return self.branch(thread, token, tokens)
        m = re.fullmatch(r"(?:r(\d+) = )?quiesce_(\w+)\((.*)\);", token)
        if m:
            arguments = [a.strip() for a in m[3].split(",")]
            if m[2].endswith("_relaxed") is False and m[2] not in ("fence_light", "fence_heavy", "fence_full"):
                arguments.pop(0)  # the label
            return getattr(self, m[2])(thread, m[1] and "W" + m[1], *arguments)
        m = re.fullmatch(r"r(\d+) = (-?\d+);", token)
        if not m:
            raise ValueError("no statement of the dialect: " + token)
        thread.emit("MOV W%s,#%s" % (m[1], m[2]))

    def branch(self, thread, token, tokens):
        left, relation, right = re.fullmatch(r"if \(r(\d+) (==|!=) (\w+)\)", token).groups()
        other, end = thread.label(), thread.label()
        right = "W" + right[1:] if right.startswith("r") else "#" + right
        thread.emit("CMP W%s,%s" % (left, right), "%s %s" % ("B.NE" if relation == "==" else "B.EQ", other), None)
        self.group(thread, tokens)
        if tokens and tokens[0] == "else":
            tokens.pop(0)
            thread.emit("B " + end, other + ":")
            self.group(thread, tokens)
            thread.emit(end + ":")
        else:
            thread.emit(other + ":")

    # ---- operations of atomic.h ----

    def value(self, thread, text):
        """A register that holds @text."""
        if re.fullmatch(r"r\d+", text):
            return "W" + text[1:]
        scratch = "W%d" % thread.scratch
        m = re.fullmatch(r"r(\d+) \+ (\d+)", text)
        constant = OTHER if text.isupper() else text
        thread.emit("ADD %s,W%s,#%s" % (scratch, m[1], m[2]) if m else "MOV %s,#%s" % (scratch, constant))
        return scratch

    def load_relaxed(self, thread, to, variable):
        thread.emit("LDR %s,%s" % (to, thread.at(variable)))

    def load_acquire(self, thread, to, variable):
        thread.emit("%s %s,%s" % (self.form.acquire, to, thread.at(variable)))

    load_consume = load_acquire

    def store_relaxed(self, thread, _, variable, value):
        thread.emit("STR %s,%s" % (self.value(thread, value), thread.at(variable)))

    def store_release(self, thread, _, variable, value):
        thread.emit("STLR %s,%s" % (self.value(thread, value), thread.at(variable)))

    def try_store(self, thread, order, register, at):
        """Store the scratch register, and demand that the store succeeds; a register that a branch leaves alone is 0."""
        status = thread.register()
        thread.wanted[status] = 0
        thread.emit("ST%sXR W%d,%s,%s" % ("L" if order else "", status, register, at))

    def update(self, thread, to, order, variable, lse, make):
        at, to = thread.at(variable), to or "W%d" % thread.register()
        if self.form.one_step:
            lse(to, at, "AL" if order else "")
        else:
            thread.emit("LD%sXR %s,%s" % ("A" if order else "", to, at))
            make(to, at)
        if order:
            thread.emit("DMB ISH")

    def exchange(self, thread, to, order, variable, value):
        def lse(to, at, suffix):
            thread.emit("SWP%s %s,%s,%s" % (suffix, self.value(thread, value), to, at))

        def make(to, at):
            self.try_store(thread, order, self.value(thread, value), at)

        self.update(thread, to, order, variable, lse, make)

    def add(self, thread, to, order, variable, value):
        scratch = "W%d" % thread.scratch

        def lse(to, at, suffix):
            thread.emit("MOV %s,#%s" % (scratch, value), "LDADD%s %s,%s,%s" % (suffix, scratch, to, at))

        def make(to, at):
            operation = "SUB" if value.startswith("-") else "ADD"
            thread.emit("%s %s,%s,#%s" % (operation, scratch, to, value.lstrip("-")))
            self.try_store(thread, order, scratch, at)

        self.update(thread, to, order, variable, lse, make)

    def compare(self, thread, to, order, variable, old, new):
        def lse(to, at, suffix):
            thread.emit("MOV %s,#%s" % (to, old))
            thread.emit("CAS%s %s,%s,%s" % (suffix, to, self.value(thread, new), at))

        def make(to, at):
            label = thread.label()
            thread.emit("CMP %s,#%s" % (to, old), "B.NE " + label)
            self.try_store(thread, order, self.value(thread, new), at)
            thread.emit(label + ":")

        self.update(thread, to, order, variable, lse, make)

    def xchg(self, thread, to, variable, value):
        self.exchange(thread, to, True, variable, value)

    def xchg_relaxed(self, thread, to, variable, value):
        self.exchange(thread, to, False, variable, value)

    def fetch_add(self, thread, to, variable, value):
        self.add(thread, to, True, variable, value)

    def fetch_add_relaxed(self, thread, to, variable, value):
        self.add(thread, to, False, variable, value)

    def cmpxchg(self, thread, to, variable, old, new):
        self.compare(thread, to, True, variable, old, new)

    def cmpxchg_relaxed(self, thread, to, variable, old, new):
        self.compare(thread, to, False, variable, old, new)

    # ---- fences ----

    def fence_full(self, thread, _, label):
        thread.emit("DMB ISH")

    def fence_light(self, thread, _, label):
        pass

    def fence_heavy(self, thread, _, label):
        self.heavies += 1
        interrupted = [t for t in self.threads if t.interrupted and t is not thread]
        thread.emit("DMB SY")
        for t in interrupted:
            thread.emit("MOV W%d,#1" % thread.scratch, "STR W%d,%s" % (thread.scratch, thread.at(self.flag("ipi", t))))
        for t in interrupted:
            ack = thread.register()
            thread.wanted[ack] = 1
            thread.emit("LDR W%d,%s" % (ack, thread.at(self.flag("ack", t))))
        thread.emit("DMB SY")

    def flag(self, name, thread):
        return "%s%d%d" % (name, self.heavies, thread.number)

    def interrupt(self, thread, heavy):
        """The lines of the interrupt for the heavy fence of that number."""
        register = thread.register()
        thread.wanted[register] = 1
        ipi, ack = ("%s%d%d" % (name, heavy, thread.number) for name in ("ipi", "ack"))
        return ["LDR W%d,%s" % (register, thread.at(ipi)), "DMB SY", "MOV W%d,#1" % thread.scratch,
                "STR W%d,%s" % (thread.scratch, thread.at(ack))]

    # ---- programs ----

    def programs(self):
        """Yield the programs, one for each combination of places of the interrupts, and for each order of those at one place."""
        owners = {int(name[3]): t for t in self.threads for name in t.address if re.fullmatch(r"ipi\d\d", name)}
        pairs = [(t, h) for h in owners for t in self.threads if t.interrupted and t is not owners[h]]
        handlers = [(t, self.interrupt(t, h)) for t, h in pairs]
        choices = [[i for i, line in enumerate(t.code) if line is None] for t, _ in pairs]
        if math.prod(map(len, choices)) * math.factorial(len(pairs)) > PROGRAMS:
            raise TooMany
        programs = {}
        for places in itertools.product(*choices):
            interrupts = [(t, place, lines) for (t, lines), place in zip(handlers, places)]
            programs.update(dict.fromkeys(map(self.render, itertools.permutations(interrupts))))
        yield from ("AArch64 T%d\n%s" % (number, program) for number, program in enumerate(programs))

    def render(self, interrupts):
        columns = []
        for thread in self.threads:
            lines = []
            for i, line in enumerate(thread.code):
                lines += [line] if line is not None else []
                lines += [l for t, place, handler in interrupts if t is thread and place == i for l in handler]
            columns.append(lines)
        flags = sorted({name for t in self.threads for name in t.address if re.fullmatch(r"(ipi|ack)\d\d", name)})
        out = ["{" + self.start + " ".join("%s=0;" % f for f in flags)]
        out += [" ".join("%d:X%d=%s;" % (t.number, n, name) for name, n in t.address.items()) for t in self.threads]
        out += ["}", " " + " | ".join("P%d" % t.number for t in self.threads) + " ;"]
        for row in range(max(map(len, columns))):
            out.append(" " + " | ".join(c[row] if row < len(c) else "" for c in columns) + " ;")
        wanted = ["%d:X%d=%d" % (t.number, r, v) for t in self.threads for r, v in t.wanted.items()]
        condition = re.sub(r"\b(\d+):r(\d+)=", r"\1:X\2=", self.condition)
        return "\n".join(out) + "\nexists (" + " /\\ ".join(["(" + condition + ")"] + wanted) + ")\n"


def programs(text, form, everywhere=False):
    """The programs of a file; @everywhere: all other threads are interrupted, even those without a light fence."""
    return list(Compiler(text, form, everywhere).programs())
