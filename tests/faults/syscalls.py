#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""syscalls.py TEST DOCUMENT - check that the table of DOCUMENT is the one by which TEST judges.  With --write, replace it."""
import subprocess
import sys

BEGIN, END = '<!-- printed by test_syscalls --table -->\n', '<!-- end -->\n'


def main():
    test, path = sys.argv[1:3]
    table = subprocess.run([test, '--table'], check=True, capture_output=True, text=True).stdout
    with open(path, encoding='utf-8') as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    old, after = rest.split(END)
    if '--write' in sys.argv:
        with open(path, 'w', encoding='utf-8') as file:
            file.write(before + BEGIN + table + END + after)
        return 0
    if old != table:
        print(f'{path} has another table: {sys.argv[0]} {test} {path} --write')
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
