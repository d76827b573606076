#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""other_library.py OUTPUT COMPILER ARGS...: compile with libc++ where that is installed, and print the library's name."""
import subprocess
import sys

LIBRARIES = ("-stdlib=libc++", "-stdlib=libstdc++")


def main():
    output, compiler, *args = sys.argv[1:]
    for library in LIBRARIES:
        probe = subprocess.run([compiler, library, "-x", "c++", "-fsyntax-only", "-"], input="#include <cstddef>\n",
                               text=True, capture_output=True)
        if probe.returncode == 0:
            print(f"{output}: {compiler} {library}")
            return subprocess.run([compiler, *args, library, "-o", output]).returncode
    print(f"{compiler} finds no standard library", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
