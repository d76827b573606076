#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write patched copies of headers beside STAMP, which lists them: apply.py STAMP INCLUDE PATCHES HEADER..."""
import pathlib
import subprocess
import sys


def main():
    stamp, include, patches = map(pathlib.Path, sys.argv[1:4])
    for header in sys.argv[4:]:
        copy = stamp.parent / header
        copy.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["patch", "--quiet", "--fuzz=0", f"--output={copy}", include / header,
                        (patches / header).with_suffix(".patch")], check=True)
    stamp.write_text("".join(f"/* {header} */\n" for header in sys.argv[4:]))


if __name__ == "__main__":
    try:
        main()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"guarded headers: {error}")
