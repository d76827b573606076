#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tool where no thread can be started: each subcommand ends by itself, and reports what is missing.

    tool_alone.py SANDBOX TOOL

Prints TAP.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "build"))
from tap import Tap, execute

RULES = ["clone3=ENOSYS", "clone&0x10000=EAGAIN"]  # processes can be created
SHORT = ["--seconds=0.01", "--runs=1"]
# Each subcommand has its exit status and its output; it runs one type, because other types are libraries that may abort.
SUBCOMMANDS = {
    "refscale": (["--type=rcu", "--runs=1", "--loops=1000"], 1, "cannot start 1 threads"),
    "rcuscale": (["--type=rcu", "--scenario=same", *SHORT], 1, "cannot start"),
    "retirescale": (["--type=rcu", *SHORT], 1, "cannot start"),
    "rwscale": (["--type=gp", *SHORT], 1, "cannot start"),
    "hashscale": (["--type=hashtable", *SHORT], 1, "cannot start"),
    "walkscale": (["--type=rcu_list", *SHORT], 1, "cannot start"),
    "queuescale": (["--type=wfcqueue", *SHORT], 1, "cannot start"),
    "torture": (["--type=rcu", *SHORT], 1, "cannot start"),
    "costs": (["--type=membarrier_busy", "--runs=1"], 1, "cannot start"),
    "doctor": ([], 0, "not tried: 16 threads cannot be started"),
}


def main():
    sandbox, tool = sys.argv[1:]
    tap = Tap()
    for name, (options, status, said) in SUBCOMMANDS.items():
        run = execute([sandbox, *RULES, "--", tool, name, *options])
        out = run.stdout + run.stderr
        good = run.returncode == status
        tap.result(good and said in out and "CRASHED" not in out, f"{name}: status {run.returncode}", out)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
