# SPDX-License-Identifier: MIT
"""measured.py - helpers for subcommands with JSON rows: run one, list its types, and the fields that docs/json.md has."""
import json
import pathlib
import re

from cli import diagnosis
from tap import execute


class Tool:
    def __init__(self, tap, path, subcommand):
        self.tap, self.path, self.subcommand = tap, path, subcommand

    def __call__(self, *args, **more):
        return execute([self.path, self.subcommand, *args], **more)

    def root(self, *args, want=0):
        run = self(*args, "--json")
        try:
            root = json.loads(run.stdout)
        except ValueError:
            root = {"rows": [], "notes": ["no JSON"]}
        self.tap.result(run.returncode == want, f"{self.subcommand} {' '.join(args)}: status {want}", diagnosis(run))
        return root

    def noticed(self, name, *args):
        """A type that is wrong only now and then is found out, on a busy machine after longer."""
        for seconds in ("0.3", "3", "20"):
            run = self(f"--seconds={seconds}", "--runs=1", *args, "--json")
            if run.returncode == 1:
                break
        notes = json.loads(run.stdout or "{}").get("notes", [])
        self.tap.result(run.returncode == 1 and any("BROKEN" in note for note in notes), name, diagnosis(run))

    def types(self):
        text = self("--help").stdout.split("Types:\n")[1].split("\n\n")[0]
        return [t for t in re.findall(r"^  (\w+) +\S", text, re.M) if not t.startswith("busted")]

    def documented(self, path):
        return fields_of(pathlib.Path(path).read_text(), self.subcommand)


def names_in(rows):
    return [name for line in re.findall(r"^\| (`.*?) \|", rows, re.M) for name in re.findall(r"`(\w+)`", line)]


def fields_of(text, subcommand):
    """The fields of a row in docs/json.md: those of all subcommands, and its own."""
    common = text.split("## A row")[1].split("\n## ")[0]
    return names_in(common) + names_in(text.split(f"| field of {subcommand}")[1].split("\n## ")[0])


def scenarios_of(text, subcommand):
    return names_in(text.split(f"\n## {subcommand}\n")[1].split(f"| field of {subcommand}")[0])
