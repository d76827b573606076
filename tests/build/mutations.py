#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/mutation.py: the changes of a source that are drawn, the code that is left alone, and the list of survivors."""
import pathlib
import sys
import tempfile

from tap import Tap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import mutation  # noqa: E402

SOURCE = """\
/* a comment; with = code */
#include "x.h"

static int nr = 0;

static int sum(const int *from, int nr)
{
	int all = 0;
	struct item *first;
	uint32_t k, *at;

	if (!nr)
		return -1;
	/* A comment. */
	call_with_comment();
	for (int i = 0; i < nr; i++)
		all += from[i];
	if (QUIESCE_MUTANT(sum_lost))
		all = 0;
	call(all, "text; with < it",
	     nr - 1);
	do
		step();
	while (all > limit);
	switch (nr) {
	case 1:
		first = NULL;
		break;
	default:
		break;
	}
	(void)first;
	return all;
}

#define for_each(i, nr)              \\
	do {                         \\
		(i) = 0;             \\
		use(i);              \\
	} while (0)
"""

EXPECTED = [
    ("delete", "call_with_comment();"), ("delete", "all += from[i];"), ("delete", 'call(all, "text; with < it", nr - 1);'), ("delete", "step();"),
    ("delete", "first = NULL;"), ("delete", "break;"), ("delete", "break;"), ("delete", "(i) = 0;"), ("delete", "use(i);"),
    ("negate", "if (!nr)"), ("negate", "for (int i = 0; i < nr; i++)"), ("negate", "while (all > limit);"), ("negate", "} while (0)"),
    ("bound", "for (int i = 0; i < nr; i++)"), ("bound", "nr - 1);"), ("bound", "while (all > limit);"),
]


def tree(directory, text):
    path = pathlib.Path(directory) / "src/sum.c"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return pathlib.Path(directory)


def applied(root, m):
    path = root / m.file
    before = path.read_text()
    m.apply(root)
    after = path.read_text()
    path.write_text(before)
    return before.split("\n"), after.split("\n")


def differs_where_it_says(root, m):
    before, after = applied(root, m)
    changed = [i for i, (a, b) in enumerate(zip(before, after)) if a != b]
    return len(before) == len(after) and changed and m.first <= changed[0] and changed[-1] < m.first + len(m.before)


def known(tap, root, every):
    path = root / "survivors.list"
    call = next(m for m in every if m.code.startswith("call("))
    path.write_text(f"# a comment\n{call.file}\t{call.function}\t{call.kind}\t{call.code}\tpolicy\tit is only tried\n"
                    "src/*\tsum\tnegate\tif (!nr)\tequivalent\twith patterns\nsrc/sum.c\tgone\tdelete\tx();\ttext\tstale\n")
    lines = mutation.read_known(path)
    tap.result([sum(k.matches(m) for m in every) for k in lines] == [1, 1, 0], "a line of the list means its mutation, and no other")
    path.write_text("src/sum.c\tsum\tdelete\tx();\tbecause\tof no kind\n")
    try:
        mutation.read_known(path)
        tap.result(False, "a line of another kind is refused")
    except ValueError as error:
        tap.result(":1:" in str(error), "a line of another kind is refused", error)


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as tmp:
        root = tree(tmp, SOURCE)
        every = list(mutation.mutations(root))
        found = [(m.kind, m.code) for m in every]
        tap.result(sorted(found) == sorted(EXPECTED), "statements, conditions and bounds are found, and nothing else",
                   f"missing {[e for e in EXPECTED if e not in found]}, too many {[f for f in found if f not in EXPECTED]}")
        tap.result(all(differs_where_it_says(root, m) for m in every), "each changes the lines that it names, and moves none")
        macro = next(m for m in every if m.code == "use(i);")
        tap.result(macro.after[0].endswith("\\"), "a macro stays one")
        first = [(m.kind, m.code, m.mark) for m in mutation.draw(root, 7)]
        tap.result(first == [(m.kind, m.code, m.mark) for m in mutation.draw(root, 7)], "a seed draws the same")
        tap.result(first != [(m.kind, m.code, m.mark) for m in mutation.draw(root, 8)], "another seed draws others")
        known(tap, root, every)
        tree(tmp, SOURCE.replace("\tif (!nr)\n\t\treturn -1;\n", "\n\n"))
        later = [(m.kind, m.code, m.mark) for m in mutation.draw(root, 7)]
        tap.result(later == [f for f in first if f[1] != "if (!nr)"], "a change leaves the rest of the draw in its order")
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
