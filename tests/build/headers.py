#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every public header compiles alone, twice in one file, and all of them in every language they promise.

Whether a header has what it needs does not depend on the language's year: alone it is compiled in the oldest of C by one compiler, and
in the newest of C++, for debugging, by the other; in all the rest all of them are compiled as one file. A header that atomic.h keeps for the library's own builds (platform/...) is not public.
Prints TAP.  Compilers that are not installed are reported as skipped.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

C = ["c11", "gnu11", "c17"]
CXX = ["c++11", "c++17", "c++20"]
# The C++ faces: the oldest language, that of the draft's names, and the newest that each compiler has, one of them with all that is
# asked for rarely, and the other standard library.  tests/conformance has more.
RARE = ["-DQUIESCE_DEBUG", "-fno-exceptions", "-fno-rtti"]
FACES = {"g++": [["c++17"], ["c++20"], ["c++23", *RARE]], "clang++": [["c++17"], ["c++20", *RARE], ["c++26", "-stdlib=libc++"]]}
FACES["clang++-19"] = FACES["clang++"]
# The faces that need C++20, and report that in older ones.
NEWER = ("hashmap.hpp", "hashtable.hpp", "hashtable_hazptr.hpp", "unordered_map.hpp")
NEWER_PARTS = ("hash_key.hpp", "hash_range.hpp", "map_node.hpp")
CPU_FILES = ("x86_64.h", "x86_64_rseq.h", "arm64.h", "arm64_rseq.h", "pin.h", "riscv64.h", "s390x.h")
COMPILERS = [("gcc", "g++"), ("clang-19", "clang++-19"), ("clang", "clang++")]
# Programs ask for these warnings, and get them from headers that they include by -I.
WARN = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wcast-qual", "-Wcast-align",
        "-Wshadow", "-Wundef", "-Wwrite-strings", "-Wpointer-arith", "-Wswitch-default", "-Wswitch-enum", "-Wfloat-equal", "-Wformat=2", "-Wvla",
        "-Wredundant-decls", "-Werror", "-fsyntax-only"]
WARN_OF = {"gcc": ["-Wlogical-op", "-Wduplicated-cond", "-Wduplicated-branches", "-Wcast-align=strict", "-Wbad-function-cast",
                   "-Wjump-misses-init"],
           "g++": ["-Wlogical-op", "-Wduplicated-cond", "-Wduplicated-branches", "-Wcast-align=strict", "-Wuseless-cast",
                   "-Wold-style-cast", "-Wzero-as-null-pointer-constant", "-Wsuggest-override", "-Wextra-semi"],
           "clang": ["-Wcomma", "-Wshadow-all", "-Wextra-semi-stmt"],
           "clang++": ["-Wcomma", "-Wshadow-all", "-Wextra-semi-stmt", "-Wold-style-cast", "-Wzero-as-null-pointer-constant"]}
WARN_OF_C = ["-Wstrict-prototypes", "-Wmissing-prototypes", "-Wold-style-definition"]


def warnings(compiler, lang):
    """For headers and macros.  Examples keep ids in an int, as the kernel's programs do, which -Wsign-conversion reports."""
    return [*WARN, "-Wsign-conversion", *WARN_OF[compiler.split("-")[0]], *(WARN_OF_C if lang == "c" else [])]


def compile_text(command, text):
    run = subprocess.run(command + ["-"], input=text, text=True, capture_output=True)
    return run.returncode == 0, run.stderr


def has_library(compiler, flags):
    """True if the standard library that the flags request is installed."""
    return "-stdlib=libc++" not in flags or compile_text([compiler, "-x", "c++", "-fsyntax-only", *flags], "#include <version>\n")[0]


def face_jobs(include, headers):
    """Alone with the last library that there is, libc++ if possible: its headers include fewer others."""
    tried = []
    for _, cxx in COMPILERS:
        for std, *flags in FACES[cxx] if shutil.which(cxx) else ():
            if has_library(cxx, flags):
                tried.append((cxx, std, flags))
            else:
                print(f"# {cxx} has no {' '.join(flags)}: not tried")
    names = [h.relative_to(include) for h in headers if h.suffix == ".hpp"]
    for entry in tried:
        cxx, std, flags = entry
        command = [cxx, "-x", "c++", f"-std={std}", *flags, *warnings(cxx, "c++"), "-Wnon-virtual-dtor", f"-I{include}"]
        fit = [n for n in names if std != "c++17" or n.name not in NEWER + NEWER_PARTS]
        for group in [[n] for n in fit] if entry == tried[-1] else [fit]:
            yield " ".join([title_of(group), cxx, std, *flags]), command, group


def too_old(include, compiler):
    """Return the faces of NEWER that do not report their language by one error, and that alone."""
    command = [compiler, "-x", "c++", "-std=c++17", "-fsyntax-only", f"-I{include}"]
    text = {name: compile_text(command, f"#include <quiesce/ds/{name}>\n") for name in NEWER}
    return [name for name, (ok, err) in text.items() if ok or err.count("error: ") != 1 or f"{name} needs C++20, " not in err]


def title_of(group):
    return str(group[0]) if len(group) == 1 else f"{len(group)} headers together"


def jobs(include, headers):
    """Yield (title, command, headers of one file)."""
    found = [pair for pair in COMPILERS if shutil.which(pair[0])]
    names = [h.relative_to(include) for h in headers if h.suffix == ".h"]
    for c, cxx in COMPILERS:
        for compiler, lang, stds in ((c, "c", C), (cxx, "c++", CXX)):
            if not shutil.which(compiler):
                continue
            # Alone, C in its oldest year by the first compiler, and C++ in its newest, for debugging, by the last.
            alone = (stds[0], "") if lang == "c" and (c, cxx) == found[0] else (stds[-1], "-DQUIESCE_DEBUG") if lang == "c++" and (c, cxx) == found[-1] else None
            for std in stds:
                for debug in ("", "-DQUIESCE_DEBUG"):
                    command = [compiler, "-x", lang, f"-std={std}", *warnings(compiler, lang), *debug.split(), f"-I{include}"]
                    for group in [[n] for n in names] if (std, debug) == alone else [names]:
                        yield f"{title_of(group)} {compiler} {std} {debug}".strip(), command, group


def including(group):
    """Include each header twice, at once and after the others."""
    return "".join(f"#include <{name}>\n" * 2 for name in group) + "".join(f"#include <{name}>\n" for name in group)


def examples(include):
    """Yield (name, text) of the examples in docs/cpp.md and in the opening comments of the C++ headers."""
    doc = include.parent / "docs/cpp.md"
    blocks = re.findall(r"^```cpp\n(.*?)^```", doc.read_text(), re.S | re.M) if doc.exists() else []
    yield from ((f"docs/cpp.md, example {i}", block) for i, block in enumerate(blocks, 1))
    for name in ("hazptr", "percpu_rwsem", "rcu", "shazptr", "srcu"):
        text = (include / f"quiesce/{name}.hpp").read_text()
        lines = re.findall(r"^ \*\t(.*)$", text[:text.index("#ifndef")], re.M)
        outside = [line for line in lines if line.startswith(("struct", "std::atomic", "static"))]
        inside = [line for line in lines if line not in outside]
        if not any(line.startswith("struct") for line in outside):
            outside.insert(0, "struct config { int limit; };")
        yield f"{name}.hpp: the example", (
            f"#include <quiesce/{name}.hpp>\n#include <atomic>\n#include <mutex>\n#include <shared_mutex>\n" +
            "\n".join(outside) +
            "\nvoid use(int);\nvoid example(config *fresh);\nvoid example([[maybe_unused]] config *fresh)\n{\n" +
            "\n".join(inside) + "\n}\n")


def stds_of(text):
    """Return the years of C++ in which an example compiles, or in the short run the oldest of them: the faces have been compiled in all."""
    if re.search(r"constinit|ds/(?:hash|unordered_)\w+\.hpp", text):
        return (20,)
    return (17, 20) if os.environ.get("CI_LONG") else (17,)


def macros(include):
    """Return (title, command, text) for macros.cc with the warning that checks macros."""
    text = (pathlib.Path(__file__).parent / "macros.cc").read_text()
    for _, cxx in COMPILERS:
        for debug in ([], ["-DQUIESCE_DEBUG"]) if shutil.which(cxx) else ():
            command = [cxx, "-x", "c++", "-std=c++20", *debug, *warnings(cxx, "c++"), "-Wno-unused", f"-I{include}"]
            yield " ".join(["no old-style cast", cxx, *debug]), command, text


# Programs that a compiler has to refuse: the text, its fault, what stands there in the same program without a fault, words of the message.
REFUSED = {
    "a map that would own a pointer to its text": ("quiesce::rcu_unordered_map<%s, int> map;\n",
                                                   "const char *", "std::string", "the map would own the pointer"),
    "a map of references": ("quiesce::rcu_unordered_map<%s, int> map;\n",
                            "const std::string &", "std::string", "keys and values are objects"),
    "a map of keys without a hash": ("struct k { double d; bool operator==(const k &) const = default; };\n"
                                     "struct h { unsigned long operator()(const k &) const noexcept { return 1; } };\n"
                                     "quiesce::rcu_unordered_map<%s> map;\n", "k, int", "k, int, h", "the key needs a Hash"),
}
# One wait has one name, also where both namespaces are visible.
UNQUALIFIED = """#include <quiesce/rcu.hpp>
using namespace quiesce;
static_assert(noexcept(quiesce::rcu_barrier()) && noexcept(rcu_barrier(rcu_default_domain())));
void wait();
void wait() { rcu_barrier(); ::rcu_barrier(); quiesce::rcu_barrier(); rcu_barrier(rcu_default_domain()); }
"""


def refused_text(faulty):
    parts = [f"namespace n{i} {{\n{text % (bad if faulty else good)}}}\n" for i, (text, bad, good, _) in enumerate(REFUSED.values())]
    return "#include <string>\n#include <quiesce/ds/unordered_map.hpp>\n" + "".join(parts)


def refusals(include):
    """Yield a title, and whether a compiler refuses and accepts what it should."""
    for cxx in [cxx for _, cxx in COMPILERS if shutil.which(cxx)]:
        command = [cxx, "-x", "c++", "-std=c++20", "-fsyntax-only", f"-I{include}"]
        # Each in a namespace, so that one file has all; a refusal has words of its own.
        accepted, err = compile_text(command, refused_text(False))
        yield f"{cxx} accepts the same without the faults" + ("" if accepted else ": " + " ".join(err.split())[:1000]), accepted
        refused, err = compile_text(command, refused_text(True))
        for title, (_, _, _, words) in REFUSED.items():
            yield f"{cxx} refuses {title}", not refused and words in err
        yield f"{cxx}: rcu_barrier() is not ambiguous", compile_text([cxx, "-x", "c++", "-std=c++17", *WARN, f"-I{include}"], UNQUALIFIED)[0]


def not_expanded(headers):
    """Return the public macros with parameters that macros.cc does not have."""
    text = (pathlib.Path(__file__).parent / "macros.cc").read_text()
    names = {name for h in headers for name in re.findall(r"^#define (\w+)\(", h.read_text(), re.M)}
    return sorted(n for n in names if not n.lower().startswith("quiesce") and not re.search(rf"\b{n}\(", text))


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--include", type=pathlib.Path, required=True)
    include = args.parse_args().include.resolve()
    # Files of a CPU are for arch.h and rseq.h, which know whose it is.
    headers = sorted(p for p in include.rglob("*") if p.suffix in (".h", ".hpp") and p.name not in CPU_FILES)
    work = [*jobs(include, headers), *face_jobs(include, headers)]
    if not headers or not work:
        print("Bail out! no header or no compiler")
        return 1
    shown = list(examples(include)) if shutil.which("g++") else []
    macro_checks = list(macros(include))
    planned = len(work) + sum(len(stds_of(text)) for _, text in shown) + len(macro_checks)
    refused = list(refusals(include))
    print(f"1..{planned + 4 + len(refused)}")
    for pair in COMPILERS:
        for compiler in pair:
            if not shutil.which(compiler):
                print(f"# {compiler} is not installed: not tried")
    checks = [(title, command, including(group) + "int quiesce_test_only;\n") for title, command, group in work]
    checks += [(f"{name} compiles as C++{std}", ["g++", "-x", "c++", f"-std=c++{std}", *WARN, f"-I{include}"], text)
               for name, text in shown for std in stds_of(text)]
    checks += macro_checks
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for i, ((title, _, text), (ok, err)) in enumerate(zip(checks, pool.map(lambda c: compile_text(*c[1:]), checks)), 1):
            print(f"{'ok' if ok else 'not ok'} {i} - {title}")
            bad += not ok
            for line in (err + text).splitlines() if not ok else []:
                print("#", line)
    # The test itself must be able to fail.
    title, command, text = macro_checks[0]
    old = too_old(include, command[0])
    last = [("a planted error is refused", not compile_text(work[0][1], including(work[0][2]) + "int unused(int x) { }\n")[0]),
            (f"{title}: a planted one is refused", not compile_text(command, text + "long planted = (long)1.5;\n")[0]),
            (f"faces for C++20 report so in C++17: {old or 'yes'}", not old),
            (f"macros.cc expands all macros: {not_expanded(headers) or 'yes'}", not not_expanded(headers)), *refused]
    for i, (title, ok) in enumerate(last, planned + 1):
        print(f"{'ok' if ok else 'not ok'} {i} - {title}")
        bad += not ok
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
