#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Static probes: their notes in the library, their documentation, a debugger that listens to them, and the scripts for bpftrace.

In most kernels of test machines there are no uprobes, so that gdb is the tracer here: it raises the words of the probes as the kernel does.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import time

from tap import Tap, execute

# A run of probes.c has at least so many events of a probe, or one.
EVENTS = {"callback_begin": 4, "callback_end": 4, "resize_end": 2}
LIMIT_S = 100


def notes(program):
    """Return the arguments of each probe by its name, from the notes of a program."""
    text = execute(["readelf", "-n", program]).stdout
    found = {}
    for name, arguments in re.findall(r"Provider: quiesce\n\s+Name: (\w+)\n.*\n\s+Arguments: (.*)", text):
        found.setdefault(name, []).append(arguments.split())
    return found


def documented(page):
    """Return the number of arguments of each probe in the table of the page."""
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", pathlib.Path(page).read_text(encoding="utf-8"), re.M)
    return {name: len(re.findall(r"`\w+`", arguments)) for name, arguments in rows}


def listened(program, found):
    """Run the program under a debugger that prints each event; return what it has printed."""
    script = ["set pagination off", "set style enabled off", "set confirm off"]
    for name, places in found.items():
        words = " ".join(f"$_probe_arg{i}" for i in range(len(places[0])))
        formats = " ".join(["%ld"] * len(places[0]))
        script += [f"break -probe-stap quiesce:{name}", "commands", "silent",
                   f'printf "event {name} {formats}\\n", {", ".join(words.split())}', "continue", "end"]
    script.append("run")
    path = pathlib.Path(program + ".gdb")
    path.write_text("\n".join(script) + "\n", encoding="utf-8")
    try:
        run = subprocess.run(["gdb", "-nx", "-batch", "-x", str(path), program], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             errors="replace", timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as late:
        return f"gdb did not end in {LIMIT_S} s\n{(late.stdout or b'').decode(errors='replace')[-2000:]}"
    return run.stdout + run.stderr


def check_events(tap, program, found):
    if not shutil.which("gdb"):
        tap.skip("a debugger listens", "gdb is not installed")
        return
    said = listened(program, found)
    events = re.findall(r"^event (\w+) ?(.*)$", said, re.M)
    counts = {name: sum(name == event for event, _ in events) for name in found}
    if not events and "ptrace" in said:
        tap.skip("a debugger listens", "it must not trace here")
        return
    tap.result(all(count >= EVENTS.get(name, 1) for name, count in counts.items()), "a debugger hears each probe", f"{counts}\n{said[-3000:]}")
    waits = [list(map(int, words.split())) for name, words in events if name == "object_wait_end"]
    tap.result(waits and all(ns > 1000000 for _, ns in waits), "a wait for a held object has its length", waits)


def check_scripts(tap, tool, scripts, found):
    """Let bpftrace compile them for a live process, in which it finds the probes."""
    for script in sorted(pathlib.Path(scripts).glob("*.bt")):
        used = set(re.findall(r"usdt:\*:quiesce:(\w+)", script.read_text(encoding="utf-8")))
        tap.result(used and used <= set(found), f"{script.name} uses probes that there are", used - set(found))
    if not shutil.which("bpftrace") or os.geteuid():
        tap.skip("bpftrace compiles its scripts", "bpftrace is not installed, or the caller is not root")
        return
    with subprocess.Popen([tool, "torture", "--type=rcu", "--seconds=60"], stdout=subprocess.DEVNULL) as live:
        time.sleep(0.2)  # until the program is loaded
        for script in sorted(pathlib.Path(scripts).glob("*.bt")):
            said = execute(["bpftrace", "-d", "-p", str(live.pid), script])
            wrong = re.findall(r"^(?:.*: )?(?:ERROR|error): (?!Unknown error -1: couldn't set RLIMIT).*", said.stdout + said.stderr, re.M)
            tap.result(not wrong and "define" in said.stdout, f"bpftrace compiles {script.name}", wrong or said.stdout[-2000:] + said.stderr)
        live.terminate()


def main():
    args = argparse.ArgumentParser()
    for name in ("program", "tool", "root"):
        args.add_argument(f"--{name}", required=True)
    opt = args.parse_args()
    tap = Tap()
    found = notes(opt.program)
    if not found:
        tap.skip("probes", "the library was built without sys/sdt.h")
        return tap.finish()
    page = documented(os.path.join(opt.root, "docs/watching.md"))
    tap.result(found and {name: len(places[0]) for name, places in found.items()} == page, "docs/watching.md lists the probes and their arguments",
               f"program: {found}\npage: {page}")
    in_memory = [words for places in found.values() for words in places if any("(" in word for word in words)]
    tap.result(not in_memory, "arguments are in registers, or constants", in_memory)
    check_events(tap, opt.program, found)
    check_scripts(tap, opt.tool, os.path.join(opt.root, "tools/bpftrace"), found)
    return tap.finish()


if __name__ == "__main__":
    raise SystemExit(main())
