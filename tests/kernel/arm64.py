# SPDX-License-Identifier: MIT
"""The userspace library on an emulated arm64, with a packaged kernel: what is built for it, and what runs there.

The emulation of programs alone (scripts/ci/cross.sh) has no restartable sequences; a kernel has.  An emulator's memory accesses are those of
this machine, so that a guest shows what instructions, signals and the kernel do, and not arm64's weak order: tests/litmus does that.
The long run also has the modules of kernel/, which the cross compiler builds for the guest's kernel.
"""
import json
import os
import re
import shutil
import subprocess

import guest
import plan
import smp
import userspace
from plan import Row

APPEND = "nowatchdog rcupdate.rcu_cpu_stall_suppress=1"
PRODUCT = ("tools/quiesce", "tools/quiesce-torture", "tests/torture/claims", "tests/torture/sequences", "tests/linear/record-perturbed")
# Suites of the library's tests, with a guest for each.  These are not run there, and the reasons are printed.
SUITES = ("unit", "faults", "linear", "conformance")
NOT_RUN = {
    "style, build, sources, model, sim, property, scale": "they read sources, compile, or run the library on a modelled machine",
    "liburcu, callers, cases, examples": "they add no instruction of arm64 to those of the other suites",
    "torture": "its types and programs are cases of the first guest",
    "single steps, backtraces, crashes of plug-ins": "their tests are written for x86-64",
    "the checker of linear": "recorders judge iterations and keys with an owner in the guest; scripts/ci/linear.sh judges histories",
}
LEFT_OUT = ((r"memcheck|LeakSanitizer", "their tools look at programs of this machine"),)
# The short run has the tests of what differs on arm64: of claims, counts and restarts.
CHOSEN = r"^(percpu_ref|percpu_rwsem|srcu_ends|many), (light fences|without rseq|by CPU)$|^slab, (without rseq|by CPU)$|" \
    r"^shazptr, (light|full) fences, slots (mm_cid|thread)$|^(hazptr|qsbr|fibers|percpu_ends|percpu_sandbox), light fences$|^kernels that restart|" \
    r"^(nothing denied|membarrier EPERM|rseq off by tunable), static"
OFF = ("env", "GLIBC_TUNABLES=glibc.pthread.rseq=0", "sh", "/tmp/case")


def missing():
    """Return the programs that are missing."""
    return guest.missing("arm64") + [name for name in ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++") if not shutil.which(name)]


def build(where, root, packages, short):
    """Build what the guests run; return whether that went well."""
    if not os.path.exists(os.path.join(where, "build.ninja")):
        files = ["--cross-file", os.path.join(root, "cross/aarch64.ini"), "--cross-file", os.path.join(packages, "packages.ini")]
        # No test of a guest reads debug information, which costs a sixth of the compiler's time, and most of the initramfs.
        if not succeeds(["meson", "setup", where, root, "--werror", "-Dc_args=-g0", "-Dcpp_args=-g0", *files]):
            return False
    return succeeds(["ninja", "-C", where, *PRODUCT, *needed(where, tests(where, short))])


def succeeds(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        print(done.stdout[-4000:])
    return done.returncode == 0


def needed(where, chosen):
    """Return the files of the targets that tests need."""
    said = subprocess.run(["meson", "introspect", "--targets", where], stdout=subprocess.PIPE, text=True, check=True).stdout
    wanted = {target for test in chosen for target in test["depends"]}
    return [os.path.relpath(target["filename"][0], os.path.realpath(where)) for target in json.loads(said) if target["id"] in wanted]


def tests(where, short):
    """Return the tests that guests run."""
    fit, _ = userspace.tests(where, SUITES, LEFT_OUT)
    return [test for test in fit if not short or re.search(CHOSEN, test["name"])]


def noticed(name, seconds, *words):
    """A control, whose program ends with 1, or dies by the library's own check."""
    return smp.Case(name, 60 + 10 * seconds, "sh", "-c", '"$@"; case $? in 1 | 134) ;; *) exit 1 ;; esac', "sh", *words)


def sequences(name, seconds, *before):
    return smp.Case(name, 60 + 10 * seconds, *before, "tests/torture/sequences", f"--seconds={seconds}")


def cases(seconds):
    """Return torture and its controls, with restartable sequences and without them."""
    planted = ("tests/torture/sequences", "--seconds=30", "--mutant=claim_unprotected")
    yield smp.Case("doctor", 120, "says", "claims under rseq.* 0 of", "tools/quiesce", "doctor")
    yield sequences("objects and counts in sequences", seconds)
    yield sequences("objects and counts in sequences of CPUs", seconds, "slots", "cpu_id")
    yield sequences("objects and counts without sequences", seconds, *OFF)
    yield sequences("objects and counts with full fences", seconds, "env", "QUIESCE_FENCE=full")
    yield noticed("objects or counts lost without a sequence's protection are noticed", 30, *planted)
    yield smp.Case("claims", 60 + 10 * seconds, "tests/torture/claims", f"--seconds={seconds}")
    yield noticed("claims lost without a sequence's protection are noticed", 30, "tests/torture/claims", *planted[1:])
    for kind in smp.TYPES:
        yield smp.torture(kind, seconds)
    for kind in ("srcu", "percpu_rwsem", "percpu_ref", "slab"):
        yield smp.torture(kind, seconds, name=f"torture {kind} without sequences", before=OFF)
    yield from map(smp.noticed, smp.BUSTED)
    yield smp.Case("torture notices a planted bug", 300, "fails", "planted", "rwsem_no_drain", "percpu_rwsem", 30)
    for kind in ("hashmap", "xarray", "lfqueue"):
        yield smp.Case(f"a history of {kind}", 120, "tests/linear/record-perturbed", f"--type={kind}", "--operations=20000",
                       "--output=/dev/null", "--perturb=40")


def boot(name, **more):
    return Row(name, "arm64", (), "", **{"kind": "smp", "arguments": APPEND, "memory": 2048, "product": PRODUCT, **more})


def modules(seconds):
    """Return boots with the modules of kernel/, built for arm64 by the cross compiler: their tests, torture, planted bugs."""
    yield plan.unit("arm64", name="modules, unit", arguments=APPEND)
    yield plan.mutants("modules, planted bugs, by tests", "arm64", plan.UNIT_CONTROLS + plan.UNIT_MUTANTS)
    for kind in plan.TYPES:
        yield plan.torture("arm64", kind, seconds, name="modules, torture " + kind, arguments=APPEND)


def short():
    """Return the plan of .ci/run."""
    yield boot("arm64", cases=list(cases(3)), suites=SUITES, chosen=CHOSEN, left_out=LEFT_OUT, seconds=900)


def full(seconds):
    """Return a plan of hours, by estimate.  seconds: of torture for each type."""
    yield from modules(seconds)
    yield boot("arm64", cases=list(cases(seconds)), seconds=1200 + 40 * seconds)
    for suite in SUITES:
        yield boot("arm64, suite " + suite, suites=(suite,), left_out=LEFT_OUT, memory=4096, seconds=7200)


def prepare(row, where):
    """Give a row its script and programs; return the number of tests that are left out for each reason."""
    fit, left = userspace.tests(where, row.suites, row.left_out)
    chosen = [test for test in fit if re.search(row.chosen, test["name"])]
    if len(chosen) < len(fit):
        left["they are not of the short form"] = len(fit) - len(chosen)
    head = smp.script(where, row.before, row.cases)
    plan = f"say 1..{len(row.cases)}\n"
    assert head.count(plan) == 1
    row.script = head.replace(plan, f"say 1..{len(row.cases) + len(chosen)}\n") + "".join(userspace.line(test) + "\n" for test in chosen)
    row.programs = sorted({os.path.join(where, name) for name in row.product} | set(userspace.programs(where, chosen)))
    return left


def print_not_run():
    for what, reason in NOT_RUN.items():
        print(f"not run in these guests: {what}: {reason}")
