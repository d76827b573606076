#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""man-page.py TOOL TEMPLATE OUTPUT DATE: make a manual page of the tool from a template and the tool's --help.

A template quiesce-NAME.1.in is that of a subcommand: @HEAD@ is replaced by its name and synopsis, @OPTIONS@ by its options, @SCENARIOS@
by its scenarios, @EXIT@ by the exit statuses.  In quiesce.1.in @DATE@, @VERSION@ and @SUBCOMMANDS@ are replaced.  Lists of types are left out:
they depend on the installed packages, and --help shows them.
"""
import os
import pathlib
import re
import subprocess
import sys
import textwrap


def ask(tool, *args):
    env = {**os.environ, "ARGP_HELP_FMT": "rmargin=32000"}
    return subprocess.run([tool, *args], capture_output=True, text=True, check=True, env=env).stdout


def roff(text):
    """Return plain text, escaped for roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return "\\&" + text if text.startswith((".", "\\(aq")) else text


def options(text):
    for names, value, what in re.findall(r"^ {2,6}((?:-\S, )?--[a-z-]+)(?:=(\S+))? +(.*)", text, re.M):
        yield f".TP\n\\fB{roff(names)}\\fR" + (f"=\\fI{roff(value)}\\fR" if value else "") + f"\n{roff(what)}"


def scenarios(text):
    """The rows of the last list; a row's text continues in column 21."""
    for name, what in re.findall(r"^  (\S+) +(.*(?:\n {21}.*)*)", text.partition("\nScenarios:\n")[2], re.M):
        yield f".TP\n.B {roff(name)}\n{roff(' '.join(what.split()))}"


def wrapped(text):
    """Break long lines of text; each sentence still begins a line."""
    for line in text.split("\n"):
        parts = [line] if line.startswith(".") else textwrap.wrap(line, 79, break_long_words=False, break_on_hyphens=False)
        yield from ("\\&" + part if part.startswith((".", "'")) and part != line else part for part in parts or [""])


def subcommand(tool, name, version, date):
    text = ask(tool, name, "--help")
    usage, what = text.split("\n")[:2]
    arguments = usage.partition("[OPTION...]")[2].strip()
    return {"HEAD": f'.TH QUIESCE\\-{name.upper()} 1 "{date}" "quiesce {version}" "User Commands"\n.SH NAME\n'
                    f"quiesce\\-{name} \\- {roff(what[0].lower() + what[1:].rstrip('.'))}\n.SH SYNOPSIS\n"
                    f".B quiesce {name}\n.RI [ OPTION ...]" + (f"\n{roff(arguments)}" if arguments else ""),
            "OPTIONS": "\n".join(options(text)), "SCENARIOS": "\n".join(scenarios(text)),
            "EXIT": ".SH EXIT STATUS\n0: good; 1: a test failed or a result is missing; 2: wrong usage; 130: interrupted."}


def overview(tool, version, date):
    rows = re.findall(r"^  ([a-z0-9]+) +(.*)", ask(tool, "--help"), re.M)
    return {"VERSION": version, "DATE": date, "SUBCOMMANDS": "\n".join(f".TP\n.BR quiesce\\-{name} (1)\n{roff(what)}" for name, what in rows)}


def main():
    tool, template, output = (pathlib.Path(argument).absolute() for argument in sys.argv[1:4])
    name = template.name.removesuffix(".1.in").removeprefix("quiesce").removeprefix("-")
    version = ask(tool, "--version").split()[1]
    values = subcommand(tool, name, version, sys.argv[4]) if name else overview(tool, version, sys.argv[4])
    text = re.sub("@([A-Z]+)@", lambda found: values[found[1]], template.read_text(encoding="utf-8"))
    output.write_text("\n".join(wrapped(text)), encoding="utf-8")


if __name__ == "__main__":
    main()
