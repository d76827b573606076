#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run herd7 on every litmus file and compare with the verdicts written in it.

A file in our dialect (C, the operations of atomic.h with their labels) holds in
its comment block
    Result: Never | Sometimes      what herd must say of the file as it stands
    Weakened: LABEL:kind VERDICT   ... and with the operations of that label and kind
                                   made relaxed (fences: removed), as src/platform/mutants.h does it
    Rmw: full                      the verdicts need the full fence that atomic.h puts after
                                   read-modify-writes; without this line they are only
                                   acquire and release
    Guard: NAME                    the file shows the source with that guard's mutant on
    Source: FILE FUNCTION OPS      read by check_ties.py
Every Never with a light or heavy fence is judged once more in full-fence mode, and
every Never without them, or in that mode, by herd's own model of C11 (rc11.cat),
which knows nothing of ours.  AArch64 files are judged by Arm's model, and so is each
Never, compiled by to_a64.py.  arm.list names for each weakened LABEL:kind a program in which
Arm's model shows the weakening; --arm-list writes it anew, in some minutes.

Exit status: 0, 1 a verdict differs, 77 no herd7."""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import gen_a64  # noqa: E402
import to_a64  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(HERE, "herd")
ARM_LIST = os.path.join(HERE, "arm.list")
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "quiesce-verify-tools")
ATOM = {"load_relaxed": "atomic_load_explicit({a}, memory_order_relaxed)",
        "load_acquire": "atomic_load_explicit({a}, memory_order_acquire)",
        "load_consume": "atomic_load_explicit({a}, memory_order_acquire)",
        "store_relaxed": "atomic_store_explicit({a}, {b}, memory_order_relaxed)",
        "store_release": "atomic_store_explicit({a}, {b}, memory_order_release)",
        "xchg": "atomic_exchange_explicit({a}, {b}, memory_order_seq_cst)",
        "fetch_add": "atomic_fetch_add_explicit({a}, {b}, memory_order_seq_cst)",
        "fetch_add_relaxed": "atomic_fetch_add_explicit({a}, {b}, memory_order_relaxed)",
        "fence_full": "atomic_thread_fence(memory_order_seq_cst)"}


class Case:
    """One run of herd: a name, the programs, the verdict expected, the model.  The verdict is Sometimes if that of one program is."""

    def __init__(self, name, texts, want, model, mutant=None):
        self.name, self.texts, self.want, self.model, self.mutant = name, texts, want, model, mutant


def header(text, key):
    return [m.strip() for m in re.findall(r"^ \* %s: (.*)$" % key, text, re.M)]


def split(text):
    """The comment block, and the program."""
    at = text.index(" *)\n") + 4
    return text[:at], text[at:]


def weaken(text, mutant):
    """The operations of LABEL:kind made relaxed; fences vanish."""
    head, text = split(text)
    label, kind = mutant.split(":")
    if kind in ("light", "full", "heavy"):
        new, n = re.subn(r"quiesce_fence_%s\(%s\);" % (kind, label), "", text)
    elif kind == "rmw":
        new, n = re.subn(r"quiesce_(xchg|cmpxchg|fetch_add)\(%s, " % label, r"quiesce_\1_relaxed(", text)
    else:
        names = {"acquire": "load_(?:acquire|consume)", "release": "store_release"}[kind]
        new, n = re.subn(r"quiesce_%s\(%s, " % (names, label),
                         "quiesce_%s_relaxed(" % ("load" if kind == "acquire" else "store"), text)
    if not n:
        raise ValueError("no operation for " + mutant)
    return head + new


def full_mode(text):
    head, body = split(text)
    return head + re.sub(r"quiesce_fence_(light|heavy)\(", "quiesce_fence_full(", body)


def to_c11(text):
    """Our dialect in the words of C11, or None where it has none."""
    def op(m):
        args = [a.strip() for a in m.group(2).split(",")]
        if not m.group(1).endswith("relaxed"):
            args = args[1:]
        args += [""] * (2 - len(args))
        return ATOM[m.group(1)].format(a=args[0], b=args[1])
    head, body = split(text)
    if "quiesce_cmpxchg" in body or header(head, "Rmw"):
        return None
    body = re.sub(r"quiesce_(\w+)\(([^()]*)\)", op, body)
    return head + re.sub(r"\bint \*", "atomic_int* ", body)


def arm_cases(name, text):
    """A Never holds by Arm's own model, for each form of the code, place of an interrupt, and mode."""
    for program, mode in {full_mode(text): " in full-fence mode", text: ""}.items():
        yield from (Case("%s on AArch64, %s%s" % (name, form.name, mode), to_a64.programs(program, form), "Never", "aarch64")
                    for form in (to_a64.LSE, to_a64.LLSC))


def weakenings(paths):
    """(LABEL:kind, path) of each weakening that our model shows, but for light fences, which are no instruction."""
    for path in paths:
        with open(path) as f:
            lines = header(f.read(), "Weakened")
        yield from ((line.split()[0], path) for line in lines if line.endswith(" Sometimes") and ":light " not in line)


def weakened_programs(mutant, path):
    """The programs in which a witness may be; none if they are too many."""
    with open(path) as f:
        text = weaken(f.read(), mutant)
    try:
        return to_a64.programs(text, to_a64.LLSC, everywhere=True)
    except to_a64.TooMany:
        return []


def arm_list():
    """LABEL:kind: the file and the number of a program in which Arm's model shows the weakening; None: in no program."""
    with open(ARM_LIST) as f:
        lines = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    return {mutant: (name, int(number)) if number != "-" else None for mutant, name, number in lines}


def witness_cases():
    for mutant, witness in arm_list().items():
        if witness:
            program = weakened_programs(mutant, os.path.join(HERE, witness[0] + ".litmus"))[witness[1]]
            yield Case("%s with %s on AArch64" % (witness[0], mutant), [program], "Sometimes", "aarch64")


def cases_of(path):
    with open(path) as f:
        text = f.read()
    name = os.path.basename(path)[:-len(".litmus")]
    result = header(text, "Result")
    if len(result) != 1 or result[0] not in ("Never", "Sometimes"):
        raise ValueError(path + ": needs one Result: Never or Sometimes")
    if text.startswith("AArch64"):
        return [Case(name, [text], result[0], "aarch64")]
    guard = header(text, "Guard")
    model = "quiesce-rmw-full" if header(text, "Rmw") else "quiesce"
    cases = [Case(name, [text], result[0], model, guard[0] if guard else None)]
    for line in header(text, "Weakened"):
        mutant, verdict = line.split()
        cases.append(Case("%s with %s" % (name, mutant), [weaken(text, mutant)], verdict, model, mutant))
    if result[0] == "Never":
        strong = full_mode(text)
        if strong != text:
            cases.append(Case(name + " in full-fence mode", [strong], "Never", model))
        c11 = to_c11(strong)
        if c11:
            cases.append(Case(name + " in C11", [c11], "Never", "rc11"))
        cases += arm_cases(name, text)
    return cases


def find_herd(args):
    """(command, libdir) or None."""
    if args.herd:
        return [args.herd] + (["-set-libdir", args.libdir] if args.libdir else [])
    dirs = [os.environ.get("QUIESCE_VERIFY_TOOLS"), CACHE]
    if args.fetch and not shutil.which("herd7") and not any(d and os.path.exists(d + "/bin/herd7") for d in dirs):
        script = os.path.join(HERE, "..", "..", "scripts", "verify-tools.sh")
        subprocess.run([script, dirs[0] or CACHE], check=False, stdout=sys.stderr)
    for d in dirs:
        if d and os.path.exists(d + "/bin/herd7"):
            return [d + "/bin/herd7", "-set-libdir", d + "/root/usr/share/herdtools7/herd"]
    return ["herd7"] if shutil.which("herd7") else None


def judge(herd, case, tmp, number, seconds=300):
    paths = [os.path.join(tmp, "%d-%d.litmus" % (number, i)) for i in range(len(case.texts))]
    for path, text in zip(paths, case.texts):
        with open(path, "w") as f:
            f.write(text)
    models = {"rc11": ["-model", "rc11.cat"], "aarch64": ["-speedcheck", "fast"]}
    ours = ["-I", MODEL, "-conf", os.path.join(MODEL, case.model + ".cfg")]
    try:
        out = subprocess.run(herd + models.get(case.model, ours) + paths, capture_output=True, text=True, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired) as e:
        return "error: %s" % e
    # The first number counts executions that fulfil "exists".
    found = re.findall(r"^Observation .* \w+ (\d+) \d+$", out.stdout, re.M)
    if len(found) == len(paths):
        return "Sometimes" if any(map(int, found)) else "Never"
    return "error: " + (out.stderr.strip() or out.stdout.strip())[:300]


def find_witness(herd, mutant, paths, tmp, number):
    """The line of arm.list for LABEL:kind.  Files with few programs come first, and none that takes long is a witness."""
    programs = {path: weakened_programs(mutant, path) for path in paths}
    for path in sorted(paths, key=lambda path: len(programs[path])):
        for i, program in enumerate(programs[path]):
            verdict = judge(herd, Case("", [program], "", "aarch64"), tmp, number, seconds=5)
            if verdict == "Sometimes":
                return "%s\t%s\t%d" % (mutant, os.path.basename(path)[:-len(".litmus")], i)
            if "timed out" in verdict:
                break
            if verdict != "Never":
                raise ValueError("%s with %s: %s" % (path, mutant, verdict))
    return mutant + "\t-\t-"


def write_arm_list(herd, paths):
    """Write arm.list."""
    files = {}
    for mutant, path in weakenings(paths):
        files.setdefault(mutant, []).append(path)
    with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        lines = list(pool.map(lambda x: find_witness(herd, x[1], files[x[1]], tmp, x[0]), enumerate(sorted(files))))
    with open(ARM_LIST, "w") as f:
        f.write("# SPDX-License-Identifier: MIT\n")
        f.write("# Written by run.py --arm-list: a weakened LABEL:kind, and the program in which Arm's model shows it, if there is one:\n")
        f.write("# the file, and the number of the program among those of to_a64.py.\n")
        f.writelines(line + "\n" for line in lines)
    print("litmus: %d weakenings, of which Arm's model shows %d" % (len(lines), sum(not line.endswith("-") for line in lines)))


def main():
    ap = argparse.ArgumentParser(description="run herd7 on the litmus files")
    ap.add_argument("files", nargs="*", help="default: all")
    ap.add_argument("--herd", help="the herd7 to run (default: $QUIESCE_VERIFY_TOOLS, the cache, PATH)")
    ap.add_argument("--libdir", help="its model directory")
    ap.add_argument("--fetch", action="store_true", help="unpack herd7 by scripts/verify-tools.sh if there is none")
    ap.add_argument("--mutant", help="only what LABEL:kind or the guard changes; exit 0 if a verdict turns to Sometimes")
    ap.add_argument("--list-mutants", action="store_true", help="print each mutant killed here with its file")
    ap.add_argument("--arm-list", action="store_true", help="write arm.list anew")
    ap.add_argument("--quick", action="store_true", help="each file, and one weakening of it; scripts/ci/model.sh runs all")
    ap.add_argument("-v", "--verbose", action="store_true")
    args = ap.parse_args()

    with tempfile.TemporaryDirectory() as tmp:
        generated = {os.path.basename(f): f for f in gen_a64.write(tmp)}
        files = args.files or sorted([os.path.join(HERE, f) for f in os.listdir(HERE) if f.endswith(".litmus")] + list(generated.values()))
        files = [f if os.path.exists(f) else generated.get(os.path.basename(f), f) for f in files]
        cases = [c for f in files for c in cases_of(f)[:2 if args.quick else None]]
        own = [f for f in files if os.path.dirname(f) == HERE]
    if not (args.files or args.quick or args.arm_list):
        cases += witness_cases()
    if args.list_mutants:
        for c in cases:
            if c.mutant and c.want == "Sometimes":
                print("%s\t%s" % (c.mutant, c.name.split(" with ")[0]))
        return 0
    if args.mutant:
        cases = [c for c in cases if c.mutant == args.mutant and c.want == "Sometimes"]
        if not cases:
            print("litmus: no file kills " + args.mutant)
            return 1
    herd = find_herd(args)
    if not herd:
        print("litmus: skipped: no herd7 (scripts/verify-tools.sh DIR unpacks it; then QUIESCE_VERIFY_TOOLS=DIR, or --fetch)")
        return 77
    if args.arm_list:
        write_arm_list(herd, own)
        return 0
    bad = 0
    if not args.files and {mutant for mutant, _ in weakenings(own)} != set(arm_list()):
        bad = 1
        print("FAILED: arm.list has not the weakenings of the files: run.py --arm-list")
    with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for case, got in zip(cases, pool.map(lambda x: judge(herd, x[1], tmp, x[0]), enumerate(cases))):
            ok = got == case.want
            bad += not ok
            if args.verbose or not ok:
                print("%s: %s: %s%s" % ("ok" if ok else "FAILED", case.name, got, "" if ok else ", expected " + case.want))
    print("litmus: %d passed, %d failed" % (len(cases) - bad, bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
