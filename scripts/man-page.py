#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""man-page.py TOOL TEMPLATE OUTPUT: make the tool's manual page from a template and the tool's --help.

@VERSION@ and @SUBCOMMANDS@ are replaced.  Lists of types are left out: they depend on the installed packages, and --help
shows them.
"""
import os
import pathlib
import re
import subprocess
import sys

COMMON = ("--help", "--usage", "--csv", "--json", "--output")  # the template explains them


def ask(tool, *args):
    env = {**os.environ, "ARGP_HELP_FMT": "rmargin=32000"}
    return subprocess.run([tool, *args], capture_output=True, text=True, check=True, env=env).stdout


def roff(text):
    """Return plain text, escaped for roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return "\\&" + text if text.startswith((".", "\\(aq")) else text


def options(lines):
    for line in lines:
        found = re.match(r" {2,6}((?:-\S, )?--\S+)\s*(.*)", line)
        if not found or found[1].split("--")[1].split("=")[0] in [name[2:] for name in COMMON]:
            continue
        name, _, value = found[1].partition("=")
        yield ".TP"
        yield f"\\fB{roff(name)}\\fR" + (f"=\\fI{roff(value)}\\fR" if value else "")
        yield roff(found[2])


def section(tool, name):
    """Yield usage, one sentence, options, then paragraphs up to the first list."""
    lines = ask(tool, name, "--help").split("\n")
    yield f".SS {roff(name)}"
    yield f".B {roff(lines[0].removeprefix('Usage: '))}"
    yield ".PP"
    yield roff(lines[1])
    yield from options(lines)
    after = max(i for i, line in enumerate(lines) if line.lstrip().startswith(("--usage", "-?")))
    for line in lines[after + 1:]:
        if re.fullmatch(r"[A-Z][a-z]+( [a-z]+)*:", line):
            break
        if line.strip():
            yield ".PP"
            yield roff(line)


def main():
    tool, template, output = sys.argv[1:]
    tool = os.path.abspath(tool)
    names = re.findall(r"^  ([a-z0-9]+) ", ask(tool, "--help"), re.M)
    version = ask(tool, "--version").split()[1]
    text = pathlib.Path(template).read_text(encoding="utf-8").replace("@VERSION@", version)
    pathlib.Path(output).write_text(
        text.replace("@SUBCOMMANDS@", "\n".join(line for name in names for line in section(tool, name))), encoding="utf-8")


if __name__ == "__main__":
    main()
