#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`quiesce run`: six lines, then tables that fit into a line, on a terminal, without one, and in Markdown; last, where others are faster.

Budgets are so short that figures mean nothing: the test checks the form of the output, and its end.
"""
import argparse
import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from itertools import zip_longest

from cli import diagnosis, interrupt, jobs_begun, stopped
from tap import Tap, execute

EXIT_FAILED = 1  # tool.h
QUICK = ["run", "--seconds=0.001", "--runs=1"]
LINES = ["Read", "Wait", "Retirement", "Read lock", "Reference", "Lookup"]
TABLES = ["Waiting: the test of", "Waiting for readers of", "Waiting beside", "Reading", "Reading one object", "Read locks and",
          "Bursts of writes", "Deferred reclamation", "Hash tables"]
PUBLISHED = ["rcu", "shazptr", "shazptr_skip_self_scan", "shazptr_wildcard", "shazptr_wildcard_skip_self_scan"]
LAST_WORD = "microseconds."  # below the first table
DURATION = r"\d[\d.]*(?: [num]?s)?(?: \(p99 \d[\d.]*(?: [num]?s)?\))?"
PEER = rf"(?:[a-z]\w+ )?{DURATION} \((?:faster: )?\d[\d.]*x\)"


def headline(text):
    """Return the lines below the first title, and the text after them."""
    found = re.search(r"^(?:## )?What it costs .*\n\n((?:(?:[A-Z-]| {11}).*\n|\n(?=- ))+)\n", text, re.M)
    lines = re.sub(r"\n {11}", " ", found[1]) if found else ""
    return [line for line in lines.split("\n") if line], text[found.end():] if found else ""


def check_headline(tap, name, text, mark):
    lines, rest = headline(text)
    titles = [re.match(rf"{mark}({'|'.join(sorted(LINES, reverse=True))})\b", line) for line in lines]
    tap.result([m and m[1] for m in titles] == LINES, f"{name}: six lines", text[:2000])
    for label, line in zip(LINES, lines):
        tap.result(re.search(rf" {DURATION}, .*{DURATION}; (?:best peer: {PEER}, {PEER}|no peer is installed)$", line),
                   f"{name}: {label}: ours, and the best peer", line)
    check_faster(tap, name, lines, rest)
    return rest


def printed_faster(text):
    """Return the rows of the last two tables: {(what, ours, peer, x)}, those of full fences apart."""
    found = re.search(r"^(?:## )?Where others are faster\n((?:.*\n)*?)(?:^(?:## )?(The same with (?:light|full) fences)\n((?:.*\n)*))?\Z", text, re.M)
    row = r"^(?:\| )?(\w.*?: \w.*?) [ |]*([a-z]\w+) [ |]*[\d.]+M? [ |]*([a-z]\w+) [ |]*[\d.]+M? [ |]*(\d+\.\d+)x(?: \|)?$"
    return [set(re.findall(row, part or "", re.M)) for part in ((found[1], found[3]) if found else ("", ""))]


def check_faster(tap, name, lines, text):
    """A line in which a peer is faster has a row in the table, which has only such rows, and each peer of it a reason."""
    rows = set.union(*printed_faster(text))
    slower = sum(line.count("(faster: ") for line in lines)
    tap.result(len(rows) >= slower and all(float(row[-1]) < 1 for row in rows), f"{name}: where others are faster, last", f"{slower} in the lines, rows: {rows}")
    peers = {row[2] for row in rows}
    reasons = set(re.findall(r"^(?:- )?(\w+): [a-z].*", text[text.find("Where others are"):], re.M))
    tap.result(peers <= reasons, f"{name}: with the reasons", f"{peers - reasons}")


def is_ahead(theirs, ours, field, more):
    here, there = ours[field], theirs[field]
    spread = "spread" if field != "garbage_second" else None  # that field is of the row's rate
    spreads = sum(r[field] * (r.get(spread) or 0) / 2 for r in (ours, theirs))
    return (there - here if more else here - there) > max(spreads, 0.005 * max(here, there))


def expected_faster(rows, types):
    """By the registrations and the rule: {(subcommand, scenario, threads, type, fence, field)} of the cells of one round in which a peer is ahead."""
    peers = {(t["subcommand"], t["type"]): t for t in types}
    cells = {}
    for row in rows:
        for field in ("section_us",) if row["subcommand"] == "rwscale" else ("p50", "garbage_second"):
            if row.get(field) is not None:
                cells.setdefault((row["subcommand"], row["scenario"], row["threads"], field), []).append(row)
    ahead = set()
    for (command, scenario, threads, field), here in cells.items():
        if scenario == "document" or (scenario == "stalled" and threads > 1) or (field == "garbage_second" and scenario != "stalled"):
            continue  # no table has it
        more = field == "p50" and here[0]["unit"].endswith("/s")
        for row in here:
            groups = set(peers[command, row["type"]]["peers"])
            theirs = [r for r in here if groups & set(peers[command, r["type"]]["groups"]) and r["fence"] is None]
            if any(is_ahead(r, row, field, more) for r in theirs):
                ahead.add((command, scenario, threads, row["type"], row["fence"], field))
    return ahead


def check_record(tap, tool, text, record):
    """The recorded cells are those of the tables, and those that the rows show to be behind."""
    document = json.loads(record.read_text())
    types = json.loads(execute([tool, "types"]).stdout)["types"]
    shown = printed_faster(text)
    rows, cells = sorted(row for part in shown for row in part), sorted((c["what"], c["type"], c["peer"], c["ratio"]) for c in document["faster"])
    wrong = [f"{row}: {cell}" for row, cell in zip_longest(rows, cells)
             if not (row and cell and row[:-1] == cell[:-1] and abs(float(row[-1]) - cell[-1]) < 0.0051)]
    tap.result(cells and not wrong, "the cells where others are faster are recorded", "\n".join(wrong))
    here = {(c["subcommand"], c["scenario"], c["threads"], c["type"], c["fence"], c["field"]) for c in document["faster"]}
    wanted = expected_faster(document["rows"], types)
    tap.result(here == wanted, "they are those of the registrations and the rule", here ^ wanted)


def check_plain(tap, run, theirs):
    """Judge the whole output without a terminal.  The code of @theirs that crashes or hangs its process is reported, and is no failure."""
    notes = re.findall(r"^note: .*", run.stdout, re.M)
    ours = [note for note in notes if not re.match(rf"note: (?:{'|'.join(theirs)})_\w+: (?:HUNG|CRASHED)", note)]
    good = run.returncode == (EXIT_FAILED if notes and not ours else 0) and run.stderr == ""
    why = "" if good else f", not {run.returncode}: {notes} {run.stderr[:200]!r}"  # in the name: a summary has no more
    tap.result(good, f"without a terminal: status 0{why}", diagnosis(run))
    wide = [line for line in run.stdout.split("\n") if len(line) > 80]
    tap.result(not wide, "without a terminal: no line is longer than 80", "\n".join(wide))
    rest = check_headline(tap, "without a terminal", run.stdout, "")
    at = [rest.find(f"\n\n{title}") for title in TABLES]
    tap.result(-1 not in at and at == sorted(at), "without a terminal: all tables, after the six lines", run.stdout)
    tap.result(not ours, f"without a terminal: nothing is left out{', but ' + '; '.join(ours) if ours else ''}", run.stdout)


def read_until(read, sign):
    """Return the output up to @sign, or to the end."""
    text = ""
    while sign not in text:
        more = read()
        if not more:
            break
        text += more
    return text


def on_terminal(tool, columns, sign):
    """Run with a terminal of that many columns as standard output; send Ctrl-C when @sign has been printed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))

    def read():
        try:
            return os.read(ours, 65536).decode()
        except OSError:  # the other end is closed
            return ""

    with subprocess.Popen([tool, *QUICK], stdout=theirs, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        os.close(theirs)
        text = read_until(read, sign)
        os.killpg(process.pid, signal.SIGINT)
        text += read_until(read, "\0")
        status = process.wait()
    os.close(ours)
    return subprocess.CompletedProcess(QUICK, status, text.replace("\r\n", "\n"), "")


def check_document(tap, name, text):
    """The first table has the published figures beside ours, in one piece."""
    rows = re.findall(r"^(?:\| )?(\w+) [ |]*(light|full|document)((?:[ |]+[\d.]+){7})", text, re.M)
    tap.result([kind for kind, where, _ in rows if where == "document"] == PUBLISHED and
               {where for kind, where, _ in rows if kind == "rcu"} > {"document"} and "another machine" in re.sub(r"\s+", " ", text),
               f"{name}: the published figures beside ours, in one piece", text)


def check_terminal(tap, tool):
    run = on_terminal(tool, 200, LAST_WORD)
    longest = max(map(len, run.stdout.split("\n")))
    tap.result(run.returncode == 130 and 80 < longest <= 200, "a terminal of 200 columns: tables are wider, and fit",
               f"longest line: {longest}\n{diagnosis(run)}")
    check_headline(tap, "a terminal", run.stdout, "")
    check_document(tap, "a terminal", run.stdout)


def check_markdown(tap, tool):
    run = interrupt(type("Tool", (), {"path": tool}), [*QUICK, "--markdown"],
                    lambda process: read_until(process.stdout.readline, LAST_WORD))
    tap.result(stopped(run, "(quiesce: interrupted: .+\n)?"), "Markdown: SIGINT: status 130", diagnosis(run))
    tap.result(run.stdout.startswith("# Performance\n\n"), "Markdown: a page", run.stdout[:200])
    check_headline(tap, "Markdown", run.stdout, "- ")
    check_document(tap, "Markdown", run.stdout)
    for table in re.findall(r"\n\n((?:\|.*\n)+)", run.stdout):
        bars = {line.count("|") for line in table.strip().split("\n")}
        tap.result(len(bars) == 1 and re.match(r"\|.*\n(\|---)+\|?", table), "Markdown: a table has as many cells in each row", table)


def check_json(tap, tool, tmp):
    run = interrupt(type("Tool", (), {"path": tool}), [*QUICK, "--json", f"--output={tmp}/run.json"], lambda process: jobs_begun(process, 4))
    tap.result(stopped(run) and not run.stdout, "JSON: SIGINT: status 130", diagnosis(run))
    try:
        rows = json.loads((tmp / "run.json").read_text())["rows"]
    except ValueError as error:
        rows = [{"subcommand": str(error)}]
    found = {row["subcommand"] for row in rows}
    tap.result(found and found <= {"refscale", "rcuscale"}, "JSON: rows of what was measured", found)


def printed(path, status):
    """Return the output of a run into a file, from its title on."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    return subprocess.CompletedProcess(["make", "run"], status, text[max(text.find("What it costs "), 0):], "")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--tool")
    args.add_argument("--printed", nargs=2, metavar=("FILE", "STATUS"), help="judge a run that has been")
    opt = args.parse_args()
    modules = pathlib.Path(__file__).resolve().parents[2] / "tools/peers/meson.build"
    theirs = [*re.findall(r"^  '(\w+)': \[", modules.read_text(encoding="utf-8"), re.M), "pthread", "std"]
    if opt.printed:
        tap = Tap()
        check_plain(tap, printed(opt.printed[0], int(opt.printed[1])), theirs)
        return tap.finish()
    tool = os.path.realpath(opt.tool)
    for name in [n for n in os.environ if n.startswith("QUIESCE_")]:
        del os.environ[name]
    tap = Tap()
    with tempfile.TemporaryDirectory() as name:
        check_json(tap, tool, pathlib.Path(name))
        check_markdown(tap, tool)
        check_terminal(tap, tool)
        record = pathlib.Path(name) / "record"
        run = execute([tool, *QUICK, f"--record={record}"])
        check_plain(tap, run, theirs)
        check_record(tap, tool, run.stdout, record)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
