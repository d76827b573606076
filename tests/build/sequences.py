#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The doctor finds restartable sequences that a tool has broken after the link, and says which functions the tool has to leave alone.

A program is linked, and is found intact.  Then copies of it are damaged, each in one way, as by a tool that moves code and does not
know of sequences; BOLT is such a tool, and is tried where it is installed.
"""
import argparse
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from tap import Tap, execute

SIGNATURE = struct.pack("<I", 0x53053053)
DESCRIPTOR = struct.Struct("<IIQQQ")
START, BYTES, RESTART = 2, 3, 4
NOPS = b"\x90" * 16


class Program:
    """A linked file whose descriptors need no relocation."""

    def __init__(self, path):
        self.data = bytearray(path.read_bytes())
        text = execute(["readelf", "-SW", path]).stdout
        sections = re.findall(r"\[\s*\d+\]\s+(\S+)\s+\S+\s+([0-9a-f]+)\s+([0-9a-f]+)\s+([0-9a-f]+)", text)
        self.sections = {name: tuple(int(word, 16) for word in words) for name, *words in sections}

    def offset(self, address):
        return next(at + address - start for start, at, size in self.sections.values() if start and 0 <= address - start < size)

    def descriptor(self, n):
        return list(DESCRIPTOR.unpack_from(self.data, self.sections["__rseq_cs"][1] + n * DESCRIPTOR.size))

    def describe(self, n, words):
        DESCRIPTOR.pack_into(self.data, self.sections["__rseq_cs"][1] + n * DESCRIPTOR.size, *words)

    def change(self, n, which, by):
        words = self.descriptor(n)
        words[which] += by
        self.describe(n, words)

    def overwrite(self, address, data):
        at = self.offset(address)
        self.data[at:at + len(data)] = data


def no_signature(p):
    p.overwrite(p.descriptor(0)[RESTART] - 4, NOPS[:4])


def exchanged(p):
    first, second = p.descriptor(0), p.descriptor(1)
    p.describe(0, second)
    p.describe(1, first)


def moved_away(p):
    words = p.descriptor(0)
    p.overwrite(words[RESTART], NOPS[:words[START] - words[RESTART]])


DAMAGES = {  # what is done, what the doctor says, how many sequences it says it of
    "a signature that is gone": (no_signature, "restarts where no signature is", 1),
    "a version": (lambda p: p.change(0, 0, 1), "has a version or flags that the kernel refuses", 1),
    "a sequence outside of code": (lambda p: p.change(0, START, 1 << 32), "describes something that is not code", 1),
    "a restart inside": (lambda p: p.describe(0, [0, 0, p.descriptor(0)[START], 16, p.descriptor(0)[START]]), "restarts inside of itself", 1),
    "a range that is too long": (lambda p: p.change(0, BYTES, 1), "does not end with its store", 1),
    "a range that is too short": (lambda p: p.change(0, BYTES, -1), "does not end with its store", 1),
    "two descriptors exchanged": (exchanged, "is announced by code before something else", 2),
    "code that has moved away": (moved_away, "is announced by no code", 1),
}


def examine(tool, path):
    """(exit status, {name: [values]}) of the doctor's findings."""
    run = execute([tool, "doctor", "--json", f"--binary={path}"])
    found = {}
    for row in json.loads(run.stdout or '{"doctor": []}')["doctor"]:
        found.setdefault("sequence" if row["name"].startswith("sequence ") else row["name"], []).append(row["value"])
        if row["note"]:
            found.setdefault("note", []).append(row["note"])
    return run.returncode, found


def check_intact(tap, tool, path, name):
    status, found = examine(tool, path)
    said = found.get(str(path), [""])[0]
    tap.result(status == 0 and re.fullmatch(r"[1-9]\d* restartable sequences, all as they were compiled", said), f"{name} is intact", found)
    return found.get("functions with sequences", [""])[0]


def check_damages(tap, tool, program, tmp):
    for name, (damage, want, times) in DAMAGES.items():
        p, copy = Program(program), tmp / "damaged"
        damage(p)
        copy.write_bytes(p.data)
        status, found = examine(tool, copy)
        wrong = [text for text in found.get("sequence", []) if text.startswith(want)]
        tap.result(status == 1 and len(wrong) == times == len(found["sequence"]) and f"{times} of" in found[str(copy)][0]
                   and "--skip-funcs" in found["note"][0] and re.search(" in (count_twice|claim|a function without a name)$", wrong[0]), f"{name} is found", found)


def check_relocated(tap, tool, program, tmp):
    """A position-independent program has the addresses in its relocations."""
    p, copy = Program(program), tmp / "damaged"
    at = p.data.find(SIGNATURE, p.sections[".text"][1])
    p.data[at:at + 4] = NOPS[:4]
    copy.write_bytes(p.data)
    status, found = examine(tool, copy)
    tap.result(status == 1 and len(found.get("sequence", [])) == 1, "a position-independent program: a signature that is gone is found", found)


def check_unfit(tap, tool, tmp, objects):
    text = tmp / "text"
    text.write_text("no program\n", encoding="utf-8")
    for path, want in ((text, "not a program or library"), (tmp / "absent", "cannot be read: "), (objects, "not linked yet")):
        status, found = examine(tool, path)
        tap.result(status == 1 and found[str(path)][0].startswith(want), f"said of {path.name}: {want}", found)


def check_names(tap, tool, program, tmp):
    """Names of files and symbols reach no output raw."""
    p, copy = Program(program), bytes(tmp) + b'/x\xff\x1b["'
    at = p.data.index(b"\0count_twice\0")
    p.data[at + 1:at + 6] = b"\xff\x1b[1m"
    pathlib.Path(copy.decode(errors="surrogateescape")).write_bytes(p.data)
    shown = f'{tmp}/x??["'
    for form in ("--json", "--csv", None):
        run = subprocess.run([tool, "doctor", *filter(None, [form]), b"--binary=" + copy], capture_output=True, timeout=120, check=False)
        text = run.stdout.decode(errors="replace")
        name = {"--json": json.dumps(shown), "--csv": '"' + shown.replace('"', '""') + '"', None: shown}[form]
        tap.result(run.returncode == 0 and name in text and "??[1m_twice" in text and re.fullmatch(r"[\n -~]*", text),
                   f"names that are not text, {form or 'for people'}", text)


def check_bolt(tap, tool, program, tmp, functions):
    bolt = next((path for name in ("llvm-bolt", "llvm-bolt-19") if (path := shutil.which(name))), None)
    if not bolt:
        tap.skip("BOLT", "bolt-19 is not installed")
        return
    out = tmp / "optimised"
    command = [bolt, program, "-o", out, "--reorder-blocks=reverse"]
    tap.run("BOLT, with the functions that the doctor names", [*command, f"--skip-funcs={functions}"])
    check_intact(tap, tool, out, "what BOLT has made")


def main():
    args = argparse.ArgumentParser()
    for name in ("include", "source", "static", "tool"):
        args.add_argument(f"--{name}", required=True)
    opt = args.parse_args()
    tap = Tap()
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        programs = {"fixed": tmp / "fixed", "independent": tmp / "independent"}
        compiled = ["gcc", "-std=gnu11", "-O2", "-g0", f"-I{opt.include}", opt.source]
        links = [opt.static, "-pthread", "-o"]
        tap.run("it compiles", [*compiled, "-fno-pie", "-c", "-o", tmp / "fixed.o"])
        tap.run("a program at a fixed address links", ["gcc", "-no-pie", tmp / "fixed.o", *links, programs["fixed"]])
        tap.run("a position-independent program links", [*compiled, "-fPIE", "-pie", *links, programs["independent"]])
        functions = {kind: check_intact(tap, opt.tool, path, f"the {kind} program") for kind, path in programs.items()}
        tap.result("count_twice," in functions["fixed"], "functions with sequences are named", functions)
        check_intact(tap, opt.tool, pathlib.Path(opt.tool), "the tool")
        check_damages(tap, opt.tool, programs["fixed"], tmp)
        check_relocated(tap, opt.tool, programs["independent"], tmp)
        check_names(tap, opt.tool, programs["fixed"], tmp)
        check_unfit(tap, opt.tool, tmp, tmp / "fixed.o")
        check_bolt(tap, opt.tool, programs["fixed"], tmp, functions["fixed"])
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
