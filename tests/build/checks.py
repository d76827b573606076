#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The style checks must be able to fail: plant faults in copies of the sources.  Each check reads the whole copy, so faults share one if no
message can be that of another fault.

With a directory of the library's objects and a compiler, it plants an upward call, too.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

from tap import Tap, execute

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Each row has a check, a file, the text that is replaced (None: appended), its replacement, and the check's message.
FAULTS = [
    ("layers", "src/platform/platform.h", None, '#include "rcu/rcu.h"\n', "a layer above"),
    ("layers", "src/runtime/core.h", None, "#include <quiesce/rcu.h>\n", "a layer above"),
    ("layers", "src/rcu/rcu.c", None, '#include "slots/slots.h"\n', "a layer above"),
    ("layers", "src/slots/slots.c", None, "#if defined(__x86_64__)\n#endif\n", "asks for"),
    ("layers", "include/quiesce/base.h", None, "#include <quiesce/rcu.h>\n", "a layer above"),
    ("layers", "tools/quiesce/planted.c", None, '#include "../../src/rcu/rcu.h"\n', "private to the library"),
    ("atomics", "src/runtime/lock.c", None, "int f(int *p);\nint f(int *p) { return __atomic_load_n(p, 5); }\n", "__atomic_load_n"),
    ("atomics", "src/runtime/lock.c", None, "volatile int planted;\n", "volatile"),
    ("atomics", "tools/quiesce/planted.c", None, '\n\n\n\nvoid f(void) { __asm__("mfence"); }\n', "__asm__"),
    ("atomics", "tools/quiesce/planted.c", None, "#include <stdatomic.h>\n", "stdatomic"),
    ("style", "src/runtime/lock.c", "SPDX-License-Identifier: MIT", "MIT", "no SPDX"),
    ("style", "src/runtime/lock.c", None, "void f(void)\n{\n" + "\tg();\n" * 101 + "}\n", "at most 100"),
    ("style", "src/runtime/lock.c", None, "/* TO" + "DO: planted */\n", "TO" + "DO"),
    ("style", "src/runtime/lock.c", None, "/* */\n" * 600, "at most 600"),
    ("style", "docs/design/planted.md", None, "\nThe source is `src/runtime/lock.c`, `planted.c`.\n\n", "planted.c is not in src/runtime/"),
    ("words", "src/runtime/lock.c", None, "int quiesce__helper_" + "po" + "ke;\n", "write wake"),
    ("words", "tools/planted/x.sh", None, "# SPDX-License-Identifier: MIT\n# Run one ru" "ng.\n", "write stage"),
    ("voice", "tools/planted/x.c", None, "/* The thread who waits. */\n", "tools/planted: who: 1, at most 0"),
    ("voice", "tools/planted/x.c", None, "/* Each thread that nobody woke is reported. */\n", "tools/planted: nobody: 1, at most 0"),
    ("voice", "tools/planted/x.c", None, "/* What it frees is reported. */\n", "tools/planted: what: 1, at most 0"),
    ("voice", "docs/planted/x.md", None, "The scan looks at each slot.\n", "docs/planted: look: 1, at most 0"),
    ("voice", "tools/beside/x.sh", None, "# and the last slot is free\n", "tools/beside: start: 1, at most 0"),
    ("voice", "tools/planted/x.c", None, "/* One of ours. */\n", "tools/planted: fragment: 1, at most 0"),
    ("voice", "scripts/voice.list", None, "tools/none\twho\t3\n", "scripts/voice.list allows 3"),
    ("barriers", "src/runtime/lock.c", "LK1: acquire, pairs", "acquire, pairs", "has no comment"),
    ("barriers", "src/runtime/lock.c", "LK1 in quiesce__unlock()", "LK1 in nowhere()", "does not exist"),
    ("barriers", "src/runtime/lock.c", "LK1 in quiesce__unlock()", "LK1 in quiesce__lock_reset()", "has no operation"),
    ("barriers", "src/runtime/lock.c", "pairs with LK1", "pairs with RU1", "says that it pairs"),
    ("barriers", "src/runtime/lock.h", "Relaxed: ", "", "without 'Relaxed"),
    ("barriers", "src/platform/labels.h", "X(LK1)", "X(LK9)", "not declared"),
    ("barriers", "src/runtime/lock.c", " * LK1  ", " * LK1: ", "states what LK1 orders"),
    ("barriers", "src/runtime/lock.c", "released | lock", "released, lock", "has one side only"),
    ("barriers", "src/rcu/rcu_gp.c", " * RU7  see", " * RU7: see", "the head has no row for RU7"),
    ("ordering", "src/runtime/lock.c", "LK1 in quiesce__unlock()", "LK1 in quiesce__lock()", "the sources say otherwise"),
    ("ordering", "src/runtime/lock.c", " * LK1  ", " * LK1  sometimes, ", "the sources say otherwise"),
    ("ordering", "docs/ordering.md", "<!-- ledger WF LQ", "<!-- ledger WF", "the labels LQ have 0 tables"),
    ("ordering", "docs/ordering.md", None, "`no_such_function()`\n", "there is no no_such_function()"),
    ("barriers", "tests/mutants.list", None, "LK9:rmw\tsim\tnothing\n", "there is no mutant"),
    ("barriers", "tests/mutants.list", "LK1:rmw\t", "LK9:rmw\t", "is not in tests/mutants.list"),
]

# Their faults cause messages about other places, too.
ALONE = ("barriers", "ordering")
PARTS = ("include", "src", "tests/mutants.list")
PARTS_OF_ORDERING = ("liburcu", "docs/ordering.md", "tests/litmus", "tests/model")


def plant(tree, name, old, new):
    path = tree / name
    if old is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text() if path.exists() else "/* SPDX-License-Identifier: MIT */\n"
        path.write_text(before + new)
        return True
    text = path.read_text() if path.exists() else ""
    path.write_text(text.replace(old, new)) if old in text else None
    return old in text


def upward_call(tap, objects, compiler):
    with tempfile.TemporaryDirectory() as tmp:
        copy = shutil.copytree(objects, pathlib.Path(tmp) / "objects")
        source = pathlib.Path(tmp) / "lock.c"
        source.write_text("void quiesce_synchronize_rcu(void);\nvoid f(void);\nvoid f(void) { quiesce_synchronize_rcu(); }\n")
        subprocess.run([*compiler, "-c", source, "-o", copy / "runtime_lock.c.o"], check=True)
        tap.run("layers: an upward call is found", [sys.executable, ROOT / "scripts/check-layers.py", ROOT, copy], want=1,
                text="src/runtime/lock.c: uses quiesce_synchronize_rcu of src/rcu/")


def stale_patch(tap):
    """A header that has changed where a mutant of it would be."""
    with tempfile.TemporaryDirectory() as tmp:
        name = "quiesce/detail/rcu_read.h"
        include = pathlib.Path(tmp) / "include"
        (include / name).parent.mkdir(parents=True)
        text = (ROOT / "include" / name).read_text()
        changed = text.replace("QUIESCE_RCU_DEPTH) > 1", "QUIESCE_RCU_DEPTH) > 2")
        assert changed != text
        apply = [sys.executable, ROOT / "tests/guarded/apply.py", pathlib.Path(tmp) / "guarded.h", include, ROOT / "tests/guarded", name]
        (include / name).write_text(text)
        tap.run("guarded headers: a patch that applies is accepted", apply)
        (include / name).write_text(changed)
        tap.run("guarded headers: a patch that does not apply is found", apply, want=1, text="guarded headers: ")


def shareable(row, rows):
    """Whether these faults can be in one copy: a file is changed in one place only, or has text added; messages are of different words or files."""
    check, name, old, _, said = row
    return check == rows[0][0] and check not in ALONE and all(
        (name != r[1] or (old is None and r[2] is None)) and (said != r[4] or name != r[1]) for r in rows)


def grouped(faults):
    groups = []
    for row in faults:
        group = next((g for g in groups if shareable(row, g)), None)
        groups.append([row]) if group is None else group.append(row)
    return groups


def found(row, rows, lines):
    """Whether a line has the fault's message, and its file if another fault has the same message."""
    _, name, _, _, said = row
    alone = [r[4] for r in rows].count(said) == 1
    return any(said in line and (alone or name in line) for line in lines)


def check_group(tap, rows):
    check = rows[0][0]
    with tempfile.TemporaryDirectory() as tmp:
        tree = pathlib.Path(tmp)
        for part in PARTS + (PARTS_OF_ORDERING if check == "ordering" else ()):
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, tree / part)
            elif (ROOT / part).is_file():
                (tree / part).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / part, tree / part)
        planted = [plant(tree, name, old, new) for _, name, old, new, _ in rows]
        run = execute([sys.executable, ROOT / "scripts" / f"check-{check}.py", tree])
    lines = (run.stdout + run.stderr).splitlines()
    for row, there in zip(rows, planted):
        _, name, old, _, said = row
        tap.result(there and run.returncode == 1 and found(row, rows, lines), f"{check}: a fault in {name} is found: {said}",
                   run.stdout + run.stderr if there else f"{old!r} is not in {name}: nothing to plant")


def main():
    tap = Tap()
    stale_patch(tap)
    if len(sys.argv) > 2:
        upward_call(tap, pathlib.Path(sys.argv[1]), sys.argv[2:])
    faults = []
    for row in FAULTS:
        check, name, old, _, said = row
        if not (ROOT / name).exists() and old is not None:
            tap.skip(f"{check}: a fault in {name} is found: {said}", f"there is no {name}")
        else:
            faults.append(row)
    for rows in grouped(faults):
        check_group(tap, rows)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
