# SPDX-License-Identifier: MIT
"""random_mutants.py - random small changes of the library's sources, each judged by the tests; for scripts/mutants.py --random.

Each worker has a copy of the sources below BUILD/mutants and a build of its own; nothing else is written.  A mutant is judged by the
tests of its directory first, simulator programs with few seeds in front, then by all that run its line, the fastest first, and then by
the killers of tests/mutants.list without their mutants, which run more seeds of a scenario; until one fails.  For a removed fence a
failure of scripts/check-barriers.py is enough: the litmus file of its label shows its purpose.
"""
import concurrent.futures
import dataclasses
import fcntl
import hashlib
import os
import pathlib
import queue
import re
import shlex
import sys
import threading
import time

import csource
import line_tests
import mutants
import mutation
from mutant_build import Processes, Stopped, Tree, copy_sources

LEAST_LIMIT, TIMES = 3.0, 5  # limits of a test: seconds, and a multiple of its time without a mutation
FIRST_SECONDS = 4.0          # slower tests are not among the first
KILLER_SECONDS = 10.0        # slower killers are not run

# Each row names files and the programs that test them; the first row that fits is used.
TESTS_OF = (
    (r"qsbr", r"qsbr"),
    (r"urcu", r"sim_urcu|flavor|objects|wake-ups"),
    (r"counted_ptr", r"counted_ptr"),
    (r"shazptr|slot", r"shazptr"),
    (r"hazptr", r"hazptr"),
    (r"srcu", r"srcu|test_blocked"),
    (r"rcu_sync|rwsem", r"rwsem|rcu_sync"),
    (r"percpu_ref", r"percpu_ref"),
    (r"slab|sheaf|sheaves|runtime/object", r"slab"),
    (r"percpu|platform/.*count", r"percpu|srcu|rwsem|rcu_sync|test_counters"),
    (r"hash|buckets", r"hash|tables|buckets"),
    (r"idr|ida|xarray|radix", r"idr|_ida|xarray"),
    (r"queue.*[.]h|src/queue/.*queue|wait_link", r"sim_queue|wfc?queue|lfqueue|value_queue"),
    (r"stack", r"stack"),
    (r"rcuh?list|detail/link", r"rculist"),
    (r"src/rcu/|/rcu|head[.]h", r"sim_rcu$|test_(rcu|call_rcu|chain|throttle|kfree|worker|queues|reports_garbage|fork)"),
    (r"runtime/(lock|gate|waitq|wait_policy|queued)", r"sim_(rcu|hazptr|shazptr|rwsem|srcu)|test_(inversion|fork|blocked)"),
    (r"runtime/(helper|jobs|delayed_call)", r"sim_(rwsem|srcu|hazptr)|test_(srcu|rcu_sync|hazptr_helper)"),
    (r"runtime/(report|held|misuse|exit)", r"test_(reports|held|misuse|debug|lifetime|shazptr_report)"),
    (r"runtime|platform|shutdown|describe|settings", r"sim_rcu$|smoke|victim|settings|test_(threads|isolated|children|lifetime|reports|twice)"),
    (r"", r"smoke|sim_rcu$|test_rcu$|test_outline|test_call_rcu"),
)


class Skipped(Exception):
    """The mutation does not compile, or does not change the object code."""


class Judge:
    """State that all workers share."""

    def __init__(self, opt, root):
        self.directory = opt.build.resolve() / "mutants"
        self.root = self.directory / "origin" # a copy, because the sources may change meanwhile
        self.processes, self.jobs = Processes(), opt.jobs or os.cpu_count() or 1
        self.lock, self.lines_lock = threading.Lock(), threading.Lock()
        self.seconds, self.lines, self.all_tests, self.killers = {}, None, [], []
        self.directory.mkdir(parents=True, exist_ok=True)
        self.guard = open(self.directory / "lock", "w", encoding="ascii") # locked until the process ends
        try:
            fcntl.flock(self.guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sys.exit(f"{self.directory}: another run is at work there")
        copy_sources(root, self.root)
        self.say_lock = threading.Lock()

    def say(self, *text):
        with self.say_lock:
            print(*text, flush=True)

    def tree(self, name, jobs, options=()):
        tree = Tree(self.root, self.directory / name, self.processes, jobs, options)
        tree.sync()
        tree.configure()
        return tree

    def key(self):
        """A key of the inputs that the map of lines to tests depends on."""
        digest = hashlib.sha256()
        for name in csource.tracked(str(self.root), "src/", "include/", "tests/", "liburcu/", "meson"):
            digest.update(name.encode() + b"\0" + (self.root / name).read_bytes() + b"\0")
        return digest.hexdigest()

    def lines_of_tests(self):
        """The map of lines to tests; made once, and kept in the build directory."""
        with self.lines_lock:
            path, key = self.directory / "lines.json", self.key()
            if not self.lines:
                self.lines = line_tests.LineTests.load(path, key)
            if not self.lines:
                self.say("which tests run which lines: taken now, for some minutes")
                directory = self.directory / "traced"
                options = line_tests.options(directory, shlex.split(os.environ.get("CC", "cc")))
                self.lines = line_tests.take(self.tree("traced", self.jobs, options), self.all_tests, self.jobs)
                self.lines.save(path, key)
            return self.lines

    # ---- times of tests without a mutation ----

    def measure(self, tree, tests):
        """Each is measured once; those that fail are left out."""
        for test in tests:
            with self.lock:
                mine = test.name not in self.seconds
                future = self.seconds.setdefault(test.name, concurrent.futures.Future())
            if mine:
                try:
                    future.set_result(self._measure_one(tree, test))
                except BaseException as error:
                    future.set_exception(error)
                    raise
        return [t for t in tests if self.takes(t) is not None]

    def takes(self, test):
        return self.seconds[test.name].result()

    def _measure_one(self, tree, test):
        tree.make_clean(test.targets)
        for _ in range(3):
            passed, seconds, said = tree.run(test, 120)
            if passed:
                return seconds
        self.say(f"left out, as it fails without a mutation: {test.name}: {said}")
        return None

    def limit(self, test):
        return max(LEAST_LIMIT, TIMES * self.takes(test))

    # ---- the choice of tests ----

    def run_the_line(self, m, tests):
        if not self.lines or m.in_macro:
            return tests
        names = self.lines.of(m.file, m.first + 1, m.first + len(m.before))
        return [t for t in tests if (t.lines_of or t.name) in names]

    def tests_of(self, m):
        programs = next(p for f, p in TESTS_OF if re.search(f, m.file))
        own = [t for t in self.all_tests if re.search(programs, t.program)]
        if m.file.endswith(".hpp"):
            own = [t for t in self.all_tests if t.program.endswith("-cpp") or t.program in ("conformance", "ours", "ours-debug")]
        return self.run_the_line(m, own)


def killers(root, tests):
    """The killers that pass without their mutants; a mutation that fails one is found."""
    sims = {t.program: t for t in tests if t.is_sim}
    found = {}
    for _, stage, command in mutants.read_list(root / "tests/mutants.list"):
        argv = mutants.plain(shlex.split(command)) if stage == "sim" else ()
        program = os.path.basename(argv[0]) if argv else ""
        if program in sims:
            name = "killer/" + " ".join((program, *argv[1:]))
            found[name] = dataclasses.replace(sims[program], name=name, argv=argv, lines_of=sims[program].name)
    return list(found.values())


class Worker:
    def __init__(self, judge, name):
        self.judge = judge
        self.tree = judge.tree(name, max(1, (os.cpu_count() or 1) // judge.jobs))
        if not judge.all_tests:
            judge.all_tests = self.tree.tests()
            judge.killers = killers(judge.root, judge.all_tests)

    def judge_one(self, m):
        """Returns (killer or None, its output, number of tests run); may raise Skipped."""
        judge, done = self.judge, set()
        for number, stage in enumerate((self._few_seeds, self._first, self._rest, self._killers)):
            tests = [t for t in judge.measure(self.tree, stage(m)) if t.name not in done]
            tests.sort(key=judge.takes)
            killer, said = self._first_failure(m, tests, number == 0)
            done |= {t.name for t in tests}
            if killer:
                return killer.name, said, len(done)
        return *self._barriers(m), len(done)

    def _few_seeds(self, m):
        return [few for few in (t.fewer_seeds() for t in self.judge.tests_of(m)) if few]

    def _first(self, m):
        tests = [t for t in self.judge.tests_of(m) if not t.is_sim]
        return [t for t in self.judge.measure(self.tree, tests) if self.judge.takes(t) <= FIRST_SECONDS]

    def _rest(self, m):
        self.judge.lines_of_tests()
        return self.judge.run_the_line(m, self.judge.all_tests)

    def _killers(self, m):
        return [t for t in self.judge.measure(self.tree, self.judge.run_the_line(m, self.judge.killers))
                if self.judge.takes(t) <= KILLER_SECONDS]

    def _barriers(self, m):
        """A fence that is gone has a litmus file that shows what follows, and this sees that it is gone."""
        if m.kind != "delete" or not re.search(r"\bquiesce_fence_\w+\(", m.code):
            return None, ""
        self.tree.mutate(m)
        try:
            said = self.tree.check("barriers")
        finally:
            self.tree.restore()
        return ("style/barriers" if said else None), said

    def _first_failure(self, m, tests, fresh):
        before, targets = {}, []
        if fresh:
            targets = [self.tree.library()] + [t for test in tests[:1] for t in test.targets]
            self.tree.make_clean(targets)
            before = self.tree.hashes(targets)
        try:
            self.tree.mutate(m)
            if fresh:
                self._make(targets)
                if m.file.endswith(".c") and self.tree.hashes(targets) == before:
                    raise Skipped("it makes no difference to the code")
            for test in self._made(tests):
                said = self._fails(test)
                if said:
                    return test, said
            return None, ""
        finally:
            self.tree.restore()

    def _make(self, targets):
        fault = self.tree.make(targets)
        if fault and "guarded headers" not in fault: # a patch of tests/guarded/ that does not apply: the simulator cannot have it
            raise Skipped("it does not compile")
        return not fault

    def _made(self, tests):
        """Yield the tests that can be built; the more of them have passed, the more are built at a time."""
        at, nr = 0, 1
        while at < len(tests):
            some = tests[at:at + nr]
            if self._make(sorted({target for t in some for target in t.targets})):
                yield from some
            else:
                yield from (t for t in some if self._make(t.targets))
            at, nr = at + nr, min(2 * nr, 32)

    def _fails(self, test):
        """The output of a failed test, or "".  A busy machine makes tests late, so a test has to fail or time out twice."""
        limit = self.judge.limit(test)
        passed, seconds, said = self.tree.run(test, limit)
        if not passed and (not test.is_sim or seconds >= limit):
            passed, _, said = self.tree.run(test, 3 * limit)
        return "" if passed else said


# ---- the run ----

def verdicts(judge, drawn, nr, known, deadline):
    """Yield (mutation, verdict, killer, output, number of tests) until there are @nr, or the time is up."""
    workers, idle = [], queue.SimpleQueue()

    def work(m):
        worker = idle.get()
        try:
            return (m, *_verdict(worker, m))
        finally:
            idle.put(worker)

    for i in range(min(judge.jobs, nr)):
        workers.append(Worker(judge, str(i)))
        idle.put(workers[-1])
    pool = concurrent.futures.ThreadPoolExecutor(len(workers))
    waiting, left = set(), nr
    try:
        while left > 0 and (waiting or drawn):
            while drawn and len(waiting) < min(left, len(workers)):
                m = drawn.pop(0)
                listed = next((k for k in known if k.matches(m)), None)
                if listed:
                    left -= 1
                    yield m, "listed", None, f"{listed.what}: {listed.why}", 0
                else:
                    waiting.add(pool.submit(work, m))
            rest = max(0, deadline - time.monotonic()) if deadline else None
            done, waiting = concurrent.futures.wait(waiting, rest, concurrent.futures.FIRST_COMPLETED)
            if waiting and not done and rest is not None:
                return
            for each in done:
                result = each.result()
                left -= result[1] != "skipped"
                yield result
    finally:
        judge.processes.stop()
        pool.shutdown(cancel_futures=True)
        for worker in workers:
            worker.tree.restore()


def _verdict(worker, m):
    try:
        killer, said, nr = worker.judge_one(m)
    except Skipped as why:
        return "skipped", None, str(why), 0
    return "killed" if killer else "SURVIVED", killer, said, nr


def stale(root, known, path):
    every = list(mutation.mutations(root))
    return [f"{path}:{k.number}: no mutation is meant by this any more" for k in known if not any(k.matches(m) for m in every)]


def run(opt, root):
    path = root / "tests/survivors.list"
    known = mutation.read_known(path)
    for problem in (old := stale(root, known, path.relative_to(root))):
        print(problem)
    judge = Judge(opt, root)
    if opt.again:
        drawn, known = mutation.again(judge.root, opt.again), []
        opt.random = len(drawn)
    else:
        drawn = mutation.draw(judge.root, opt.seed, opt.only or "")
    counts, survivors = {"killed": 0, "listed": 0, "SURVIVED": 0, "skipped": 0}, []
    try:
        deadline = time.monotonic() + 60 * opt.minutes if opt.minutes else None
        for m, verdict, killer, said, nr in verdicts(judge, drawn, opt.random, known, deadline):
            counts[verdict] += 1
            why = f"by {killer}" if killer else said or f"{nr} tests"
            judge.say(f"{verdict:8} {m}: {why}")
            if verdict == "SURVIVED":
                survivors.append(m)
                judge.say(m.diff())
            elif opt.verbose and verdict != "listed":
                judge.say(m.diff() + "\n" + said)
    except (KeyboardInterrupt, Stopped):
        print("stopped")
        return 130
    except RuntimeError as error:
        print(error)
        return 2
    for m in survivors:
        print(f"\nSURVIVED {m}\n{m.diff()}\n{m.file}\t{m.function}\t{m.kind}\t{m.code}")
    nr = counts["killed"] + counts["listed"] + counts["SURVIVED"]
    late = f", {opt.random - nr} not judged in time" if opt.minutes and nr < opt.random else ""
    print(f"{nr} random mutants, {counts['killed']} killed, {counts['listed']} listed{late}")
    return 1 if survivors or old or not nr else 0
