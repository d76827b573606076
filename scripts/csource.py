# SPDX-License-Identifier: MIT
"""csource.py - just enough C for the style checks: code without comments, and the positions of functions.

It relies on kernel style: a function's name starts a line that is not indented
and ends in ')', its body starts with '{' in column 0 (or the whole function is
one line), and ends with '}' in column 0.
"""
import pathlib
import re
import subprocess

SUFFIXES = (".c", ".h", ".hpp", ".cpp")
_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
_HEAD = re.compile(r"^[A-Za-z_][^;={}#]*?\b(\w+)\s*\((?!\()[^;{}]*\)(?:\s*\w+\([^;{}]*\))*\s*")
_MACRO = re.compile(r"^#\s*define\s+(\w+)\(")


def tracked(root, *prefixes):
    """The project's files: those that git tracks, or every file of an unpacked archive."""
    run = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True)
    if run.returncode == 0 and run.stdout:
        names = run.stdout.decode().split("\0")
    else:
        names = [str(p.relative_to(root)) for p in pathlib.Path(root).rglob("*") if p.is_file()]
        names = [n for n in names if not n.startswith((".git/", "build"))]
    return sorted(n for n in names if n and n.startswith(prefixes or "") and (pathlib.Path(root) / n).is_file())


def c_files(root, *prefixes):
    return [n for n in tracked(root, *prefixes) if n.endswith(SUFFIXES)]


def strip(text):
    """Comments and literals replaced by blanks; lines stay where they are."""

    def blank(match):
        token = match.group()
        if token[0] in "\"'":
            return token[0] + " " * (len(token) - 2) + token[0]
        return re.sub(r"[^\n]", " ", token)

    return _TOKEN.sub(blank, text)


def read(root, name):
    """Two equally long lists: the lines as written, and their code."""
    text = (pathlib.Path(root) / name).read_text(encoding="utf-8")
    return text.split("\n"), strip(text).split("\n")


def functions(code):
    """(name, first line, last line) of every function and function-like macro, from 0."""
    found = []
    i = 0
    while i < len(code):
        macro = _MACRO.match(code[i])
        if macro:
            end = i
            while code[end].rstrip().endswith("\\"):
                end += 1
            found.append((macro.group(1), i, end))
            i = end
        elif code[i].startswith("{"):
            start, name = _head(code, i)
            end = next((j for j in range(i, len(code)) if code[j].startswith("}")), i)
            if name:
                found.append((name, start, end))
            i = end
        else:
            one = re.match(r"^[A-Za-z_][^;={}#]*?\b(\w+)\s*\([^;{}]*\)\s*\{.*\}\s*$", code[i])
            if one:
                found.append((one.group(1), i, i))
        i += 1
    return found


def _head(code, brace):
    """Return the lines above a brace in column 0 that belong to the head of a function."""
    start = brace
    while start > 0 and code[start - 1].strip() and not code[start - 1].startswith(("}", "#")):
        if code[start - 1].rstrip().endswith(";"):
            break
        start -= 1
    head = " ".join(line.strip() for line in code[start:brace])
    match = _HEAD.match(head)
    return start, match.group(1) if match else None


def function_at(spans, line):
    return next((name for name, first, last in spans if first <= line <= last), None)
