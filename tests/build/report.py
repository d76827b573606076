#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""quiesce report: mistakes, two reports compared, a page of given figures, interruption.

scripts/ci/report.sh checks the page of a whole run in a browser.
"""
import copy
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from cli import Tool, diagnosis
from tap import Tap, execute, tool_options

PICTURES = "python3-matplotlib or python3-jinja2 is not installed"
CELL = {"fence": "light", "unit": "ns", "n": 3, "min": 0.9, "p50": 1.0, "p99": 1.2, "max": 1.3, "spread": 0.1}


def document():
    """A small report."""
    reads = [{**CELL, "scenario": "read", "type": t, "threads": n, "p50": p} for t, p in (("rcu", 1.0), ("liburcu_memb", 2.0)) for n in (1, 2)]
    reads += [{**CELL, "scenario": "read", "type": t, "threads": 1, "p50": p} for t, p in (("hazptr", 1.0), ("ck_hp", 0.5), ("libcds_hp", 4.0))]
    tables = [{**CELL, "scenario": "hash", "type": "hashmap", "threads": n, "keys": "uniform:1000", "nr_keys": 1000, "updates": 0,
               "efficiency": 1, "article_efficiency": None, "p50": 1e8 * n} for n in (1, 2)]
    study = [{"case": "timers", "scenario": "0 % updates", "variant": v, "fence": None, "metric": "Mops", "n": 2, "median": m, "min": m, "max": m,
              "spread": 0.0} for v, m in (("rcu_lock", 600.0), ("global_spin", 30.0))]
    part = {"command": "quiesce x", "seconds": 1}
    return {"schema": 1, "report": 1, "quick": True, "date": "2026-01-01", "version": "0.1.0", "notes": ["something was <left> out"],
            "host": {"cpu": "CPU", "cores": 2, "kernel": "6.18", "build": "release"},
            "peers": ["liburcu", "ck"],
            "types": [{"subcommand": "refscale", "type": name, "groups": groups, **({"reason": "a slot in hand"} if name == "ck_hp" else {})} for name, groups in (
                ("rcu", ["FAMILY_ALL"]), ("liburcu_memb", ["FAMILY_ALL", "PEER_RCU"]), ("hazptr", ["FAMILY_OBJECT"]),
                ("ck_hp", ["FAMILY_OBJECT", "PEER_HAZPTR"]), ("libcds_hp", ["FAMILY_OBJECT", "PEER_HAZPTR"]))],
            "cases": [{"name": "timers", "what": "ids", "document": None, "honesty": "small", "built": True}],
            "parts": {"reads": {**part, "rows": reads}, "tables": {**part, "rows": tables},
                      "study": {**part, "rows": study, "shapes": [{"case": "timers", "what": "a / b", "published": "24", "median": 20.0,
                                                                   "min": 19.0, "max": 21.0}]}}}


def write(path, value):
    path.write_text(json.dumps(value))
    return path


def check_mistakes(tap, tool, tmp):
    bad = write(tmp / "bad.json", {"rows": []})
    for args, status, text in ((["x"], 2, "unexpected argument 'x'"), (["--compare", "a.json"], 2, "two files"), (["--csv"], 2, "--csv"),
                               (["--json"], 2, "--json"), (["--compare", "--quick", "a", "b"], 2, "--compare"),
                               ([f"--output={bad}/x"], 2, "cannot write"),
                               (["--compare", "/dev/zero", bad], 1, "/dev/zero is not"), (["--compare", tmp, bad], 1, "directory"),
                               (["--compare", write(tmp / "deep.json", None), bad], 1, "is not the report.json"),
                               (["--compare", write(tmp / "half.json", {"report": 1, "parts": {}}), bad], 1, "is not the report.json"),
                               (["--compare", tmp / "none.json", bad], 1, "none.json"), (["--compare", bad, bad], 1, "is not the report.json")):
        run = tool("report", *args)
        tap.result(run.returncode == status and text in run.stderr and len(run.stderr.splitlines()) == 1 and not run.stdout,
                   f"report {' '.join(map(str, args))}".replace(str(tmp), "DIR"), diagnosis(run))


def check_compare(tap, tool, tmp):
    old, new = document(), copy.deepcopy(document())
    reads, tables, study = (new["parts"][p]["rows"] for p in ("reads", "tables", "study"))
    reads[0]["p50"] = 1.05  # within the spread of a tenth
    reads[1]["p50"] = 1.5
    tables[0]["p50"] = 2e8  # more is better there
    study[1]["metric"] = "ms"
    new["host"]["kernel"] = "6.19"
    paths = write(tmp / "old.json", old), write(tmp / "new.json", new)
    rows = {tuple(r["what"]): r["verdict"] for r in json.loads(tool.good("report", "--compare", *map(str, paths), "--json"))["rows"]}
    wanted = {("reads", "read", "rcu", "light", "1 threads"): "none", ("reads", "read", "rcu", "light", "2 threads"): "worse",
              ("tables", "hash uniform:1000", "hashmap", "light", "1 threads"): "better",
              ("timers", "0 % updates", "global_spin", None, "Mops"): "only old", ("timers", "0 % updates", "global_spin", None, "ms"): "only new"}
    tap.result(all(rows.get(k) == v for k, v in wanted.items()) and len(rows) == 12, "--compare: a change within the spread is none", rows)
    text = tool.good("report", "--compare", *map(str, paths))
    tap.result("6.18" in text and "6.19" in text and "different machines" in text and re.search(r"rcu 2 threads .* 1 .* 1.5 .*\+50% worse", text),
               "--compare, table", text)


def check_page(tap, script, tmp):
    given = write(tmp / "given.json", document())
    run = execute([sys.executable, script, "--from", given, "--output", tmp / "page"])
    if "its pictures need" in run.stderr:
        tap.result(run.returncode == 1 and not (tmp / "page").exists(), "without its packages it leaves no directory behind", diagnosis(run))
        tap.skip("a page of given figures", PICTURES)
        return
    page = (tmp / "page" / "index.html").read_text() if run.returncode == 0 else ""
    pictures = len(list((tmp / "page").glob("*.svg"))), len(list((tmp / "page").glob("*.png")))
    tap.result(pictures == (5, 5) and page.count("<svg") == 5, "a page of given figures has its pictures", f"{pictures}\n{diagnosis(run)}")
    texts = ("best peer: liburcu_memb 2.00 ns (2.0x), ck_hp 0.50 ns (faster: 0.50x)", "Where others are faster", "a slot in hand", "&lt;left&gt;", "24", "Case study: timers", "quick run")
    tap.result(all(t in page for t in texts), "its texts", [t for t in texts if t not in page])


def check_interrupt(tap, tool, tmp):
    process = subprocess.Popen([tool.path, "report", "--quick", f"--output={tmp}/cut"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    first = process.stderr.readline()
    if "its pictures need" in first:
        process.wait()
        tap.skip("Ctrl-C", PICTURES)
        return
    time.sleep(3)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    cut = json.loads((tmp / "cut" / "report.json").read_text())
    tap.result(process.returncode == 130 and any("interrupted" in n for n in cut["notes"]) and (tmp / "cut" / "index.html").exists(),
               "Ctrl-C: the page has what was measured", f"{process.returncode} {out} {first}{err}")


FAKE = """#!/bin/sh
# A tool that has measured something as soon as it is asked to end, and takes a second SIGINT as a request to end at once.
case "$1 $2" in
--version*) echo quiesce 0 ;;
doctor*) echo '{"doctor": []}' ;;
"types ") echo '{"peers": [], "types": [{"subcommand": "refscale", "type": "rcu", "groups": ["REPORT_READ"]}]}' ;;
"study --json") echo '{"host": {}, "cases": [{"name": "timers", "built": true}, {"name": "label", "built": false}]}' ;;
*)
	echo "$@" >>"$LOG"
	case "$1" in study|rcuscale) echo '{"rows": []}'; exit 0 ;; esac
	trap 'trap "exit 1" INT; sleep 0.5; echo {\\"rows\\": [1]}; exit 130' INT
	touch "$LOG.ready"
	while :; do sleep 0.1; done ;;
esac
"""


def fake_report(script, tmp, *parts):
    """measure.py with a tool that is a shell script; the process prints what it has at the end, and writes tmp/saved after each part."""
    tool, log = tmp / "fake", tmp / "log"
    tool.write_text(FAKE)
    tool.chmod(0o755)
    code = ("import json, pathlib, sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1]); import measure; "
            "saved = lambda document: pathlib.Path(sys.argv[3]).write_text(json.dumps(document)); "
            "print(json.dumps(measure.measure(sys.argv[2], measure.Signals(), True, sys.argv[4:], saved)))")
    return subprocess.Popen([sys.executable, "-c", code, pathlib.Path(script).parent, tool, tmp / "saved", *parts], env={**os.environ, "LOG": str(log)},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True), log


def check_early_end(tap, script, tmp):
    """Without its packages, too: they are for the page alone."""
    for number in (signal.SIGINT, signal.SIGTERM):
        process, log = fake_report(script, tmp, "reads", "waits")
        ready = pathlib.Path(f"{log}.ready")
        while not ready.exists() and process.poll() is None:
            time.sleep(0.02)
        os.killpg(process.pid, number)
        out, err = process.communicate(timeout=60)
        ready.unlink(missing_ok=True)
        document, failed, stopped = json.loads(out or "[{}, 1, 0]")
        tap.result(process.returncode == 0 and stopped and not failed and document["parts"]["reads"]["rows"] == [1] and
                   json.loads((tmp / "saved").read_text()) == document and any("interrupted" in n for n in document["notes"]),
                   f"{signal.Signals(number).name}: the part that runs gives what it has", f"{process.returncode} {out} {err}")


def check_not_built(tap, script, tmp):
    process, log = fake_report(script, tmp, "study")
    out, err = process.communicate(timeout=60)
    document, failed, _ = json.loads(out or "[{}, 1, 0]")
    tap.result(not failed and document.get("notes") == ["study: label: its program was not built"] and "study timers --quick --runs=1 --json" in log.read_text(),
               "a case study that was not built is a note, no failure", f"{out} {err} {log.read_text()}")


def main():
    opt = tool_options("script")
    tap = Tap()
    tool = Tool(tap, opt.tool)
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        check_mistakes(tap, tool, tmp)
        check_compare(tap, tool, tmp)
        check_page(tap, opt.script, tmp)
        check_interrupt(tap, tool, tmp)
        check_early_end(tap, opt.script, tmp)
        check_not_built(tap, opt.script, tmp)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
