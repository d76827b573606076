#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Print the stamp of a set of headers: the tool loads only modules that were compiled with the same headers.

    stamp.py HEADER...
"""
import hashlib
import pathlib
import sys

text = b"".join(pathlib.Path(name).read_bytes() for name in sys.argv[1:])
print(f'#define PEER_STAMP "quiesce {hashlib.sha256(text).hexdigest()[:16]}"')
