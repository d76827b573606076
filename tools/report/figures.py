#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One run of the tool makes all figures of README.md, docs/performance.md, docs/primitives.md and docs/walks.md, and the pictures there.

	figures.py --tool QUIESCE --root DIR [--short]   measure (nine minutes on a quiet machine), then write pages and pictures
	figures.py --root DIR                            write them anew from docs/figures
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pages  # noqa: E402  from this directory
import report  # noqa: E402

WALKS = ["walkscale", "--threads=1,2,16", "--json"]
WALK_FIELDS = ("type", "structure", "keys", "updates", "threads", "unit", "n", "min", "p50", "max", "to_exchange", "to_exchange_low",
               "to_exchange_high", "waiting", "waiting_mean")


def lines_of(rows):
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]"


def compact(document, fields=None):
    """The JSON text with a row in a line, without what has no value."""
    lists = {"faster": document.get("faster", []),
             "rows": [{k: v for k, v in row.items() if v is not None and (not fields or k in fields)} for row in document["rows"]]}
    head = {k: v for k, v in document.items() if k not in lists}
    return json.dumps(head)[:-1] + "".join(f', "{name}": {lines_of(rows)}' for name, rows in lists.items() if rows) + "}\n"


def measure(tool, root, short):
    """Nothing is written before everything has been measured."""
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        subprocess.run([tool, "run", "--markdown", f"--output={tmp}/page", f"--record={tmp}/run",
                        *(["--seconds=0.002", "--runs=1"] if short else [])], check=True)
        subprocess.run([tool, *WALKS, f"--output={tmp}/walks", *(["--seconds=0.002", "--runs=1"] if short else ["--runs=4"])], check=True)
        run, walks = (json.loads((tmp / n).read_text(encoding="utf-8")) for n in ("run", "walks"))
        page = (tmp / "page").read_text(encoding="utf-8")
    if run["host"]["build"] != "release" and not short:
        sys.exit(f"figures.py: {tool} is a build of type {run['host']['build']}; figures are those of a release build")
    missing = [note for document in (run, walks) for note in document["notes"] if "out of time" in note or "interrupted" in note]
    if missing and not short:
        sys.exit("figures.py: nothing was written, the machine is too busy or slow:\n" + "\n".join(missing))
    walks["rows"] = [r for r in walks["rows"] if r["keys"] == pages.STRUCTURES[r["structure"]]]
    (root / pages.RUN).parent.mkdir(exist_ok=True)
    (root / pages.RUN).write_text(compact(run), encoding="utf-8")
    (root / pages.WALKS).write_text(compact(walks, WALK_FIELDS), encoding="utf-8")
    (root / "docs/performance.md").write_text(page, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool")
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--short", action="store_true", help="budgets too short for figures: a test of this program")
    opt = parser.parse_args()
    missing = report.find_libraries()
    if missing:
        sys.exit(f"figures.py: pictures need {' and '.join(missing)}")
    import pictures
    if opt.tool:
        measure(opt.tool, opt.root, opt.short)
    try:
        for page, text in pages.written(opt.root).items():
            (opt.root / page).write_text(text, encoding="utf-8")
    except (pages.Wrong, KeyError) as error:
        sys.exit(f"figures.py: {error.args[0]}")
    pictures.draw(opt.root)
    for text, holds in pages.CLAIMS:
        if not holds(pages.load(opt.root, pages.RUN)["rows"]):
            print(f"figures.py: the figures contradict the text: {text}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
