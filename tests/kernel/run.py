#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Build the kernel modules for packaged kernels, boot these in QEMU, and judge what the guests print.

Nothing is installed: scripts/kernel-packages.sh unpacks kernels and headers into a cache, and scripts/build-kernels.sh
builds kernels that are not packaged there.  Times are compared within one guest only: an emulator has neither the caches
nor the costs of fences of a processor.
The last line is "N passed, N failed"; exit status 0, 1 something failed, 2 wrong usage, 77 no QEMU or no packages.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import arm64  # noqa: E402
import guest  # noqa: E402
import ktap  # noqa: E402
import plan  # noqa: E402
import slices  # noqa: E402
import smp  # noqa: E402
import tc  # noqa: E402
import userspace  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "quiesce-kernels")
BASELINES = os.path.join(HERE, "baselines.json")
FLAGS = {"normal": (), "debug": ("QUIESCE_DEBUG=1",), "mutants": ("QUIESCE_MUTANTS=1",)}
BAD = re.compile(r"BUG: |BUG [\w-]+ \(|WARNING: CPU|detected stall|self-detected|hung_task|soft lockup")
MARK = "MUTANT"
BUILT = ("lockdep", "lockdep-kasan", "lockdep-kcsan", "slice")


class Kernels:
    """The packaged kernels, which are fetched and built for at their first use."""

    def __init__(self, work):
        self.work, self.have, self.built = work, {}, {}

    def get(self, name):
        """Return the kernel's directory in the cache, or None."""
        if name not in self.have:
            script = "build-kernels.sh" if name in BUILT else "arm64-packages.sh" if name == "arm64" else "kernel-packages.sh"
            fetch = subprocess.run([os.path.join(ROOT, "scripts", script), CACHE, *([name] if name != "arm64" else [])], check=False)
            if fetch.returncode not in (0, 77):
                sys.exit(f"kernel: scripts/{script} ended with {fetch.returncode}")
            self.have[name] = os.path.join(CACHE, name) if fetch.returncode == 0 else None
        return self.have[name]

    def lacks(self, row):
        """Return why a row cannot be run; None if it can."""
        where = self.get(row.kernel)
        if where and (not row.files or os.path.exists(os.path.join(where, "kmake"))):
            return None
        return "the kernel cannot be had" if not where else f"{where} has nothing to build modules with: remove it to get that"

    def release(self, name):
        with open(os.path.join(self.get(name), "release"), encoding="utf-8") as f:
            return f.read().strip()

    def build(self, name, kind):
        """Return the directory of the modules; None if they cannot be built."""
        key = f"{name}-{kind}-{self.release(name)}"  # headers are older than our objects, so that make would not see new ones
        if key not in self.built:
            self.built[key] = self.make(name, kind, os.path.join(self.work, key))
        return self.built[key]

    def make(self, name, kind, where):
        copy = subprocess.run(["make", "-s", "-C", os.path.join(ROOT, "kernel"), "copy", "BUILD=" + where], check=False)
        flags = ("modules", "QUIESCE_TESTS=1", "W=1", "KCFLAGS=-Werror") + FLAGS[kind]
        make = copy.returncode == 0 and subprocess.run(
            [os.path.join(self.get(name), "kmake"), where, "-s", "-j2", *flags], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False)
        if make and make.returncode == 0:
            return where
        print((make.stdout if make else "")[-4000:])
        return None


class Runner:
    def __init__(self, options, work):
        self.options, self.kernels = options, Kernels(work)
        self.passed = self.failed = self.skipped = 0
        self.recorded = {}
        self.product = None

    def report(self, row, cases, seconds):
        """Print a line for a row, and one for each case that failed."""
        bad = [c for c in cases if not c.good]
        skipped = [c for c in cases if c.good and c.skip]
        self.passed += len(cases) - len(bad) - len(skipped)
        self.failed += len(bad)
        self.skipped += len(skipped)
        print(f"\r{'not ok' if bad else 'ok'} {row.title()}: {len(cases) - len(bad)} of {len(cases)} ({seconds:.0f} s)",
              flush=True)
        for case in bad:
            print(f"FAILED: {row.title()}: {case.name}")

    def boot(self, row, script):
        files = row.files
        if files:
            where = self.kernels.build(row.kernel, row.build)
            if not where:
                return None
            files = [os.path.join(where, name) for name in files]
        return guest.boot(os.path.join(self.kernels.get(row.kernel), "vmlinuz"), script, files, row.programs, self.system(row), row.smp,
                          f"{row.append} {row.arguments}", row.icount, row.memory, row.seconds,
                          "arm64" if row.kernel == "arm64" else "x86_64")

    def keep(self, row, outcome):
        name = re.sub(r"[^\w.]+", "-", row.title()).strip("-") + ".log"
        os.makedirs(self.options.logs, exist_ok=True)
        with open(os.path.join(self.options.logs, name), "w", encoding="utf-8") as f:
            f.write(outcome.text)
        return os.path.join(self.options.logs, name)

    def system(self, row):
        """The root of the system that comes with a kernel, if it does: its C library is as new."""
        root = os.path.join(self.kernels.get(row.kernel), "root")
        if row.kernel == "arm64":
            return root
        return root if row.programs and os.path.exists(root + "/lib64/ld-linux-x86-64.so.2") else ""

    def userspace(self):
        """Return the directory of a build of the library and its tests; None if there is none."""
        if self.product is None:
            built = self.options.product and os.path.abspath(self.options.product)
            self.product = built or userspace.build(os.path.join(self.kernels.work, "userspace"), ROOT) or ""
        return self.product or None

    def judge(self, row):
        if row.kind == "mutants":
            return self.judge_mutants(row)
        if not self.prepare(row):
            return [ktap.Case("the library and its tests build", False)]
        outcome = self.boot(row, row.script)
        if outcome is None:
            return [ktap.Case("the modules build", False)]
        cases = getattr(self, "judge_" + row.kind)(row, outcome)
        if self.options.keep_logs or not all(c.good for c in cases):
            print(f"\rlog: {self.keep(row, outcome)}")
        return cases

    def prepare(self, row):
        """Add to a row what has to be built for it."""
        if not row.suites and not row.source and not row.cases:
            return True
        if row.kernel == "arm64":
            return self.prepare_arm64(row)
        where = self.userspace()
        if not where:
            return False
        if row.cases:
            row.script, row.programs = smp.script(where, row.before, row.cases), [os.path.join(where, name) for name in row.product]
            return all(map(os.path.exists, row.programs))
        if row.suites:
            self.prepare_suites(row, where)
        else:
            program = os.path.join(where, row.source + "-program")
            if not userspace.build_program(program, os.path.join(HERE, row.source + ".c"), where, ROOT):
                return False
            row.programs, row.script = (program,), row.script.replace("PROGRAM", program)
        return True

    def prepare_suites(self, row, where):
        """Tests that a guest cannot run, or need not, are counted with the reason."""
        tests, left = userspace.tests(where, row.suites, row.left_out)
        runs = []
        if row.liburcu is not None:
            runs, more = userspace.liburcu(where, os.path.join(self.kernels.work, "liburcu"), ROOT, row.smp, row.liburcu)
            left.update({"of liburcu's own programs, " + why: nr for why, nr in more.items()})
        row.script = userspace.script(where, tests, runs)
        row.programs = userspace.programs(where, tests + [{"cmd": run["argv"], "env": run["env"]} for run in runs])
        for why, nr in left.items():
            self.skipped += nr
            print(f"\rskipped: {nr} tests of {row.title()}: {why}")

    def prepare_arm64(self, row):
        where = os.path.abspath(self.options.product or os.path.join(self.kernels.work, "build"))
        if self.product is None:
            self.product = arm64.build(where, ROOT, self.kernels.get("arm64"), self.options.short)
        if not self.product:
            return False
        for why, nr in arm64.prepare(row, where).items():
            self.skipped += nr if not self.options.short else 0  # most are not of that form
            print(f"\r{'skipped' if not self.options.short else 'left out'}: {nr} tests of {row.title()}: {why}")
        return bool(row.programs) and all(map(os.path.exists, row.programs))

    @staticmethod
    def judge_pass(row, outcome):
        trouble = outcome.trouble()
        cases = ktap.parse(outcome.log, row.documents) if row.documents and outcome.status is not None else []
        complaints = [line for line in outcome.log if BAD.search(line)]
        return cases + [ktap.Case(f"the guest ends well{': ' + trouble if trouble else ''}", not trouble),
                        ktap.Case("the kernel does not complain" + (": " + complaints[0] if complaints else ""), not complaints)]

    @staticmethod
    def judge_smp(row, outcome):
        """Complaints of the kernel about itself are listed, and are no failure."""
        own = [line for line in outcome.log if re.search(smp.ALLOWED, line)]
        cases = ktap.parse(outcome.log, row.documents)
        complaints = [line for line in outcome.log if BAD.search(line) and line not in own]
        for line in own:
            print(f"\r  the kernel's own: {line}")
        if own and outcome.taints == ["warning"]:
            outcome.taints = []
        trouble = outcome.trouble()
        for line in outcome.log:
            if " note: " in line:
                print("\r  " + line.partition(" note: ")[2])
        print("\n".join(f"\r  {case.name}: {'skipped: ' + case.skip if case.skip else 'ok' if case.good else 'not ok'}" for case in cases))
        return cases + [ktap.Case(f"the guest ends well{': ' + trouble if trouble else ''}", not trouble),
                        ktap.Case("the kernel does not complain" + (": " + complaints[0] if complaints else ""), not complaints)]

    @staticmethod
    def judge_says(row, outcome):
        log = "\n".join(outcome.log)
        return [ktap.Case("says " + wanted, bool(re.search(wanted, log))) for wanted in row.wanted] + \
            [ktap.Case("the guest ends", outcome.status == 0)]

    def judge_mutants(self, row):
        """Each planted bug in its turn; a guest that dies has noticed the last one, and the others get a new guest.
        One that goes on without it, or takes too long, has not: its module may not even have been loaded."""
        cases, left = [], list(row.mutants)
        while left:
            script = "".join(f"{one_mutant(*m)}echo '{MARK} {i}'\ndmesg -c\n" for i, m in enumerate(left))
            outcome = self.boot(row, script)
            if outcome is None:
                return [ktap.Case("the modules build", False)]
            segments = re.split(MARK + r" \d+\n", outcome.text)[1:]
            cases += [verdict(*mutant, segment) for mutant, segment in zip(left, segments)]
            left = left[len(segments):]
            if left:
                module, name, _ = left.pop(0)
                died = outcome.started and outcome.status is None and not outcome.timed_out
                how = "the guest's death" if died else f"no test: {outcome.trouble() or 'the script ended'}"
                cases.append(ktap.Case(f"{module} {planted(name)} is noticed, by {how}", died and name is not None))
                if not cases[-1].good:
                    print(f"\rlog: {self.keep(row, outcome)}")
        return cases

    def judge_dies(self, _row, outcome):
        """A control: where lockdep does not wait, a walker must meet the address that faults."""
        found = re.search(r"general protection fault.*\n(?:.*\n)*?.*RIP: \S*?(\w+)\+", outcome.text)
        return [ktap.Case(f"the guest dies in a walk ({found.group(1) if found else outcome.trouble()})",
                          outcome.started and outcome.status is None and bool(found))]

    def judge_races(self, row, outcome):
        """KCSAN's reports of accesses by our modules, or by helpers that they give their data to, fail; the kernel's own are listed."""
        cases = self.judge_pass(row, outcome)
        reports = re.findall(r"BUG: KCSAN: (.*)", outcome.text)
        ours = [r for r in reports if re.search(r"\[\w+\]|\bllist_|\bsort", r)]
        watched = re.search(r"setup_watchpoints: (\d+)", outcome.text)
        watched = int(watched.group(1)) if watched else 0
        print(f"  {watched} watchpoints; data races reported: {len(reports)}, of which {len(ours)} name our modules")
        for report in sorted(set(reports) - set(ours)):
            print(f"  the kernel's own: {report}")
        return [c for c in cases if not c.name.startswith("the kernel does not complain")] + \
            [ktap.Case("KCSAN watched", watched > 1000),
             ktap.Case("no data race in our modules" + (": " + ours[0] if ours else ""), not ours)]

    def judge_tc(self, row, outcome):
        cases = self.judge_pass(row, outcome)
        summaries = tc.summarise(outcome.text)
        print(tc.table(summaries))
        if len(summaries) < len(tc.LOADS) * len(tc.WAYS):
            return cases + [ktap.Case("all ways were measured", False)]
        tc.save(os.path.join(self.options.logs, f"tc-{row.smp}.json"), row, summaries)
        for load in tc.LOADS:
            print("  {}: plain RCU takes {:.1f} times as long as shazptr, the expedited kind {:.1f} times, with {:.1f} times the "
                  "interrupts".format(load, *tc.ratios(summaries, load)))
        # Less than one for each, since the first replacement finds no queues with keys.
        return cases + [ktap.Case(f"{load}, {tc.WAYS[way]}: each replacement unregisters the key of each queue", s.keys > tc.QUEUES - 2)
                        for (load, way), s in summaries.items()] + \
            [ktap.Case(f"{load}: waits by shazptr send no interrupt of expedited RCU", summaries[load, "3"].expedited <=
                       summaries[load, "0"].expedited + 1) for load in tc.LOADS]

    def judge_slices(self, row, outcome):
        sums = slices.summarise(outcome.text)
        print(slices.table(sums))
        asked = [s for (_, _, way), s in sums.items() if way != "none"]
        others = [s for (_, _, way), s in sums.items() if way == "none"]
        return self.judge_pass(row, outcome) + [
            ktap.Case("all rounds were made", slices.whole(outcome.text)),
            ktap.Case("sections are preempted, and waits meet them", all(s.preempted and s.met for s in others)),
            ktap.Case("a thread that asks is granted, and yields", all(s.grants for s in asked) and all(s.yields for s in asked)),
            ktap.Case("a thread that does not ask is not granted", not any(s.grants for s in others))]

    def judge_costs(self, row, outcome):
        costs = slices.costs(outcome.text)
        print("  instructions of an empty section, with its loop: " + ", ".join(f"{n} {v:.1f}" for n, v in costs.items()))
        return self.judge_pass(row, outcome) + [ktap.Case("all ways were counted", len(costs) == len(slices.COSTS))]

    def judge_scale(self, row, outcome):
        cases = self.judge_pass(row, outcome)
        log = "\n".join(outcome.log)
        waits = {name: int(p50) for name, p50 in re.findall(r"haz-rcu-scale: (\w+): avg \d+ min \d+ p50 (\d+)", log)}
        print_scale(log)
        good = bool(waits.get("rcu") and waits.get("shazptr"))
        ratio = waits["rcu"] / waits["shazptr"] if good else 0
        print(f"  synchronize_rcu() takes {ratio:.0f} times as long as synchronize_shazptr(), medians of one guest")
        # Far from what is reached, so that it fails for a wait that sleeps only.
        return cases + [ktap.Case("an uncontended synchronize_shazptr() does not wait", ratio > 100)]

    def judge_gate(self, row, outcome):
        cases = self.judge_pass(row, outcome)
        log = "\n".join(outcome.log)
        found = {n: float(m) for n, m in re.findall(r"haz-ref-scale: (\w+): median ([\d.]+) ns", log)}
        release = self.kernels.release(row.kernel)
        self.recorded[release] = found
        with open(BASELINES, encoding="utf-8") as f:
            known = json.load(f).get(release)
        print("  instructions for a section, with the loop: " + ", ".join(f"{n} {v:.0f}" for n, v in found.items()))
        if known is None:
            print(f"  no baseline for {release}: nothing to compare with (run.py --record)")
        for name in plan.GATED if known else ():
            near = name in found and abs(found[name] - known[name]) <= 1
            cases.append(ktap.Case(f"{name}: {found.get(name, 0):.1f} instructions, recorded {known[name]:.1f}", near))
        loop = found.get("noop", 0)
        ours, rcu = found.get("shazptr", 1e9) - loop, found.get("rcu", 0) - loop
        cases.append(ktap.Case(f"shazptr has at most 1.5 times the instructions of rcu ({ours:.0f}, {rcu:.0f})", ours <= 1.5 * rcu))
        return cases

    def run(self, rows):
        for row in rows:
            start = time.monotonic()
            if sys.stdout.isatty():
                print(f"\r{row.title()} ... ", end="", flush=True)
            why = self.kernels.lacks(row)
            if why:
                self.skipped += 1
                print(f"skipped: {row.title()}: {why}")
                continue
            self.report(row, self.judge(row), time.monotonic() - start)


def planted(name):
    return "without a planted bug" if name is None else name or "busted"


def verdict(module, name, notice, segment):
    """Judge one planted bug's part of a guest's log; a name of None is a control."""
    noticed = " not ok " in segment
    if name is None:
        return ktap.Case(f"{module} {planted(name)} passes: {notice.split(';')[0]}", not noticed and " ok " in segment)
    return ktap.Case(f"{module} {planted(name)} is noticed", noticed)


def one_mutant(module, name, notice):
    """Return commands for the guest, which leave no state behind."""
    options = {module: "mutant=" + name if name else ""}
    return plan.load(**options) + notice + "\nrmmod hazptr\nrmmod shazptr\n"


def print_scale(log):
    print("  Compare within this table only: in an emulator caches, fences and atomic operations do not cost what they do on a CPU.")
    print("  reader, ns for a section (median):  " +
          ", ".join(f"{n} {m}" for n, m in re.findall(r"haz-ref-scale: (\w+): median ([\d.]+) ns", log)))
    heads = "".join(f" {h:>10}" for h in ("avg", "min", "p50", "p90", "p99", "max"))
    print(f"  {'updater, us for a wait':32}{heads}  met a reader")
    pattern = r"haz-rcu-scale: (\w+): avg (\d+) min (\d+) p50 (\d+) p90 (\d+) p99 (\d+) max (\d+) ns n (\d+) met (\d+)"
    for name, *values, nr, met in re.findall(pattern, log):
        print(f"  {name:32}" + "".join(f" {int(v) / 1000:10.2f}" for v in values) +
              (f"  {met} of {nr}" if name.startswith("shazptr") else ""))


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="the rows of .ci/run: about five minutes")
    parser.add_argument("--lockdep", action="store_true", help="the rows whose kernels have to be built")
    parser.add_argument("--smp", action="store_true", help="the userspace library with many CPUs; with --short a minute of it")
    parser.add_argument("--arm64", action="store_true", help="the userspace library on arm64; with --short minutes of it")
    parser.add_argument("--product", metavar="DIR", help="a build of the userspace library to take")
    parser.add_argument("--only", metavar="PATTERN", help="rows whose titles match this regular expression")
    parser.add_argument("--list", action="store_true", help="print the titles of rows and end")
    parser.add_argument("--seconds", type=int, default=60, help="of torture for each type and kernel, in the long run (60)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build-kernel"), help="where modules are built")
    parser.add_argument("--logs", default=os.path.join(ROOT, "build-kernel", "logs"), help="where logs of failed guests go")
    parser.add_argument("--keep-logs", action="store_true", help="keep those of good ones, too")
    parser.add_argument("--record", action="store_true", help="write the instruction counts into baselines.json")
    return parser.parse_args()


def main():
    options = parse_options()
    if options.smp or options.arm64:
        plans = smp if options.smp else arm64
        chosen = plans.short() if options.short else plans.full(options.seconds)
    else:
        chosen = plan.short() if options.short else plan.lockdep(options.seconds) if options.lockdep else plan.full(options.seconds)
    rows = [r for r in chosen
            if not options.only or re.search(options.only, r.title())]
    if options.list:
        print("\n".join(r.title() for r in rows))
        return 0
    if not rows:
        print("kernel: no row matches --only", file=sys.stderr)
        return 2
    missing = arm64.missing() if options.arm64 else guest.missing()
    if missing:
        print(f"kernel: skipped: not installed: {', '.join(missing)}")
        return 77
    if options.arm64:
        arm64.print_not_run()
    runner = Runner(options, os.path.abspath(options.build))  # make runs elsewhere
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # no guest outlives us
    try:
        runner.run(rows)
    except KeyboardInterrupt:
        print("\nkernel: interrupted")
        return 130
    if options.record:
        with open(BASELINES, encoding="utf-8") as f:
            known = json.load(f)
        with open(BASELINES, "w", encoding="utf-8") as f:
            json.dump({**known, **runner.recorded}, f, indent="\t", sort_keys=True)
            f.write("\n")
    skipped = f", {runner.skipped} skipped" if runner.skipped else ""
    print(f"{runner.passed} passed, {runner.failed} failed{skipped}")
    if runner.passed + runner.failed == 0:
        return 77
    return 1 if runner.failed else 0


if __name__ == "__main__":
    sys.exit(main())
