# SPDX-License-Identifier: MIT
"""mutation.py - small changes of the library's sources, each of which a test should notice.

Three kinds, inside functions and function-like macros:
  delete   a statement: a call, an assignment, a jump; no declaration, and no return of a value
  negate   the condition of an if, a while or a for
  bound    < and <=, > and >=; or "+ 1" and "- 1", which go

A mutation leaves all lines where they are, so that coverage and messages stay true.  It is named by file, function, kind and the
code it changes, not by a line number, so that a list of them outlives other changes of the file.
"""
import fnmatch
import hashlib
import pathlib
import re

import csource

# Left out: the other platform, code that only switches mutants, and code for other CPUs than that of this machine.
LEFT_OUT = ("src/platform/sim/", "src/platform/mutants.", "src/platform/perturb.", "src/platform/owned.h", "include/quiesce/arch/arm64.h",
            "include/quiesce/arch/generic.h")
SUFFIXES = (".c", ".h", ".hpp")
_KEYWORD = re.compile(r"(if|else|for|while|do|switch|case|default|return\b.*\w|typedef|static_assert|_Static_assert|extern|using|template)\b")
_LABEL = re.compile(r"(case\b[^:?]*|default|\w+)\s*:(?!:)")
_DECLARATION = re.compile(r"(?!else\b|return\b|goto\b|delete\b|throw\b|co_)[A-Za-z_][\w:]*(<[^;]*>)?(\s+[A-Za-z_]\w*)*(\s*[*&]+\s*|\s+)"
                          r"(const\s+)?[A-Za-z_]\w*\s*(\[[^]]*\]\s*)*(=|;|,|\(|\{|__attribute__)")
_TYPE = re.compile(r"(const|static|struct|union|enum|unsigned|signed|volatile|register|auto|thread_local|__thread)\b")
_CONDITION = re.compile(r"\b(if|while)(?: constexpr)?\s*\(")
_BOUNDS = ((" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" + 1", ""), (" - 1", ""))
_FOR = re.compile(r"\bfor\s*\(")
NAMED = "QUIESCE_MUTANT("


class Mutation:
    """One change: lines first..last of a file, numbered from 0, become @after."""

    def __init__(self, name, function, kind, first, before, after, mark):
        self.file, self.function, self.kind, self.first = name, function, kind, first
        self.before, self.after = before, after
        self.code = " ".join(" ".join(before).replace("\\", " ").split())
        self.mark = mark  # distinguishes mutations of one kind in one line
        self.in_macro = False # compilers report no line inside of it

    def __str__(self):
        return f"{self.file}:{self.first + 1} in {self.function}(): {self.kind}"

    def diff(self):
        changed = [(a, b) for a, b in zip(self.before, self.after) if a != b]
        return "\n".join([f"-{a}" for a, _ in changed] + [f"+{b}" for _, b in changed])

    def rank(self, seed):
        """Return its place in the random order of @seed, which does not depend on the rest of the sources."""
        text = "\t".join((str(seed), self.file, self.function, self.kind, self.code, self.mark))
        return hashlib.sha256(text.encode()).digest()

    def apply(self, root):
        path = pathlib.Path(root) / self.file
        lines = path.read_text(encoding="utf-8").split("\n")
        assert lines[self.first:self.first + len(self.before)] == self.before, self
        lines[self.first:self.first + len(self.before)] = self.after
        path.write_text("\n".join(lines), encoding="utf-8")


class _File:
    """The lines of a file as written and without comments, both of which change together."""

    def __init__(self, root, name):
        self.name = name
        self.text, self.code = csource.read(root, name)

    def end_of(self, line, column, opening="(", closing=")"):
        """Return the position (line, column) of the closing bracket, or None."""
        depth = 0
        for i in range(line, min(line + 12, len(self.code))):
            for j in range(column if i == line else 0, len(self.code[i])):
                depth += (self.code[i][j] == opening) - (self.code[i][j] == closing)
                if not depth:
                    return i, j
        return None

    def statement_end(self, line):
        """Return the last line of the simple statement that begins in @line, or None."""
        depth = 0
        for i in range(line, min(line + 12, len(self.code))):
            code = self.code[i].rstrip("\\ \t")
            depth += sum(code.count(c) for c in "([{") - sum(code.count(c) for c in ")]}")
            if depth < 0 or code.rstrip().endswith(("{", "}")) and not depth:
                return None
            if depth == 0 and code.endswith(";"):
                return i
        return None

    def replaced(self, first, last, edits):
        """Copies of the lines with [(line, column, length, new)] done from the right."""
        after = self.text[first:last + 1]
        for line, column, length, new in sorted(edits, reverse=True):
            old = after[line - first]
            after[line - first] = old[:column] + new + old[column + length:]
        return self.text[first:last + 1], after


def _begins_statement(file, line):
    before = line - 1
    while before >= 0 and not file.code[before].strip("\\ \t"):
        before -= 1
    ends = file.code[before].strip("\\ \t") if before >= 0 else ""
    return ends.endswith((";", "{", "}", ")", ":")) or ends == "else" or ends.endswith(" else") or ends == "do"


def _guarded(file, line):
    """True if the statement that begins in @line is executed only with a planted bug."""
    before = line - 1
    while before >= 0 and not file.code[before].strip():
        before -= 1
    code = file.code[before]
    return NAMED in code and "!" + NAMED not in code and code.strip().startswith(("if", "else if"))


def _may_go(file, line):
    """True if a statement begins here that the program compiles without."""
    code = file.code[line].strip("\\ \t")
    label = _LABEL.match(code)
    return _begins_statement(file, line) and file.code[line][:1].isspace() and not (label and not code[label.end():].strip()) \
        and not any(pattern.match(code) for pattern in (_KEYWORD, _TYPE, _DECLARATION)) \
        and code not in ("", ";") and NAMED not in code and not _guarded(file, line) and not code.startswith(("#", "}", "(void)"))


def _deletions(file, function, first, last):
    for line in range(first + 1, last + 1):
        end = file.statement_end(line)
        if end is None or end > last or not _may_go(file, line):
            continue
        after = []
        for i in range(line, end + 1):
            text = file.text[i]
            tail = "\\" if text.rstrip().endswith("\\") else ""
            indent = text[:len(text) - len(text.lstrip())]
            after.append((indent + ";" if i == line else "") + tail)
        yield Mutation(file.name, function, "delete", line, file.text[line:end + 1], after, "")


def _negations(file, function, first, last):
    for line in range(first, last + 1):
        for number, match in enumerate(_CONDITION.finditer(file.code[line])):
            opening = match.end() - 1
            end = file.end_of(line, opening)
            if not end or end[0] > last:
                continue
            inside = " ".join(file.code[line:end[0] + 1])[opening:]
            if NAMED in inside and "&&" not in inside and "||" not in inside:
                continue
            before, after = file.replaced(line, end[0], [(line, opening + 1, 0, "!("), (end[0], end[1], 0, ")")])
            yield Mutation(file.name, function, "negate", line, before, after, str(number))
        for match in _FOR.finditer(file.code[line]):
            yield from _for_negated(file, function, line, match.end())


def _for_negated(file, function, line, column):
    code = file.code[line]
    first = code.find(";", column)
    second = code.find(";", first + 1)
    if first < 0 or second < 0 or not code[first + 1:second].strip():
        return
    before, after = file.replaced(line, line, [(line, first + 2, 0, "!("), (line, second, 0, ")")])
    yield Mutation(file.name, function, "negate", line, before, after, "for")


def _bounds(file, function, first, last):
    for line in range(first, last + 1):
        code = file.code[line]
        if code.lstrip().startswith("#") or "template" in code or "operator" in code:
            continue
        for old, new in _BOUNDS:
            for match in re.finditer(re.escape(old) + r"(?![\w.])" if not new else re.escape(old), code):
                before, after = file.replaced(line, line, [(line, match.start(), len(old), new)])
                yield Mutation(file.name, function, "bound", line, before, after, f"{old}@{match.start()}")


def mutations(root, only=""):
    """Yield every mutation of the library, in the order of the sources."""
    for name in csource.c_files(str(root), "src/", "include/"):
        if name.startswith(LEFT_OUT) or not name.endswith(SUFFIXES) or only not in name:
            continue
        file = _File(root, name)
        for function, first, last in csource.functions(file.code):
            for find in (_deletions, _negations, _bounds):
                for m in find(file, function, first, last):
                    m.in_macro = file.code[first].startswith("#")
                    yield m


def draw(root, seed, only=""):
    """All mutations in the order of that seed.  A change of the sources does not move the mutations of other code."""
    return sorted(mutations(root, only), key=lambda m: m.rank(seed))


# ---- known survivors ----

REASONS = ("equivalent", "policy", "text", "sanitizer")


class Known:
    """A line of tests/survivors.list: patterns of file, function, kind and code; the verdict, and its reason."""

    def __init__(self, number, fields):
        self.number = number
        self.patterns, self.what, self.why = fields[:4], fields[4], fields[5]

    def matches(self, m):
        return all(fnmatch.fnmatchcase(value, pattern.replace("[", "[[]"))
                   for value, pattern in zip((m.file, m.function, m.kind, m.code), self.patterns))


def read_known(path):
    found = []
    for number, line in enumerate(pathlib.Path(path).read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 6 or fields[4] not in REASONS:
            raise ValueError(f"{path}:{number}: want file, function, kind, code, {'|'.join(REASONS)} and the argument, by tabs")
        found.append(Known(number, fields))
    return found


def again(root, path):
    """The survivors that a file lists, in that form or without the last two fields."""
    lines = [line.split("\t")[:4] for line in pathlib.Path(path).read_text(encoding="utf-8").split("\n")]
    wanted = [Known(i, [*fields, "", ""]) for i, fields in enumerate(lines) if len(fields) == 4 and not fields[0].startswith("#")]
    return [m for m in mutations(root) if any(k.matches(m) for k in wanted)]
