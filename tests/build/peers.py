#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The peers' modules: the tool finds them where they are installed, loads those that it needs, and does without them.

Missing modules are simulated in a copy: no package is installed or removed.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

from tap import Tap, execute

PEERS = {}  # with a type of each: any name with its prefix where the module was not built
COMMANDS = {}  # with the subcommand that measures that type
OURS = ["rcu", "shazptr", "hazptr", "noop"]
ONCE = ["--runs=1", "--readers=1", "--loops=100"]


def once(peer):
    """Return the arguments of a short measurement of the type of @peer."""
    more = ONCE if COMMANDS[peer] == "refscale" else ["--runs=1", "--threads=1", "--seconds=0.001"]
    return [COMMANDS[peer], f"--type={PEERS[peer]}", *more]


class Copy:
    """Copy the tool and its modules into a directory of their own, as they are installed."""

    def __init__(self, root, tool, modules):
        self.tool, self.peers = root / "bin/quiesce", root / "libexec/quiesce/peers"
        self.tool.parent.mkdir(parents=True)
        self.peers.mkdir(parents=True)
        shutil.copy(tool, self.tool)
        for module in modules:
            shutil.copy(module, self.peers)

    def change(self, name, old, new):
        """Other bytes in a module; true if they were there."""
        module = self.peers / f"{name}.so"
        whole = module.read_bytes()
        module.write_bytes(whole.replace(old, new))
        return old in whole

    def types(self, command="refscale"):
        """As --help lists them."""
        return re.findall(r"^  (\w+) +\S", execute([self.tool, command, "--help"]).stdout.split("Types:")[1], re.M)

    def found(self):
        """Return the findings of doctor: {peer: (value, note)}"""
        findings = json.loads(execute([self.tool, "doctor", "--json"]).stdout)["doctor"]
        return {f["name"].removeprefix("peer "): (f["value"], f["note"]) for f in findings if f["name"].startswith("peer ")}

    def loaded(self, tmp, *args):
        """Return the modules that each process of a run has loaded."""
        shutil.rmtree(tmp, ignore_errors=True)
        tmp.mkdir()
        run = execute([self.tool, *args], env={"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(tmp / "ld")})
        sets = [sorted(set(re.findall(r"quiesce/peers/(\w+)\.so", log.read_text()))) for log in sorted(tmp.iterdir())]
        return run.returncode, sorted(sets)


def of(types, peer):
    return [t for t in types if t.startswith(peer + "_")]


def check_files(tap, tool, modules):
    text = execute(["readelf", "-dW", tool]).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", text)
    tap.result(needed and not [n for n in needed if re.match("|".join(f"(lib)?{p}" for p in PEERS), n)], "the tool is not linked with peers", text)
    for module in modules:
        # As fast as in a program that is linked with the library: see tools/peers/meson.build and types/liburcu/own.h.
        relocations = execute(["readelf", "-rW", module]).stdout
        tap.result("Relocation section" in relocations and not re.search("DTPMOD|TLSDESC|__tls_get_addr", relocations),
                   f"{module.name}: no call to find a thread-local variable", relocations)
        if module.stem == "liburcu":
            tap.result(not re.search(r"urcu_(memb|bp)_(gp|has_sys_membarrier)\b", relocations),
                       "liburcu.so: what its readers use is in the module", relocations)


def check_all(tap, copy, names):
    types = {command: copy.types(command) for command in {"refscale", *COMMANDS.values()}}
    tap.result(all(PEERS[n] in types[COMMANDS[n]] for n in names) and all(t in types["refscale"] for t in OURS), "every peer's types are listed", types)
    found = copy.found()
    tap.result(list(found) == list(PEERS) and all(found[n] == ("here", None) for n in names), "doctor: all modules, loaded together", found)
    for args, want in ((["--version"], [[]]),
                       (["refscale", "--type=rcu", "--fence=full", *ONCE], [[], []]),
                       *((once(n), [[n], [n]]) for n in names)):
        got = copy.loaded(copy.tool.parent / "logs", *args)
        tap.result(got == (0, want), f"{' '.join(args)}: each process loads what it needs", f"{got}, want {want}")


def check_counted(tap, copy):
    rows = execute([copy.tool, "rcuscale", "--type=liburcu_memb,raw_membarrier", "--scenario=idle", "--readers=1", "--seconds=0.02",
                    "--runs=1", "--json"])
    count = {row["type"]: row["membarriers"] for row in json.loads(rows.stdout)["rows"]}
    if "raw_membarrier" not in count:
        tap.skip("what a library asks of the kernel is counted", "there is no membarrier here")
        return
    tap.result(count["liburcu_memb"] > 0, "what a library asks of the kernel is counted", rows.stdout)


def refused(tap, copy, peer, reason, why):
    """A request for the peer prints one line with the reason @why; other runs do not print it."""
    run = execute([copy.tool, *once(peer)])
    tap.result(run.returncode == 2 and not run.stdout and
               re.fullmatch(rf"quiesce {COMMANDS[peer]}: --type={PEERS[peer]}: .*{reason}.*\n", run.stderr), f"{why}: a request for it prints why", run)
    left = copy.types()
    tap.result(not of(left, peer) and all(t in left for t in OURS), f"{why}: its types are not listed", left)


def check_rest(tap, copy, gone, reason, why):
    """Without the peers @gone the others work."""
    found = copy.found()
    tap.result([n for n in PEERS if found[n][0] != "here"] == gone and all(re.search(reason, found[n][1]) for n in gone),
               f"{why}: doctor says so", found)
    run = execute([copy.tool, "refscale", "--type=rcu", "--fence=full", "--json", *ONCE])
    tap.result(run.returncode == 0 and [r["type"] for r in json.loads(run.stdout)["rows"]] == ["rcu"], f"{why}: rcu is measured", run)


def check_allocators(tap, copy, names):
    """An allocator is measured, and stays that of its own objects: the process keeps the C library's."""
    for name in {"mimalloc", "jemalloc"} & set(names):
        run = execute([copy.tool, "retirescale", f"--type={PEERS[name]},raw_malloc_free", "--runs=1", "--threads=2", "--seconds=0.01", "--json"])
        document = json.loads(run.stdout or "{}")
        tap.result(run.returncode == 0 and len(document["rows"]) == 10 and not document["notes"], f"{name} is measured in every scenario", run)
    if "jemalloc" in names:
        run = execute([copy.tool, "retirescale", f"--type={PEERS['jemalloc']}", "--runs=1", "--threads=1", "--seconds=0.01", "--json"],
                      env={"GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=512"})
        notes = json.loads(run.stdout or "{}").get("notes", [])
        tap.result(run.returncode != 0 and len(notes) == 1 and "left out" in notes[0], "jemalloc without room for its thread-local memory is left out", run)


def check_without(tap, copy, names):
    name = names[0]
    module = copy.peers / f"{name}.so"
    whole = module.read_bytes()
    library = re.search(r"NEEDED.*\[(lib.*?)\]", execute(["readelf", "-dW", module]).stdout)[1].encode()
    tap.result(copy.change(name, library + b"\0", library.replace(b".so", b".no") + b"\0"), f"{library.decode()} is made another name")
    why = "without the library"
    refused(tap, copy, name, "needs .*Debian", why)
    check_rest(tap, copy, [n for n in PEERS if n == name or n not in names], "Debian|not there", why)
    module.write_bytes(whole)
    stamp = re.search(rb"quiesce [0-9a-f]{16}", whole)[0]
    copy.change(name, stamp, stamp[:-16] + b"0" * 16)
    refused(tap, copy, name, "belongs to another build", "a module of other headers")
    module.write_bytes(whole)
    tap.result(PEERS[name] in copy.types(), "the module as it was is loaded again")
    order = [t for t in copy.types() if not any(t.startswith(n + "_") for n in PEERS)]
    shutil.rmtree(copy.peers)
    for peer in PEERS:
        refused(tap, copy, peer, "is not there", f"without any module, {peer}")
    check_rest(tap, copy, list(PEERS), "is not there", "without any module")
    tap.result(copy.types() == order, "without any module, all others are listed", copy.types())


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--tool", required=True)
    opt = args.parse_args()
    for name in [n for n in os.environ if n.startswith("QUIESCE_")]:
        del os.environ[name]
    tool = pathlib.Path(os.path.realpath(opt.tool))
    modules = sorted((tool.parent / "peers").glob("*.so"))
    known = json.loads(execute([tool, "types"]).stdout)
    for peer in known["peers"]:
        found = [(t["type"], t["subcommand"]) for t in known["types"] if t["subcommand"] in ("refscale", "retirescale") and t.get("peer") == peer]
        PEERS[peer], COMMANDS[peer] = found[0] if found else (f"{peer}_x", "refscale")
    names = [n for n in PEERS if n in [m.stem for m in modules]]
    tap = Tap()
    check_files(tap, tool, modules)
    with tempfile.TemporaryDirectory() as name:
        copy = Copy(pathlib.Path(name), tool, modules)
        check_all(tap, copy, names)
        if "liburcu" in names:
            check_counted(tap, copy)
        check_allocators(tap, copy, names)
        if names:
            check_without(tap, copy, names)
        else:
            tap.skip("modules", "none was built: liburcu-dev, libck-dev, libcds-dev, libtbb-dev, libmimalloc-dev or libjemalloc-dev is not installed")
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
