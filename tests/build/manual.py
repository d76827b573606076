#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The manual pages of section 3: every public call has one, and mandoc finds nothing to say about any.

	manual.py --listed DIR --include DIR --pages DIR

DIR of --listed has listed.py, which knows the public names.  A name without a page stands in UNDOCUMENTED with the reason.
"""
import argparse
import fnmatch
import pathlib
import shutil
import subprocess
import sys

UNDOCUMENTED = {
    "detail/*": "not for programs",
    "atomic.h": "of the library, described in its own comments",
    "base.h": "of the library, described in its own comments",
    "LIST_HEAD": "on the page of LIST_HEAD_INIT",
    "QUIESCE_*": "parts of other macros",
    "quiesce_hash*_next*": "parts of loops",
    "quiesce_xa_*": "what inline calls of other names call",
}


def missing(names, pages):
    for name, header in sorted(names.items()):
        plain = name.removeprefix("quiesce_")
        if name not in pages and plain not in pages and not any(fnmatch.fnmatch(x, p) for p in UNDOCUMENTED for x in (name, header)):
            yield f"{header}: {name} has no manual page"


def lint(folder):
    files = sorted(p for p in folder.glob("*.3") if not p.is_symlink())
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "style", *map(str, files)], capture_output=True, text=True, check=False)
    # Only pages that are installed are found; and a line without a page is about the installed ones.
    return [line for line in (done.stdout + done.stderr).strip().splitlines() if ".3:" in line and "referenced manual not found" not in line]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("listed", "include", "pages"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    options = parser.parse_args()
    sys.path.insert(0, str(options.listed))
    import listed  # pylint: disable=import-error,import-outside-toplevel
    pages = {p.stem for p in options.pages.glob("*.3")}
    wrong = list(missing(listed.public_names(options.include), pages))
    have = shutil.which("mandoc")
    faults = lint(options.pages) if have else []
    print("1..2")
    print("\n".join("# " + line for line in wrong + faults))
    print(f"{'not ' if wrong or len(pages) < 300 else ''}ok 1 - a page for every public call, {len(pages)} in all")
    print(f"{'not ' if faults else ''}ok 2 - mandoc finds nothing" + ("" if have else " # SKIP there is no mandoc"))
    return 1 if wrong or faults else 0


if __name__ == "__main__":
    sys.exit(main())
