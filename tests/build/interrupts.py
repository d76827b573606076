#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ctrl-C at any moment ends every subcommand soon, with its results so far; and no process that it started is left.

The time depends on other load of the machine: a moment counts as a failure when several tries of it took too long.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from cli import OPTIONS, Tool
from tap import Tap, tool_options

SOON_S = 2
TRIES = 4
MOMENTS = (0.02, 0.2, 0.9)
LONG = {"doctor": [], "costs": [], "run": [], "refscale": ["--runs=1000"], "study": ["all"], "report": ["--quick"]}
# Runs that take long to end by themselves: with other processes, many threads, much memory.
MORE = [["rcuscale", "--scenario=hogs,callers,alive", "--alive=64", "--seconds=1000"], ["rcuscale", "--scenario=hogs", "--seconds=0.02", "--runs=1000"],
        ["hashscale", "--keys=uniform:4000000", "--seconds=1000"], ["retirescale", "--scan"], ["rwscale", "--latency", "--seconds=1000"],
        ["torture", "--type=srcu", "--seconds=1000"]]
HALF_A_PAGE_S = 10  # a report draws what it has


def arguments(command):
    """Return a command that would run for a minute at least, except for doctor."""
    return [command, *LONG.get(command, ["--seconds=1000"])]


def left(session):
    """Return the processes of the tool's session."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append((stat.parent / "cmdline").read_text(errors="replace").replace("\0", " "))
        except (OSError, IndexError):
            pass  # the process has just ended
    return found


def attempt(tool, args, moment, everybody, tmp):
    """Return (seconds until the end or None if it had ended, status, output, remaining processes)."""
    process = subprocess.Popen([tool.path, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True, cwd=tmp)
    try:
        out, err = process.communicate(timeout=moment)
        return None, process.returncode, out + err, []
    except subprocess.TimeoutExpired:
        pass
    began = time.monotonic()
    (os.killpg if everybody else os.kill)(process.pid, signal.SIGINT)
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    took = time.monotonic() - began
    while (rest := left(process.pid)) and time.monotonic() - began < 30:
        time.sleep(0.01)
    return took, process.returncode, out + err, rest


def ends_soon(tool, args, moment, everybody, tmp):
    """Return True, or the reason of a failure."""
    soon, late = HALF_A_PAGE_S if args[0] == "report" else SOON_S, []
    for _ in range(TRIES):
        took, status, text, rest = attempt(tool, args, moment, everybody, tmp)
        if took is None:
            return status in (0, 1, 77) or f"status {status} without an interruption\n{text}"
        if status == 1 and "its pictures need" in text:
            return True
        # Before it has begun it ends as any program.
        if status not in (130, -signal.SIGINT) or rest:
            return f"at {moment} s: status {status}, left: {rest}\n{text}"
        if took < soon:
            return True
        late.append(f"at {moment} s: the end took {took:.2f} s\n{text[-400:]}")
    return "\n".join(late)


def check_moments(tap, tool, tmp):
    for args in [*map(arguments, OPTIONS), *MORE]:
        found = [ends_soon(tool, args, moment, bool(i % 2), tmp) for i, moment in enumerate(MOMENTS)]
        tap.result(all(f is True for f in found), f"Ctrl-C at any moment: {' '.join(args)}", "\n".join(f for f in found if f is not True))


def check_doctor(tap, tool, tmp):
    """An interrupted doctor prints complete findings, and no guesses about the rest."""
    whole = json.loads(tool.good("doctor", "--json"))["doctor"]
    for moment in (0.15, 0.4):
        process = subprocess.Popen([tool.path, "doctor", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp)
        time.sleep(moment)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        if process.returncode == 0:
            tap.skip("doctor says what it has found", "it had ended")
            continue
        names = [d["name"] for d in json.loads(out)["doctor"]]
        good = process.returncode == 130 and len(names) < len(whole) and names == [d["name"] for d in whole][:len(names)]
        tap.result(good and err == "quiesce: interrupted: doctor has not tried everything\n", "doctor says what it has found", f"{names}\n{err}")


def check_pipes(tap, tool, tmp):
    """Interrupt it where it waits for a pipe's reader or writer."""
    os.mkfifo(tmp / "fifo")
    for args in (["doctor", f"--output={tmp}/fifo"], ["report", "--compare", f"{tmp}/fifo", f"{tmp}/fifo"]):
        process = subprocess.Popen([tool.path, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        tap.result(process.returncode in (2, 130, -signal.SIGINT), f"Ctrl-C: {args[0]} before a pipe", process.returncode)


def main():
    opt = tool_options()
    tap = Tap()
    tool = Tool(tap, opt.tool)
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        check_moments(tap, tool, tmp)
        check_doctor(tap, tool, tmp)
        check_pipes(tap, tool, tmp)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
