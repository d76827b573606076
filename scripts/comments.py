# SPDX-License-Identifier: MIT
"""comments.py - the prose of a source file: its comments, and the paragraphs of its documentation.

A Comment is what a reader takes in at once: a block comment, a run of // or # lines, a docstring, or a paragraph of Markdown.
Its text has no comment marks, keeps its line breaks, and has a blank where quoted text or code was, since both quote what is
printed or written elsewhere.
"""
import ast
import bisect
import io
import pathlib
import re
import tokenize

C_LIKE = (".c", ".h", ".hpp", ".cpp", ".cc", ".S", ".pml", ".go", ".rs", ".in")
HASH_LIKE = (".sh", ".build", ".list", ".toml", ".ini", "Makefile", "Kbuild", ".ci/run", "_options.txt", "quiesce-prefix-headers")
QUOTE = " \ufffc "  # what stands for quoted text: no letter, but no blank either
_C_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
_LITMUS = re.compile(r"\(\*(?!\w).*?\*\)", re.S)
# Quoted text, and lines of litmus files that name code, are no prose.
_QUOTED = re.compile(r'"[^"]*"|``[^`]*``|`[^`]*`|^\s*(?:Source|Weakened|Guard|Rmw):[^\n]*', re.S | re.M)


class Comment:
    def __init__(self, name, line, text, kind):
        self.name, self.line, self.kind = name, line, kind  # kind: block, trailing, docstring, paragraph
        self.raw = text
        self.text = _QUOTED.sub(lambda m: QUOTE + "\n" * m.group().count("\n"), text)

    def at(self, offset):
        return f"{self.name}:{self.line + self.text.count(chr(10), 0, offset)}"


def _marks(text):
    """Return a C comment without its marks."""
    if text.startswith("//"):
        return text.lstrip("/")
    return re.sub(r"(?m)^\s*\*(?!/)", "", re.sub(r"^/\*+|\*+/$|^\(\*|\*\)$", "", text))


def _merge(pieces):
    """Runs of one-line comments become one: (line, column, text, trailing), in order."""
    merged = []
    for line, column, text, trailing in pieces:
        last = merged[-1] if merged else None
        if last and not trailing and not last[3] and last[1] == column and last[0] + last[2].count("\n") + 1 == line:
            last[2] += "\n" + text
        else:
            merged.append([line, column, text, trailing])
    return merged


def _of_c(name, text):
    starts = [0] + [m.end() for m in re.finditer("\n", text)]
    slashes = []
    for match in _C_TOKEN.finditer(text):
        token = match.group()
        row = bisect.bisect_right(starts, match.start())
        before = text[starts[row - 1]:match.start()]
        if token.startswith("//"):
            slashes.append((row, len(before), _marks(token), bool(before.strip())))
        elif token.startswith("/*"):
            after = text[match.end():].split("\n", 1)[0].strip(" \t\\")
            yield Comment(name, row, _marks(token), "trailing" if before.strip() or after else "block")
    for row, _, words, trailing in _merge(slashes):
        yield Comment(name, row, words, "trailing" if trailing else "block")


def _of_python(name, text):
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False):
            yield Comment(name, node.body[0].lineno, ast.get_docstring(node, clean=False), "docstring")
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type == tokenize.COMMENT]
    pieces = [(t.start[0], t.start[1], t.string.lstrip("#"), bool(t.line[:t.start[1]].strip())) for t in tokens]
    for row, _, words, trailing in _merge(pieces):
        yield Comment(name, row, words, "trailing" if trailing else "block")


def _of_shell(name, text):
    pieces = []
    for row, line in enumerate(text.split("\n"), 1):
        match = re.match(r"(\s*)#(?!!)(.*)|(.*\s)# (.*)", line)
        if match and match.group(2) is not None:
            pieces.append((row, len(match.group(1)), match.group(2), False))
        elif match and not re.search(r"[\"']", match.group(4) or ""):
            pieces.append((row, 0, match.group(4), True))
    for row, _, words, trailing in _merge(pieces):
        yield Comment(name, row, words, "trailing" if trailing else "block")


def _of_markdown(name, text):
    """Yield paragraphs, items of lists and cells of tables, without code."""
    text = re.sub(r"(?ms)^( *)```.*?^ *```", lambda m: "\n" * m.group().count("\n"), text)
    paragraph, start = [], 0
    for row, line in enumerate(text.split("\n") + [""], 1):
        table = line.startswith("|")
        item = re.match(r"\s*([-*]|\d+\.)\s+(.*)", line)
        if paragraph and (table or item or not line.strip() or line.startswith("#")):
            yield Comment(name, start, "\n".join(paragraph), "paragraph")
            paragraph = []
        if table:
            for cell in re.split(r"(?<!\\)\|", line.strip("| ")):
                if cell.strip(" -:"):
                    yield Comment(name, row, cell, "cell")
        elif line.strip() and not line.startswith(("#", "    ", "\t")):
            start = start if paragraph else row
            paragraph.append(item.group(2) if item else line)


def of_file(root, name):
    """All comments of a file, by its suffix; none of what has no prose."""
    text = (pathlib.Path(root) / name).read_text(encoding="utf-8")
    if name.endswith(".litmus"):
        for match in _LITMUS.finditer(text):
            yield Comment(name, text.count("\n", 0, match.start()) + 1, _marks(match.group()), "block")
    elif name.endswith(".md"):
        yield from _of_markdown(name, text)
    elif name.endswith(".py"):
        yield from _of_python(name, text)
    elif name.endswith(C_LIKE):
        yield from _of_c(name, text)
    elif name.endswith(HASH_LIKE):
        yield from _of_shell(name, text)
