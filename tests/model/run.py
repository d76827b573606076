#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run spin on every model, and on every wrong form of it, which must fail.

A model may have row("..."), which the search must reach in each correct form.
With LIVE among its settings a model is searched for a cycle through a state marked
"accept", in which each enabled process eventually takes a step (weak fairness).

Exit status: 0, 1 a verdict differs, 77 no spin or no C compiler."""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MAX_STATES = 2000000
QUICK = ("rcu_sync", "rwsem", "srcu")  # to search these takes less time than to compile with -O1

# Each run has a model, the settings of its correct form, and pairs (wrong form, name in src/platform/mutants.h or "") with these settings.
RUNS = [
    ("gp", "NU=1 NUPD=2", [("NO_HEAVY", "RU1:heavy"), ("ADVANCE_FIRST", "gp_advance_before_fence"),
                           ("SKIPS_LAST", "gp_skips_last_reader"), ("NO_WAIT", "gp_no_wait"), ("REG_LATE", "reg_late")]),
    ("gp", "NLOOP=1", [("SHARES_RUNNING", "gp_shares_running")]),
    ("gp", "NLOOP=1 STOP NU=1", [("TRUSTS_LEADER", "gp_trusts_leader")]),
    ("gp", "NLOOP=1 POLL", [("COMPLETED_EARLY", "gp_completed_early"), ("COOKIE_NOW", "cookie_now")]),
    ("wake", "NLOOP=2", [("UNTIMED", "")]),
    ("wake", "NLOOP=2 EXIT", []),
    ("wake", "UNTIMED NO_LOSS NLOOP=2", [("WAKE_LOST", "wake_lost"), ("NOTIFY_LAST", ""), ("NO_SECOND_CHECK", ""),
                                         ("PENDING_LATE", "")]),
    ("wake", "UNTIMED NO_LOSS EXIT", [("EXIT_SILENT", "exit_no_notify")]),
    ("worker", "", [("NO_HEAVY", "RU1:heavy"), ("UNLISTED_UNCHECKED", "cb_unlisted_unchecked"), ("SNAPSHOT_FIRST", ""),
                    ("UNCHECKED", "cb_sleep_unchecked"), ("NO_FENCE", "CB9:full"), ("FENCE_FIRST", ""), ("NO_WAKE", ""),
                    ("WAKE_QUIET", "")]),
    ("worker", "FULL", [("NO_LIGHT", "CB3:full"), ("NO_FENCE", "CB9:full")]),
    ("worker", "STOP NLOOP=1", [("STOP_UNCHECKED", "")]),
    ("tags", "NLOOP=1", [("NO_WAIT", "scan_no_wait"), ("LATE", ""), ("ANY_CLEAR", "")]),
    ("tags", "SHARED", [("TWO_STEPS", "claim_unprotected"), ("OLD_TAGS", ""), ("RETAG", "")]),
    ("tags", "NLOOP=1 OWN ONE", [("KEEPS", "")]),
    ("tags", "LIVE ONE", [("NO_TAGS", "")]),
    ("tags", "LIVE SHARED", []),
    ("marks", "GUARDS=2", [("STORES", ""), ("LOST_MARK", ""), ("LOST_UPGRADE", ""), ("INNER_CLEAR", ""), ("NO_WILDCARD", ""), ("LOST_PTR", "")]),
    ("marks", "LIVE", [("NO_MARKS", ""), ("ALWAYS", "")]),
    ("marks", "BOUND=4", [("LESS", "")]),
    ("lead", "", [("NO_WAKE", ""), ("IDLE_LATE", ""), ("KEEPS", "")]),
    ("lead", "STOP", [("TRUSTS", ""), ("LEAVES", "")]),
    ("lead", "SKIP FAILS", [("SKIP_TRUSTS", "")]),
    ("lead", "SKIP FAILS LATE", [("COMPLETED_LEADS", "scan_completed_leads")]),
    ("lead", "LATE", []),
    ("lead", "SKIP STOP", []),
    ("limit", "", [("UNMARKED", "hazptr_drain_unmarked"), ("OWNER_KEEPS", ""), ("CHECKS_ONCE", "hazptr_check_once"),
                   ("UNFENCED", "HP5:full"), ("UNCHECKED", "hazptr_rest_unchecked"), ("NO_HEAVY", "HP1:heavy")]),
    ("limit", "N=3 BATCH=4 BARRIER", [("NO_RECHECK", ""), ("TRUSTS_OWNER", "")]),
    ("rcu_sync", "", []),
    ("rcu_sync", "NU=2 NLOOP=2 NREAD=2", [("NO_GP", ""), ("TRUSTS", "sync_no_wait"), ("COUNT_IGNORED", "sync_count_ignored"),
                                          ("NO_REPLAY", "sync_no_replay"), ("QUEUES_TWICE", ""), ("QUEUES_NEVER", ""),
                                          ("TURN_KEPT", ""), ("DTOR_EARLY", "")]),
    ("rwsem", "", [("NO_HEAVY", "PW1:heavy"), ("NO_FENCE", "PW1:full"), ("LOOKS_FIRST", "count_looks_first"),
                   ("PLAIN_FENCE", "rwsem_plain_fence"), ("NO_DRAIN", "rwsem_no_drain"), ("WAKE_LOST", "rwsem_wake_lost"),
                   ("BACKS_OUT", ""), ("SLEEPS", ""), ("CLEARS_BLOCK", ""), ("UNCOUNTED", "rwsem_grant_uncounted")]),
    ("rwsem", "TIMEOUT", [("KEEPS_BLOCK", "rwsem_keeps_block"), ("GIVES_UP", "")]),
    ("rwsem", "TIMEOUT NR=1 NLOOP=2", []),
    ("srcu", "", [("NO_HEAVY", "SR1:heavy"), ("ONE_INDEX", "srcu_one_index"), ("ENTERED_FIRST", "srcu_one_pass"),
                  ("SHARES_RUNNING", "srcu_shares_running"), ("FENCE_FIRST", ""), ("LOSES_HEAD", "")]),
    ("srcu", "NU=1 NLOOP=2", []),
    ("srcu", "LIVE NU=1 NR=1", [("NO_FLIP", "srcu_no_flip"), ("FLIPS_EARLY", "")]),
]


def cases():
    """(name, model, settings, must it pass?, mutant)"""
    for model, settings, wrong in RUNS:
        yield ("%s %s" % (model, settings)).strip(), model, settings.split(), True, ""
        for form, mutant in wrong:
            yield "%s %s %s" % (model, settings, form), model, settings.split() + [form], False, mutant


def quick(todo):
    """Return the first correct form of each model, and the first wrong one, which shows that the model can fail."""
    seen = set()
    for case in todo:
        if (case[1], case[3]) not in seen:
            yield case
        seen.add((case[1], case[3]))


def command(argv, cwd):
    out = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=300)
    if out.returncode:
        raise RuntimeError("%s: %s" % (argv[0], (out.stdout + out.stderr).strip()[:300]))
    return out.stdout


def verify(case):
    """(what went wrong or None, states)"""
    _, model, settings, must_pass, _ = case
    live = "LIVE" in settings
    with tempfile.TemporaryDirectory() as tmp:
        try:
            shutil.copy(os.path.join(HERE, model + ".pml"), tmp)
            command(["spin"] + ["-D" + s for s in settings] + ["-a", model + ".pml"], tmp)
            command([os.environ.get("CC", "cc"), "-O1" if must_pass and model not in QUICK else "-O0", "-w", "-DNFAIR=3" if live else "-DSAFETY",
                     "-DVECTORSZ=512", "-o", "pan", "pan.c"], tmp)
            out = command(["./pan", "-m100000", "-c1"] + (["-a", "-f"] if live else []), tmp)
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as e:
            return str(e), 0
    with open(os.path.join(HERE, model + ".pml")) as f:
        rows = set(re.findall(r'\brow\("([^"]*)"\)', f.read())) - set(re.findall(r"^row: (.*)$", out, re.M))
    states = int(re.search(r"(\d+) states, stored", out).group(1))
    errors = int(re.search(r"errors: (\d+)", out).group(1))
    if "max search depth too small" in out:
        return "search not exhaustive", states
    if states > MAX_STATES:
        return "%d states, more than %d" % (states, MAX_STATES), states
    if must_pass and errors:
        return (re.search(r"pan:1: (.*)", out) or re.search(r"(.*)", out)).group(1), states
    if must_pass and rows:
        return "never reached: " + ", ".join(sorted(rows)), states
    if not must_pass and not errors:
        return "a wrong form passes", states
    return None, states


def main():
    ap = argparse.ArgumentParser(description="run spin on the models")
    ap.add_argument("--mutant", help="only the wrong forms that stand for LABEL:kind or the guard; exit 0 if each fails")
    ap.add_argument("--list-mutants", action="store_true", help="print each mutant killed here with its model")
    ap.add_argument("--quick", action="store_true", help="one correct form and one wrong one of each model; scripts/ci/model.sh runs all")
    ap.add_argument("-v", "--verbose", action="store_true")
    args = ap.parse_args()
    todo = [c for c in cases() if not args.mutant or c[4] == args.mutant]
    if args.quick:
        todo = list(quick(todo))
    if args.list_mutants:
        print("\n".join("%s\t%s" % (c[4], c[0]) for c in todo if c[4]))
        return 0
    if not todo:
        print("model: no model kills " + args.mutant)
        return 1
    for tool in ("spin", os.environ.get("CC", "cc").split()[0]):
        if not shutil.which(tool):
            print("model: skipped: %s is not installed" % tool)
            return 77
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for case, (wrong, states) in zip(todo, pool.map(verify, todo)):
            bad += wrong is not None
            if args.verbose or wrong:
                print("%s: %s: %s, %d states" % ("FAILED" if wrong else "ok", case[0],
                                                 wrong or ("passes" if case[3] else "fails as it must"), states))
    print("model: %d passed, %d failed" % (len(todo) - bad, bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
