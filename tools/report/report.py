#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `quiesce report` runs: measure, and make a page of it; or compare two of them."""
import argparse
import importlib.util
import json
import os
import pathlib
import signal
import sys

NEEDED = {"matplotlib": "python3-matplotlib", "jinja2": "python3-jinja2"}


def find_libraries(needed=NEEDED):
    """The packages that are missing.  Distributions install the libraries for their own Python, which may not be the first in the path."""
    missing = [package for module, package in needed.items() if not importlib.util.find_spec(module)]
    system = "/usr/bin/python3"
    if missing and os.path.realpath(sys.executable) != os.path.realpath(system) and os.path.exists(system):
        os.execv(system, [system, *sys.argv])
    return missing


def listen():
    """The tool has blocked SIGINT: it would end Python badly while Python starts, or imports a module."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def make_directory(name):
    """Makes the directory; returns it and the paths that are new.  A wrong path is reported before a missing package and before any measurement."""
    made = []
    try:
        path = pathlib.Path(name)
        for new, make in ((path, path.mkdir), (path / "report.json", (path / "report.json").touch)):
            if not new.exists():
                make()
                made.append(new)
        (path / "report.json").open("a", encoding="utf-8").close()
    except OSError as error:
        unmake(made)
        print(f"quiesce report: cannot write {name}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
    return path, made


def unmake(made):
    for path in reversed(made):
        path.rmdir() if path.is_dir() else path.unlink()


def make(tool, directory, made, quick, only):
    """The document and the exit status; no document if a signal came before there was anything to write."""
    import measure

    def save(document):
        """A report that is ended later, in any way, leaves this behind."""
        part = directory / "report.json.part"
        part.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        part.replace(directory / "report.json")

    signals = measure.Signals()
    listen()
    try:
        document, failed, interrupted = measure.measure(tool, signals, quick, only, save)
    except measure.Stopped:
        unmake(made)
        return None, 130
    return document, 130 if interrupted else 1 if failed else 0


def main():
    args = argparse.ArgumentParser(prog="quiesce report")
    args.add_argument("--tool")
    args.add_argument("--output", default="quiesce-report")
    args.add_argument("--quick", action="store_true")
    args.add_argument("--only", type=lambda text: text.split(","))
    args.add_argument("--from", dest="given")
    args.add_argument("--compare", nargs=2)
    args.add_argument("--json", action="store_true")
    opt = args.parse_args()
    if opt.compare:
        import compare
        listen()
        compare.compare(*opt.compare, opt.json)
        return 0
    missing = find_libraries()
    directory, made = make_directory(opt.output)
    if missing:
        unmake(made)
        sys.exit(f"quiesce report: its pictures need {' and '.join(missing)} (Debian: apt-get install {' '.join(missing)})")
    import page
    if opt.given:
        import measure
        listen()
        document, status = json.loads(pathlib.Path(opt.given).read_text(encoding="utf-8")), 0
        if "types" not in document:  # an older version wrote it
            document.update(measure.types(opt.tool) if opt.tool else {"peers": [], "types": []})
    else:
        document, status = make(opt.tool, directory, made, opt.quick, opt.only)
    if not document:
        print("quiesce report: interrupted before anything was measured", file=sys.stderr)
        return status
    pictures = page.write(document, directory)
    for note in document["notes"]:
        print(f"quiesce report: {note}", file=sys.stderr)
    print(f"{directory / 'index.html'}: {pictures} pictures; report.json beside it")
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.stdout.flush()
        os._exit(130)  # no normal exit: a module may be half imported
