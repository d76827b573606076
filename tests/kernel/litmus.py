#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Judge kernel/litmus/*.litmus by the kernel's own memory model, and tie them to the modules' source.

A file is a C litmus test as tools/memory-model takes it.  A comment behind an operation
names its label: "smp_mb(); /* SK1 */"; "implied" stands for what a function of the kernel
contains (set_current_state(), complete()).  The comment block holds
Result: Never | Sometimes      the verdict that herd7 must reach
    Weakened: LABEL:KIND@PN VERDICT   ... and with the operations of that label in process N made
                                   relaxed; KIND is mb (the fence goes), acquire, release (the access stays,
                                   as READ_ONCE or WRITE_ONCE), or rmw (_relaxed)
    Guard: SHAZPTR NAME            it shows the source with that bug of kernel/mutants.h planted
    Source: FILE FUNCTION OP ; OP  these stand in that function or macro, in this order; an ordering
                                   has its label before it: "SK1 smp_mb()".
Each labelled operation of a Never file has a Weakened line, and a Source line that quotes it; a Never
file has no data race.  A verdict of Never in a Weakened line is a redundancy, which the text explains.

Without a memory model (--model, or $KERNEL_MEMORY_MODEL) or herd7 only the ties are checked, and the exit
status is 77.  Exit status: 0; 1 something differs; 77."""
import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
FILES = os.path.join(TOP, "kernel", "litmus")
CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
MODEL = os.path.join(CACHE, "quiesce-kernels", "source", "tools", "memory-model")  # by scripts/kernel-packages.sh
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(TOP, "tests", "litmus"), os.path.join(TOP, "scripts")]
import check_ties  # noqa: E402
import csource  # noqa: E402
import kernel_orders  # noqa: E402
import run as userspace  # noqa: E402

LABELLED = re.compile(r"\b(\w+)\(([^;]*)\);\s*/\* (implied|[A-Z]{2}\d+) \*/")
KIND_OF = [(r"smp_\w*mb\w*$", "mb"), (r"smp_load_acquire$", "acquire"), (r"smp_store_release$", "release"),
           (r"(?:atomic_)?(?:cmp)?xchg$", "rmw")]
# Operations for which the model has no name, and the functions that they stand for.
STANDS_FOR = {"xchg": ("llist_del_all", "llist_add", "atomic_xchg"), "cmpxchg": ("try_cmpxchg", "llist_add"),
              "smp_mb": ("smp_mb__after_spinlock", "smp_mb__after_atomic", "smp_mb__before_atomic"),
              "smp_store_release": ("rcu_assign_pointer",)}


def kind_of(op):
    return next((kind for pattern, kind in KIND_OF if re.match(pattern, op)), None)


def labelled(program):
    """[(process, label, kind, operation)]"""
    out, process = [], None
    for line in program.split("\n"):
        start = re.match(r"(P\d+)\(", line)
        process = start.group(1) if start else process
        for op, _, label in LABELLED.findall(line):
            out.append((process, label, kind_of(op), op))
    return out


def relaxed(match, kind):
    op, args, label = match.groups()
    first, _, rest = args.partition(", ")
    return {"mb": "", "acquire": "READ_ONCE(*%s);" % args, "release": "WRITE_ONCE(*%s, %s);" % (first, rest),
            "rmw": "%s_relaxed(%s);" % (op, args)}[kind]


def weaken(text, what):
    """Return the text with LABEL:KIND@PN made relaxed."""
    label, kind, process = re.fullmatch(r"(\w+):(\w+)@(P\d+)", what).groups()
    head, program = userspace.split(text)
    start = program.index("\n%s(" % process)
    end = program.index("\n}", start)

    def change(match):
        fits = match.group(3) == label and kind_of(match.group(1)) == kind
        return relaxed(match, kind) if fits else match.group(0)
    body = LABELLED.sub(change, program[start:end])
    if body == program[start:end]:
        raise ValueError("no operation for " + what)
    return head + program[:start] + body + program[end:]


def cases_of(path):
    """[(name, text, verdict)]"""
    text = check_ties.read(path)
    name = os.path.basename(path)[:-len(".litmus")]
    cases = [(name, text, userspace.header(text, "Result")[0])]
    for line in userspace.header(text, "Weakened"):
        what, verdict = line.split()
        cases.append(("%s without %s" % (name, what), weaken(text, what), verdict))
    return cases


# Ties.

def check_source(source):
    path, function, ops = source
    if not os.path.exists(os.path.join(TOP, path)):
        return path + " does not exist"
    body = check_ties.body_of(kernel_orders.annotated(*csource.read(TOP, path)), function)
    if body is None:
        return "no %s() in %s" % (function, path)
    at = 0
    for op in ops:
        found = body.find(check_ties.plain(op), at)
        if found < 0:
            return "%s() in %s: no '%s'%s" % (function, path, op, " after what precedes it" if at else "")
        at = found + len(check_ties.plain(op))
    return None


def unquoted(operations, sources):
    ops = " ".join(op for _, _, some in sources for op in some)
    for process, label, _, op in operations:
        names = "|".join((op,) + STANDS_FOR.get(op, ()))
        if label != "implied" and not re.search(r"\b%s (?:%s)\(" % (label, names), ops):
            yield "no Source line for %s %s() of %s" % (label, op, process)


def unweakened(text, operations):
    said = {line.split()[0] for line in userspace.header(text, "Weakened")}
    for process, label, kind, op in operations:
        what = "%s:%s@%s" % (label, kind, process)
        if kind and what not in said:
            yield "no 'Weakened: %s' for %s()" % (what, op)


def unknown_guards(text):
    mutants = check_ties.read(os.path.join(TOP, "kernel", "mutants.h"))
    for guard in userspace.header(text, "Guard"):
        family, name = guard.split()
        listed = re.search(r"define %s_MUTANTS\(X\)(?:.*\\\n)*.*" % family, mutants)
        if not listed or not re.search(r"\bX\(%s\)" % name, listed.group(0)):
            yield "kernel/mutants.h has no %s of %s" % (name, family)


def check(path):
    """Yield the faults of one file, before a run of herd7."""
    text = check_ties.read(path)
    name = os.path.basename(path)[:-len(".litmus")]
    result = userspace.header(text, "Result")
    sources = check_ties.sources_of(text)
    operations = labelled(userspace.split(text)[1])
    if text.split("\n", 1)[0] != "C " + name:
        yield "the name in the first line is not that of the file"
    if result not in (["Never"], ["Sometimes"]):
        yield "needs one Result: Never or Sometimes"
    if not sources:
        yield "no Source line"
    yield from (e for e in map(check_source, sources) if e)
    yield from unquoted(operations, sources)
    yield from unknown_guards(text)
    if result == ["Never"]:
        yield from unweakened(text, operations)


# Verdicts.

def find_model(given):
    place = given or os.environ.get("KERNEL_MEMORY_MODEL") or MODEL
    return place if os.path.exists(os.path.join(place, "linux-kernel.cfg")) else None


def judge(herd, model, text, tmp, number):
    path = os.path.join(tmp, "%d.litmus" % number)
    with open(path, "w") as f:
        f.write(text)
    command = herd + ["-I", model, "-conf", os.path.join(model, "linux-kernel.cfg"), path]
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as e:
        return "error: %s" % e
    # The first number counts executions that fulfil "exists".
    found = re.search(r"^Observation .* \w+ (\d+) \d+$", out.stdout, re.M)
    if not found:
        return "error: " + (out.stderr.strip() or out.stdout.strip())[:300]
    if int(found.group(1)):
        return "Sometimes"
    return "Never, but a data race" if "Flag data-race" in out.stdout else "Never"


def run_all(cases, herd, model, say):
    bad = 0
    with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        verdicts = pool.map(lambda x: judge(herd, model, x[1][1], tmp, x[0]), enumerate(cases))
        for (name, _, want), got in zip(cases, verdicts):
            good = got == want
            bad += not good
            say(good, "%s: %s%s" % (name, got, "" if good else ", expected " + want))
    return bad


def options():
    ap = argparse.ArgumentParser(description="run herd7 with the kernel's memory model on kernel/litmus/")
    ap.add_argument("files", nargs="*", help="default: all")
    ap.add_argument("--model", help="a tools/memory-model (default: $KERNEL_MEMORY_MODEL, or what scripts/kernel-packages.sh unpacks)")
    ap.add_argument("--herd", help="the herd7 to run (default: $QUIESCE_VERIFY_TOOLS, the cache, PATH)")
    ap.add_argument("--libdir", help="its model directory")
    ap.add_argument("--fetch", action="store_true", help="unpack herd7 by scripts/verify-tools.sh if there is none")
    ap.add_argument("--ties", action="store_true", help="only whether the files speak of the source")
    ap.add_argument("-q", "--quiet", action="store_true", help="print what is wrong, and the closing line")
    return ap.parse_args()


def main():
    args = options()
    files = args.files or sorted(glob.glob(os.path.join(FILES, "*.litmus")))
    rows = [0, 0]

    def say(good, text):
        rows[not good] += 1
        if not (good and args.quiet):
            print("%s %d - %s" % ("ok" if good else "not ok", sum(rows), text))

    for path in files:
        errors = list(check(path))
        say(not errors, "%s: source%s" % (os.path.basename(path), "".join("\n#   " + e for e in errors)))
    herd, model = userspace.find_herd(args), find_model(args.model)
    skipped = None if args.ties else "no herd7" if not herd else "no memory model (scripts/kernel-packages.sh unpacks one)" if not model else None
    if not args.ties and not skipped:
        run_all([c for f in files for c in cases_of(f)], herd, model, say)
    print("kernel litmus: %d passed, %d failed%s" % (rows[0], rows[1], "; verdicts skipped: " + skipped if skipped else ""))
    return 1 if rows[1] else 77 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
