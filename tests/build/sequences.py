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
import signal
import struct
import subprocess
import sys
import tempfile
import time

from tap import Tap, execute

SIGNATURE = struct.pack("<I", 0x53053053)
DESCRIPTOR = struct.Struct("<IIQQQ")
START, BYTES, RESTART = 2, 3, 4
NOPS = b"\x90" * 16
LFENCE = b"\x0f\xae\xe8"
UNKNOWN = b"\x0f\x0a"  # no instruction
SECTION = struct.Struct("<IIQQQQIIQQ")


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

    def header(self, section):
        """The offset of the header of a section."""
        return struct.unpack_from("<Q", self.data, 0x28)[0] + SECTION.size * list(self.sections).index(section)

    def replace(self, section, data):
        """Let @data behind the file be the content of a section."""
        at = self.header(section)
        words = list(SECTION.unpack_from(self.data, at))
        words[4], words[5] = len(self.data), len(data)
        SECTION.pack_into(self.data, at, *words)
        self.data += data

    def repeat(self, section, times):
        """Let a table behind the file have the header of a section many times."""
        at, nr = struct.unpack_from("<Q", self.data, 0x28)[0], struct.unpack_from("<H", self.data, 0x3c)[0]
        table = self.data[at:at + nr * SECTION.size]
        one = self.header(section) - at
        struct.pack_into("<Q", self.data, 0x28, len(self.data))
        struct.pack_into("<H", self.data, 0x3c, nr + times)
        self.data += table + table[one:one + SECTION.size] * times

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


def fence_after(p):
    """Put a fence over the code behind the first sequence, and into its range."""
    words = p.descriptor(0)
    p.overwrite(words[START] + words[BYTES], LFENCE)
    p.change(0, BYTES, len(LFENCE))


def long_before(p):
    words = p.descriptor(0)
    p.describe(0, [0, 0, words[START], 4097, words[RESTART]])


DAMAGES = {  # what is done, what the doctor says, how many sequences it says it of
    "a signature that is gone": (no_signature, "restarts where no signature is", 1),
    "a version": (lambda p: p.change(0, 0, 1), "has a version or flags that the kernel refuses", 1),
    "a sequence outside of code": (lambda p: p.change(0, START, 1 << 32), "describes something that is not code", 1),
    "a restart inside": (lambda p: p.describe(0, [0, 0, p.descriptor(0)[START], 16, p.descriptor(0)[START]]), "restarts inside of itself", 1),
    "a range that is too long": (lambda p: p.change(0, BYTES, 1), "does not end with its store", 1),
    "a range that is too short": (lambda p: p.change(0, BYTES, -1), "does not end with its store", 1),
    "a fence behind the store": (fence_after, "does not end with its store", 1),
    "a range that no sequence has": (long_before, "is longer than any sequence", 1),
    "two descriptors of one sequence": (lambda p: p.describe(0, p.descriptor(1)), "overlaps another sequence", 2),
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


def check_unknown(tap, tool, program, tmp):
    """An instruction that the doctor does not know: it says that there is no verdict."""
    p, copy = Program(program), tmp / "unknown"
    p.overwrite(p.descriptor(0)[START], UNKNOWN)
    copy.write_bytes(p.data)
    status, found = examine(tool, copy)
    tap.result(status == 1 and re.fullmatch(r"1 of \d+ restartable sequences have no verdict", found[str(copy)][0])
               and found["sequence"][0].startswith("has no verdict, at "), "an unknown instruction has no verdict", found)


def check_many(tap, tool, program, tmp):
    """Many descriptors of the same code cost no more than their number."""
    p, copy = Program(program), tmp / "many"
    words = p.descriptor(0)
    words[BYTES] = 4096
    p.replace("__rseq_cs", DESCRIPTOR.pack(*words) * 20000)
    copy.write_bytes(p.data)
    status, found = examine(tool, copy)
    tap.result(status == 1 and found[str(copy)] == ["20000 of 20000 restartable sequences are broken"], "20000 descriptors of one sequence", found)


def caught(pid, which):
    """True if the process has a handler for a signal."""
    mask = re.search(r"^SigCgt:\s*(\S+)", pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii"), re.M)
    return bool(mask and int(mask[1], 16) >> (which - 1) & 1)


def check_interrupted(tap, tool, program, tmp):
    """A file with the same code in many sections takes minutes; SIGINT ends that."""
    p, copy = Program(program), tmp / "repeated"
    p.replace(".text", NOPS * (1 << 16))
    p.repeat(".text", 60000)
    copy.write_bytes(p.data)
    with subprocess.Popen([tool, "doctor", "--json", f"--binary={copy}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not caught(process.pid, signal.SIGINT):
            time.sleep(0.01)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
    ok = process.returncode == 130 and "interrupted" in err and json.loads(out)["doctor"] == []
    tap.result(ok, "SIGINT ends it, without a verdict", f"{process.returncode}\n{out}{err}")


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


def check_android(tap, tool, program, tmp):
    """Relocations in a packed form are not read: that is no finding about sequences."""
    p, copy = Program(program), tmp / "packed"
    struct.pack_into("<I", p.data, p.header(".rela.dyn") + 4, 0x60000002)
    p.replace("__rseq_cs", DESCRIPTOR.pack(0, 0, 0, 16, 0))
    copy.write_bytes(p.data)
    status, found = examine(tool, copy)
    tap.result(status == 1 and "Android" in found[str(copy)][0] and "sequence" not in found, "packed relocations have no verdict", found)


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
        for check in (check_unknown, check_many, check_interrupted, check_names):
            check(tap, opt.tool, programs["fixed"], tmp)
        check_android(tap, opt.tool, programs["independent"], tmp)
        check_unfit(tap, opt.tool, tmp, tmp / "fixed.o")
        check_bolt(tap, opt.tool, programs["fixed"], tmp, functions["fixed"])
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
