#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Environment variables: a value is taken as a whole, or reported and ignored.

    settings.py PROGRAM

Prints TAP.
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "build"))
from tap import Tap

DEFAULTS = {"QUIESCE_YIELD": "1", "QUIESCE_STALL_MS": "10000", "QUIESCE_CEILING": "64M", "QUIESCE_THROTTLE": "0", "QUIESCE_RECLAIMERS": "1",
            "QUIESCE_GARBAGE_WARNING": "1G", "QUIESCE_ALLOW_COPIES": "0", "QUIESCE_VERBOSE": "0"}
BYTES = {"0": "0", "1": "1", "1023": "1023", "1024": "1k", "64k": "64k", "64K": "64k", "64M": "64M", "67108864": "64M", "3G": "3G",
         "1024M": "1G", "1536M": "1536M", "8589934591G": "8589934591G", "9223372036854775807": "9223372036854775807", "007": "7"}
NO_BYTES = ("64Q", "M", "64MB", "64MiB", "64 M", " 64", "64 ", "-1", "+1", "1.5G", "0x10", "1e6", "64kk", "64m", "64g", "no",
            "9223372036854775808", "99999999999999999999999999", "8589934592G")
FLAGS = ("QUIESCE_YIELD", "QUIESCE_THROTTLE", "QUIESCE_ALLOW_COPIES")
GOOD = [(name, text, shown) for name in ("QUIESCE_CEILING", "QUIESCE_GARBAGE_WARNING") for text, shown in BYTES.items()]
GOOD += [(name, text, text) for name in FLAGS for text in ("0", "1")]
GOOD += [("QUIESCE_STALL_MS", text, text) for text in ("0", "1", "20", "10000", "9223372036854")]
GOOD += [("QUIESCE_RECLAIMERS", text, str(min(int(text), len(os.sched_getaffinity(0))))) for text in ("1", "2", "007", "16")]
GOOD += [(name, "", value) for name, value in DEFAULTS.items()]  # as if it were not set
BAD = [(name, text) for name in ("QUIESCE_CEILING", "QUIESCE_GARBAGE_WARNING") for text in NO_BYTES]
BAD += [(name, text) for name in FLAGS for text in ("no", "yes", "2", "-1", "01x", "on", "true")]
BAD += [("QUIESCE_STALL_MS", text) for text in ("10s", "10ms", "1k", "-1", "1.5", "9223372036855", "never")]
BAD += [("QUIESCE_RECLAIMERS", text) for text in ("0", "17", "-1", "auto", "2k", "4294967298")]
WORDS = {"QUIESCE_FENCE": "auto, light, full", "QUIESCE_SLOTS": "auto, mm_cid, cpu_id, thread"}


def run(program, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("QUIESCE_")}
    out = subprocess.run([program], env=env | environment, capture_output=True, text=True, check=False, timeout=60)
    shown = dict(word.split("=", 1) for word in out.stdout.split() if "=" in word)
    return out, shown


def main():
    tap = Tap()
    program = sys.argv[1]
    out, shown = run(program)
    tap.result(out.returncode == 0 and {k: shown.get(k) for k in DEFAULTS} == DEFAULTS and not out.stderr, "defaults", out)
    for name, text, want in GOOD:
        out, shown = run(program, **{name: text})
        tap.result(shown == run(program)[1] | {name: want} and not out.stderr, f"{name}={text} is {want}", out)
    for name, text in BAD:
        out, shown = run(program, **{name: text})
        lines = out.stderr.splitlines()
        tap.result({k: shown.get(k) for k in DEFAULTS} == DEFAULTS and len(lines) == 1 and
                   lines[0].startswith(f"quiesce: {name}={text} is n") and lines[0].endswith(f"; using {DEFAULTS[name]}"),
                   f"{name}={text} is refused", out)
    for name, words in WORDS.items():
        out, shown = run(program, **{name: "nonsense"})
        tap.result(out.stderr == f"quiesce: {name}=nonsense is none of {words}; using auto\n" and shown == run(program)[1],
                   f"{name}=nonsense is refused", out)
    out, shown = run(program, QUIESCE_FENCE="full", QUIESCE_SLOTS="thread")
    tap.result(shown["QUIESCE_FENCE"] == "full" and shown["QUIESCE_SLOTS"] == "thread", "words are taken", out)
    out, shown = run(program, QUIESCE_CEILING="x" * 5000)
    tap.result(out.returncode == 0 and len(out.stderr.splitlines()) == 1 and len(out.stderr) < 700, "a long value is cut", out)
    out, shown = run(program, QUIESCE_VERBOSE="1", QUIESCE_CEILING="7k")
    tap.result(out.stderr == "quiesce: " + out.stdout and shown["QUIESCE_CEILING"] == "7k", "QUIESCE_VERBOSE=1 prints them", out)
    out, shown = run(program, QUIESCE_VERBOSE="2")
    tap.result(len(out.stderr.splitlines()) == 1, "QUIESCE_VERBOSE=2 is refused", out)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
