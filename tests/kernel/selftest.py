#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests of the parts of the kernel runner that need no kernel: the readers of logs, and the changes of sources."""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "kernels"))
import convert  # noqa: E402
import slices  # noqa: E402
import tc  # noqa: E402
import userspace  # noqa: E402

LOCKDEP = """#include <trace/events/lock.h>

#ifdef CONFIG_PROVE_LOCKING
module_param(prove_locking, int, 0644);
#else
#endif

static bool is_dynamic_key(const struct lock_class_key *key)
{
	bool found = false;

	rcu_read_lock();
	walk();
	rcu_read_unlock();
	return found;
}

void lockdep_unregister_key(struct lock_class_key *key)
{
	unlink();
	WAIT;
}
"""


def batch(load, way, ns, cal):
    def mark(when, factor):
        names = ("tc_modify_qdisc", "lockdep_unregister_key", "synchronize_net", "rcu_exp_handler", "sched_ttwu_pending")
        return [f"TC {when} cal {cal * factor}", f"TC {when} now 1"] + [f"TC {when} {n} {2 * factor} {2000000 * factor}" for n in names]
    return "\n".join([f"TC batch {load} {way}"] + mark("before", 1) + mark("after", 3) + [f"TC times {ns} {ns}"]) + "\n"


def check_tc():
    log = "".join(batch(load, way, ns, cal) for load in tc.LOADS for way, ns, cal in
                  (("1", 40000000, 5), ("2", 6000000, 30), ("3", 2000000, 3), ("0", 1000000, 3)))
    found = tc.summarise(log + "TC batch idle 1\n")  # one that was cut off does not count
    assert list(found)[:4] == [("idle", "1"), ("idle", "2"), ("idle", "3"), ("idle", "0")], list(found)
    assert tc.ratios(found, "busy") == (20, 3, 10), tc.ratios(found, "busy")
    one = found["idle", "3"]
    assert (one.replaces, one.keys, one.cal, one.held) == (2, 2, 3, 2), vars(one)


def check_slices():
    line = "SLICE {} work 100 ext 5000 periods 10 met {} preempted 7 grants 1 yields 1 sections 100 p50 3000 p90 9000 max 9999\n"
    log = line.format("none", 8) + line.format("none", 4) + line.format("standing", 1)
    found = slices.summarise(log)
    assert found[5000, 100, "none"].share_met() == 0.6 and found[5000, 100, "standing"].share_met() == 0.1
    assert not slices.whole(log)
    assert slices.costs("COST none 1 request 2 standing 3 outline 4\n" * 3)["standing"] == 3


def check_convert():
    for wait in ("synchronize_rcu()", "synchronize_rcu_expedited()"):
        text = convert.convert_lockdep(LOCKDEP.replace("WAIT", wait))
        assert text.index("shazptr_acquire(hash_head)") < text.index("walk();") < text.index("shazptr_clear(guard)"), text
        assert "\tunlink();\n\tkey_wait_for_walkers(hash_head);\n" in text, text
    try:
        convert.convert_lockdep(LOCKDEP)
    except SystemExit as end:
        assert "the wait" in str(end)
    else:
        raise AssertionError("a tree that does not wait was converted")
    source = convert.read(os.path.join(HERE, "../../kernel/shazptr.c"))
    text = convert.builtin(source)
    assert "EXPORT_SYMBOL" in source and "EXPORT_" not in text


def check_userspace():
    test = {"name": "torture", "cmd": ["tool", "torture", "--seconds=1.2"], "env": {"QUIESCE_FENCE": "full"}, "timeout": 60}
    assert userspace.command(test) == "env TEST_SLOWER=10 QUIESCE_FENCE=full tool torture --seconds=12", userspace.command(test)
    assert "run torture 600 env" in userspace.script("/", [test])
    assert userspace.reason("torture, full fences", ((r"^linear", "no"), (r"full", "yes"))) == "yes"


def check_judge():
    """A program of liburcu's is good by its status, its stress test's counts, its warnings and its TAP."""
    for said, status, good in (("1..2\nok 1\nok 2", 0, True), ("1..2\nok 1", 0, False), ("fine", 0, True), ("fine", 1, False),
                               ("rcu_stress_count: 9 4 0 0", 0, True), ("rcu_stress_count: 9 4 0 1", 0, False),
                               ("WARNING! Discrepancy between 1 and 2", 0, False)):
        done = subprocess.run(["sh", "-c", userspace.JUDGE, "judge", "sh", "-c", f"printf '{said}\\n'; exit {status}"],
                              stdout=subprocess.PIPE, text=True, check=False)
        assert (done.returncode == 0) == good and done.stdout.strip() == said, (said, status, done)


def main():
    for check in (check_tc, check_slices, check_convert, check_userspace, check_judge):
        check()
        print(f"ok {check.__name__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
