#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""arm64_objects.py - the library's objects for arm64, as a kernel and a linker find them.

Compiles what has restartable sequences for CPUs of several generations and with branch protection, and the whole library
for big-endian CPUs, which cannot be run here: no system for them is packaged.  In each object
 - a descriptor's abort handler follows the word that the kernel demands.  That compares four bytes, which it loads as data,
   with the signature that the C library has registered; these are the bytes of an instruction, which have the same order
   on big-endian CPUs: 00 bc 28 d4;
 - a sequence has no call, no system call, no exclusive and no atomic instruction, and is short;
 - nothing but a descriptor has the address of a sequence or of its abort handler, so that no indirect branch leads there,
   and neither has to be a landing pad (bti);
 - with branch protection, the note says that it has landing pads and signs return addresses.
Objects that break one of these are refused.  --build DIR checks the objects and the shared library of a build as well.

Exit status: 0, 1 something is wrong, 77 no compiler.
"""
import argparse
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from tap import Tap, not_installed  # noqa: E402

GCC, CLANG = ["aarch64-linux-gnu-gcc"], ["clang-19", "--target=aarch64-linux-gnu"]
BIG_CLANG = ["clang-19", "--target=aarch64_be-linux-gnu", "-isystem", "/usr/aarch64-linux-gnu/include"]
FLAGS = ["-std=gnu11", "-O1", "-fPIC", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE=", "-DQUIESCE_UNPINNED", "-fvisibility=hidden"]
# These files have all inline sequences, as functions of the library, and those of its calls.
SEQUENCES = ("outline.c", "platform/linux/count.c", "platform/linux/sheaf.c")
PROTECTED = "-mbranch-protection=standard"
BUILDS = [(compiler, more, SEQUENCES) for compiler in (GCC, CLANG) for more in (
    ["-march=armv8-a", "-mno-outline-atomics"],  # exclusive loads and stores
    ["-march=armv8.1-a"],  # atomic instructions
    ["-march=armv8.3-a"],  # It also has ldapr.
    [PROTECTED],
    ["-march=armv8.5-a", PROTECTED])]
BUILDS += [(GCC, ["-mbig-endian"], SEQUENCES), (BIG_CLANG, [], None)]
SIGNATURE = bytes.fromhex("00bc28d4")
LONGEST = 128  # bytes between the first instruction and the end of a sequence; those that move many objects have a loop
PROPERTY = 0xC0000000  # GNU_PROPERTY_AARCH64_FEATURE_1_AND
BOTH = 3  # landing pads, signed return addresses
SHT_PROGBITS, SHT_RELA, SHT_NOTE, SHF_ALLOC, SHF_EXECINSTR = 1, 4, 7, 2, 4
ABS64 = 257
# Instructions that a sequence must not have: (mask, value, name).  ldar, ldapr and stlr are none of them.
FORBIDDEN = (
    (0xFC000000, 0x94000000, "bl"), (0xFE000000, 0xD6000000, "an indirect branch"), (0xFF000000, 0xD4000000, "an exception"),
    (0x3F800000, 0x08000000, "an exclusive access"), (0x3FA07C00, 0x08A07C00, "cas"), (0x3F207C00, 0x08207C00, "casp"),
    (0x3B200C00, 0x38200000, "an atomic instruction"))
LDAPR = (0x3FFFFC00, 0x38BFC000)
# The checks have to refuse each of these, a name and assembly, but the first.
ENTER = '.pushsection __rseq_cs, "aw"\n.balign 32\n3: .long 0, 0\n.quad 1f, 2f - 1f, 4f\n.popsection\nb 4f\n'
WHOLE = ENTER + ".inst 0xd428bc00\n4: adrp x9, 3b\n1: ldr x10, [x9]\n{}str x10, [x9]\n2:\n{}"
PLANTED = (
    ("a sequence", WHOLE.format("", ""), None),
    ("another signature", WHOLE.format("", "").replace("d428", "d427"), "signature"),
    ("a call", WHOLE.format("bl planted\n", ""), "bl"),
    ("a system call", WHOLE.format("svc #0\n", ""), "an exception"),
    ("an exclusive load", WHOLE.format("ldxr x10, [x9]\n", ""), "an exclusive access"),
    ("an atomic addition", ".arch armv8.1-a\n" + WHOLE.format("ldadd x10, x11, [x9]\n", ""), "an atomic instruction"),
    ("an exchange", ".arch armv8.1-a\n" + WHOLE.format("cas x10, x11, [x9]\n", ""), "cas"),
    ("a long sequence", WHOLE.format("nop\n" * 40, ""), "long"),
    ("a table with the handler", WHOLE.format("", ".pushsection .data\n.quad 4b\n.popsection\n"), "has the address"),
    ("an address of the handler", WHOLE.format("", "adr x9, 4b\n"), "has the address"),
)


class Object:
    """It has the sections of an ELF file of 64 bits, and its relocations."""

    def __init__(self, path):
        self.data = pathlib.Path(path).read_bytes()
        self.order = ">" if self.data[5] == 2 else "<"
        at, = self.unpack("Q", 0x28)
        size, count, names = self.unpack("HHH", 0x3A)
        heads = [self.unpack("IIQQQQIIQQ", at + i * size) for i in range(count)]
        self.sections = [(self.text(heads[names][4] + head[0]),) + head[1:] for head in heads]

    def unpack(self, form, at, data=None):
        return struct.unpack_from(self.order + form, self.data if data is None else data, at)

    def text(self, at):
        return self.data[at:self.data.index(b"\0", at)].decode()

    def bytes(self, index):
        _, kind, _, _, at, size = self.sections[index][:6]
        return b"" if kind == 8 else self.data[at:at + size]

    def relocations(self):
        """(index of the section that is changed, offset there, type, index of the section of the symbol, offset in that)"""
        for _, kind, _, _, at, size, link, to, _, _ in self.sections:
            if kind == SHT_RELA:
                for place in range(at, at + size, 24):
                    where, info, addend = self.unpack("QQq", place)
                    section, value = self.unpack("HQ", self.sections[link][4] + (info >> 32) * 24 + 6)
                    yield to, where, info & 0xFFFFFFFF, section, value + addend

    def features(self):
        """Return the bits of the property of arm64; None without a note."""
        for index, (name, kind, *_) in enumerate(self.sections):
            if name == ".note.gnu.property" and kind == SHT_NOTE:
                data = self.bytes(index)
                kind, _, bits = self.unpack("III", 16, data)
                return bits if kind == PROPERTY else None
        return None

    def descriptors(self):
        """(section of the code, first instruction, bytes, abort handler) of each sequence"""
        found = {}
        for to, where, kind, section, target in self.relocations():
            if self.sections[to][0].startswith("__rseq_cs") and kind == ABS64:
                found[to, where] = section, target
        for (to, where), (section, start) in sorted(found.items()):
            if where % 32 == 8:
                length, = self.unpack("Q", where + 8, self.bytes(to))
                yield section, start, length, found[to, where + 16][1]


def of_sequence(obj, section, start, length, handler):
    """Return the faults of a sequence."""
    code = obj.bytes(section)
    if code[handler - 4:handler] != SIGNATURE:
        yield f"the signature is {code[handler - 4:handler].hex()}"
    if not 0 < length <= LONGEST:
        yield f"{length} bytes long"
    for at in range(start, start + length, 4):
        word, = struct.unpack_from("<I", code, at)
        for mask, value, name in FORBIDDEN:
            if word & mask == value and word & LDAPR[0] != LDAPR[1]:
                yield f"{name} in a sequence"


def addresses(obj):
    """(section, offset) of what some instruction or word of the object has the address of; debug information may have any."""
    for to, _, kind, section, target in obj.relocations():
        name, _, flags = obj.sections[to][:3]
        branch = 279 <= kind <= 283  # direct branches: tbz, b.cond, b, bl
        if flags & SHF_ALLOC and not branch and not name.startswith(("__rseq_cs", ".eh_frame")):
            yield section, target
    for index, (_, kind, flags, *_) in enumerate(obj.sections):
        if kind == SHT_PROGBITS and flags & SHF_EXECINSTR:
            code = obj.bytes(index)
            for at in range(0, len(code) - 3, 4):
                word, = struct.unpack_from("<I", code, at)
                if word & 0x9F000000 == 0x10000000:
                    offset = (word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3
                    yield index, at + (offset - (1 << 21) if offset >> 20 else offset)


def examine(path, protected=False, big=False):
    """Return (number of sequences, what is wrong)."""
    obj, wrong = Object(path), []
    known = set(addresses(obj))
    sequences = list(obj.descriptors())
    for section, start, length, handler in sequences:
        wrong += of_sequence(obj, section, start, length, handler)
        for place in {handler, *range(start, start + length + 4, 4)}:
            if (section, place) in known:
                wrong.append(f"something has the address of {obj.sections[section][0]}+{place:#x}")
    if protected and (obj.features() or 0) & BOTH != BOTH:
        wrong.append(f"the note says {obj.features()}, not landing pads and signed return addresses")
    if big != (obj.order == ">"):
        wrong.append("the order of bytes is another")
    return len(sequences), wrong


def assemble(text, where, more=()):
    obj = os.path.join(where, "planted.o")
    subprocess.run([*GCC, *more, "-x", "assembler", "-c", "-o", obj, "-"], input=f".text\nplanted:\n{text}\nret\n", text=True, check=True)
    return obj


def planted(tap, where):
    for more in ([], ["-mbig-endian"]):
        for name, text, fault in PLANTED:
            number, wrong = examine(assemble(text, where, more), big=bool(more))
            good = number == 1 and any(fault in w for w in wrong) if fault else number == 1 and not wrong
            tap.result(good, f"{' '.join([*more, name])} is {'refused' if fault else 'right'}", "\n".join(wrong))
    _, wrong = examine(assemble(".inst 0", where), protected=True)
    tap.result(bool(wrong), "an object without a note is refused")


def sources(root, chosen):
    """Return all sources of the library for Linux, or those chosen."""
    if chosen:
        return [os.path.join(root, "src", name) for name in chosen]
    text = pathlib.Path(root, "src/meson.build").read_text(encoding="utf-8")
    lists = re.findall(r"^quiesce_(?:core|linux) = files\((.*?)\)$", text, re.M | re.S)
    names = [name for part in lists for name in re.findall(r"'([^']+\.c)'", part)] + ["runtime/thread_create.c"]
    return [os.path.join(root, "src", name) for name in names]


def compile_all(command, names, where):
    """Compile with as many processes as there are CPUs; return the objects, and what compilers print."""
    objects = [os.path.join(where, re.sub(r"\W", "_", name) + ".o") for name in names]
    waiting, running, text = list(zip(names, objects)), [], ""
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            name, obj = waiting.pop(0)
            running.append(subprocess.Popen([*command, "-c", name, "-o", obj], stderr=subprocess.PIPE, text=True))
        done = running.pop(0)
        text += done.communicate()[1]
        if done.returncode and not text:
            text = f"exit status {done.returncode}"
    return objects, text


def stubs(where):
    """The C library's headers are those of little-endian systems; the compiler searches for one more, which names what that library lacks."""
    os.makedirs(os.path.join(where, "include/gnu"), exist_ok=True)
    pathlib.Path(where, "include/gnu/stubs-lp64_be.h").touch()
    return "-I" + os.path.join(where, "include")


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--root", required=True)
    args.add_argument("--build", help="a build with branch protection, whose objects and library are checked as well")
    opt = args.parse_args()
    if not shutil.which(GCC[0]):
        print("arm64_objects: skipped: " + not_installed(GCC[0]))
        return 77
    tap = Tap()
    include = ["-I" + os.path.join(opt.root, name) for name in ("include", "src")] + ["-idirafter", "/usr/include"]
    with tempfile.TemporaryDirectory() as where:
        planted(tap, where)
        for compiler, more, chosen in BUILDS:
            title = " ".join([*compiler[:2], *more])
            if not shutil.which(compiler[0]):
                tap.skip(title, not_installed(compiler[0]))
                continue
            big = compiler is BIG_CLANG or "-mbig-endian" in more
            command = [*compiler, *FLAGS, *more, *([stubs(where)] if big else []), *include]
            names = sources(opt.root, chosen)
            objects, text = compile_all(command, names, where)
            if tap.result(not text, f"{title}: {len(names)} files are compiled", text):
                judge(tap, title, objects, PROTECTED in more, big)
    if opt.build:
        built = sorted(map(str, pathlib.Path(opt.build, "src").glob("libquiesce.so.*.p/*.o")))
        judge(tap, "the build's objects", built, True, False)
        library = Object(os.path.join(opt.build, "src/libquiesce.so"))
        tap.result((library.features() or 0) & 1 == 1, "the shared library's note says that it has landing pads")
    return tap.finish()


def judge(tap, title, objects, protected, big):
    total, faults = 0, ""
    for obj in objects:
        number, wrong = examine(obj, protected, big)
        total += number
        faults += "".join(f"{os.path.basename(obj)}: {text}\n" for text in wrong)
    tap.result(total > 10 and not faults, f"{title}: {total} sequences in {len(objects)} objects", faults)


if __name__ == "__main__":
    sys.exit(main())
