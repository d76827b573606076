#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The checklists of CONTRIBUTING.md are true.

	checklists.py --root DIR                 each file that a checklist names exists; a new CPU's list names each file that asks for the CPU,
	                                         and a primitive's each file that names its example
	checklists.py --root DIR --meson MESON   a new type and a new peer of the tool, made in a copy of the tree in just the files that
	                                         the checklists name, are built and measured

Prints TAP.  Where there is a compiler cache, files that were compiled before come from it.
"""
import argparse
import os
import pathlib
import re
import shutil
import sys
import tempfile

from tap import Tap, execute

DIRECTORIES = ("include/", "src/", "tools/", "tests/", "liburcu/")
NOT_THE_LIBRARY = ("tests/kernel/", "tests/build/checks.py", "tests/build/checklists.py", "tests/build/fibers.c")
ASKS = re.compile(r"#.*\bdefined\(__(?:x86_64|aarch64|riscv|s390x|SSE2)__?\)|#if(?:n?def)? __(?:x86_64|aarch64|SSE2)__|\.cpu_family\(\)")

TYPE_C = """/* SPDX-License-Identifier: MIT */
/* checked.c - a section of RCU, as the type of a checklist. */
#include <quiesce/rcu.h>

#include "loop.h"
#include "registry.h"

OP_READ(checked, rcu_read_lock(), OP_LOAD, rcu_read_unlock());

TYPE(checked, .rank = 305, .what = "a type that follows a checklist", .read = &checked_read);
"""
PEER_C = """/* SPDX-License-Identifier: MIT */
/* other.c - a lock of the C library, as the peer of a checklist. */
#include <pthread.h>

#include "loop.h"
#include "registry.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

OP_READ(other_lock, pthread_mutex_lock(&lock), OP_LOAD, pthread_mutex_unlock(&lock));

TYPE(other_lock, .rank = 1850, .what = "a type of a peer that follows a checklist", .read = &other_lock_read);
"""
# Each file that the checklist names, with the text behind which a line is added (None: the file is new), and that line.
TYPE = {
    "tools/quiesce/types/quiesce/X.c": (None, TYPE_C),
    "tools/meson.build": ("'percpu_ref',", " 'checked',"),
}
PEER = {
    "tools/quiesce/types/X/*.c": (None, PEER_C),
    "tools/peers/meson.build": ("peers = {\n", "  'other': ['another library', [threads], ['other.c']],\n"),
    "scripts/bootstrap.sh": ("run  - pc:tbb libtbb-dev\n", "run  - cmd:true coreutils\n"),
}
MOST_ROWS = 5
# Files that name the example of a primitive, although a new primitive needs no change there.
NOT_OF_A_PRIMITIVE = {
    "CONTRIBUTING.md": "the checklist",
    "tests/build/checklists.py": "this test",
    "cases/label/*": "a case study of that primitive",
    "examples/backend.c": "a problem that has an example, as not each primitive has",
    "kernel/tests/haz_refscale.c": "the kernel's percpu_ref",
    "tests/kernel/*": "the kernel's percpu_ref",
    "docs/kernel.md": "the kernel's percpu_ref",
    "docs/figures/run.json": "written by `make figures`",
    "tests/build/abi/*": "written at a release",
    "docs/performance.md": "written by `make figures`",
    "docs/design/shazptr.md": "an example of a call that restarts sequences",
    "include/quiesce/detail/percpu.h": "what it is built on",
    "tests/unit/test_many.c": "its call that takes many objects",
}


def checklists(root):
    """{title: (name of the example, [path ...])}"""
    text = (root / "CONTRIBUTING.md").read_text()
    found = {}
    for title, body in re.findall(r"^### ([^\n]*)\n(.*?)(?=^##)", text[text.index("\n## Checklists"):], re.M | re.S):
        example = re.search(r"Example: `([^`]+)`", body)
        rows = re.findall(r"^\| (`[^|]*) \|", body, re.M)
        found[title] = example and example.group(1), [path for row in rows for path in re.findall(r"`([^`]+)`", row)]
    return found


def tracked(root):
    run = execute(["git", "-C", root, "ls-files", "-z"])
    if run.returncode == 0 and run.stdout:
        return [name for name in run.stdout.split("\0") if name and (root / name).is_file()]
    names = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    return [name for name in names if not name.startswith((".git/", "build")) and "__pycache__" not in name]


def stem(path, name):
    """The path with the name in the place of each X that is a word of its own."""
    return re.sub(r"(?<![A-Za-z])X(?![A-Za-z])", name, path)


def check_paths(tap, root):
    for title, (example, paths) in checklists(root).items():
        missing = [path for path in paths if not list(root.glob(stem(path, example or "X")))]
        tap.result(example and paths and not missing, f"{title}: the files of the example {example} are there", "\n".join(missing))


def unnamed(files, paths):
    """Return the files that no path or pattern of @paths names."""
    return [name for name in files if not any(pathlib.PurePath("/", name).match(f"/{path}") for path in paths)]


def check_primitive(tap, root):
    example, paths = checklists(root)["A primitive"]
    naming = [name for name in tracked(root) if example in name or example in (root / name).read_text(errors="replace")]
    rest = unnamed(naming, [stem(path, example) for path in paths])
    missing = unnamed(rest, NOT_OF_A_PRIMITIVE)
    tap.result(len(naming) > 50 and not missing, f"A primitive: the {len(naming)} files that name {example} are named", "\n".join(missing))
    stale = [path for path in NOT_OF_A_PRIMITIVE if len(unnamed(rest, [path])) == len(rest)]
    tap.result(not stale, "A primitive: each exception has a file that is not in the list", "\n".join(stale))


def check_cpu(tap, root):
    _, paths = checklists(root)["A CPU"]
    asking = [name for name in tracked(root) if name.startswith(DIRECTORIES) and not name.startswith(NOT_THE_LIBRARY)
              and re.search(r"(?:\.(?:c|h|hpp|cc|cpp)|meson\.build)$", name) and ASKS.search((root / name).read_text(errors="replace"))]
    missing = unnamed(asking, paths)
    tap.result(asking and not missing, f"A CPU: the {len(asking)} files that ask for the CPU are named", "\n".join(missing))


def follow(tap, tree, title, named, edits, name):
    """Change the files that the checklist names, and no others."""
    good = tap.result(set(named) == set(edits) and len(named) <= MOST_ROWS, f"{title}: at most {MOST_ROWS} files; each needs a change, and no other",
                      "\n".join(sorted(set(named) ^ set(edits))))
    for path in named:
        if path in edits:
            good = change(tap, tree / stem(path, name).replace("*", name), *edits[path]) and good
    return good


def change(tap, file, anchor, more):
    text = "" if anchor is None else file.read_text()
    if anchor is not None and text.count(anchor) != 1:
        return tap.result(False, f"{file.name}: {anchor!r} is there once", f"{text.count(anchor)} times")
    file.parent.mkdir(exist_ok=True)
    file.write_text(more if anchor is None else text.replace(anchor, anchor + more))
    return True


def measured(tap, tool, name):
    tap.run(f"{name} is measured", [tool, "refscale", f"--type={name}", "--readers=1", "--runs=1", "--loops=1000"], text=name)


def check_building(tap, root, meson, tmp):
    tree, lists = tmp / "tree", checklists(root)
    for name in tracked(root):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, tree / name)
    # No C++ compiler, no optimisation, no debugging information: the build takes seconds, and its directory is not part of what is cached.
    setup = [meson, "setup", tree / "build", tree, "--buildtype=plain", "-Dtests=false", "-Dpeers=disabled", "-Dliburcu=false", "--werror"]
    ninja = ["ninja", "-C", tree / "build", "tools/quiesce"]
    if not follow(tap, tree, "type", lists["A type of benchmark"][1], TYPE, "checked"):
        return
    if not follow(tap, tree, "peer", lists["A peer"][1], PEER, "other"):
        return
    if not tap.run("the build is set up", setup, env={"CXX": "false"}):
        return
    if tap.run("the tool and the module are built", [*ninja, "tools/peers/other.so"]):
        measured(tap, tree / "build/tools/quiesce", "checked")
        measured(tap, tree / "build/tools/quiesce", "other_lock")
        absent = execute([tree / "build/tools/quiesce", "refscale", "--type=ck_hp"])
        tap.result("needs" in absent.stderr or "not there" in absent.stderr, "a type of a peer that was not built is known by its prefix", absent.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--meson", help="build the types that follow the checklists")
    args = parser.parse_args()
    root, tap = args.root.resolve(), Tap()
    if args.meson:
        with tempfile.TemporaryDirectory() as tmp:
            check_building(tap, root, args.meson, pathlib.Path(tmp))
    else:
        check_paths(tap, root)
        check_primitive(tap, root)
        check_cpu(tap, root)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
