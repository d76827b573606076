# SPDX-License-Identifier: MIT
"""tap.py - output in TAP for the tests of this directory."""
import argparse
import os
import re
import subprocess
import sys


class Tap:
    def __init__(self):
        self.number = self.bad = 0

    def result(self, ok, name, details=""):
        self.number += 1
        self.bad += not ok
        print(f"{'ok' if ok else 'not ok'} {self.number} - {name}")
        for line in str(details).splitlines() if not ok else []:
            print("#   ", line)
            print("   ", line, file=sys.stderr)  # Meson shows this one
        sys.stdout.flush()
        return ok

    def skip(self, name, why):
        self.number += 1
        print(f"ok {self.number} - {name} # SKIP {why}")

    def run(self, name, command, want=0, text="", env=None, **more):
        """Run one test: a command that must end with status @want and print @text."""
        run = execute(command, env, **more)
        out = run.stdout + run.stderr
        ok = run.returncode == want and text in out
        wanted = f"status {run.returncode}, want {want}" + (f" and '{text}'" if text else "")
        return self.result(ok, name, f"{' '.join(map(str, command))}\n{wanted}\n{out}")

    def finish(self):
        print(f"1..{self.number}")
        return 1 if self.bad else 0


def tool_options(*more):
    """The options --tool and @more, all required.  Settings of the library are removed from the environment."""
    parser = argparse.ArgumentParser()
    for name in ("tool", *more):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    options.tool = os.path.realpath(options.tool)
    for name in [n for n in os.environ if n.startswith("QUIESCE_")]:
        del os.environ[name]
    return options


def not_installed(compiler, more=""):
    """Return the Debian package that a test needs."""
    cross = re.fullmatch(r"(.*-linux-gnu)-(gcc|g\+\+)", compiler)
    package = f"{cross[2]}-{cross[1]}" if cross else compiler.replace("clang++", "clang")
    return f"{package}{more} is not installed"


def execute(command, env=None, **more):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace",
                          env={**os.environ, **(env or {})}, timeout=120, **more)
