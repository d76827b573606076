#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Queries to gdnsd at 127.0.0.1, while its zones and its challenges for certificates are replaced through its control socket.

A challenge is for a set of names: to set it, and to flush it, takes a grace period of gdnsd's main thread.  After some of them all zones
are loaded anew, as by "gdnsdctl reload-zones".  Half of the queries are for names of the zone, half for challenges.

The queries come as fast as they are answered, then rarely, so that each thread of the server has some ten times in a second.
Prints how long each takes, and queries in a second, for both.  Exit status: 0; 1 the server went away or answered wrongly.
"""
import random
import socket
import statistics
import struct
import sys
import time

import load

LABEL = b"\x0f_acme-challenge"
SET, SETS = 50, 5  # names of a set, and sets between two loads of the zones
SOCKETS = 8         # enough that each thread of the server has queries, whichever ports the kernel gives to it


def text(i):
    """Return the contents of the challenge of a name."""
    return b"%043d" % i


def ask_challenge(ident, i):
    return struct.pack("!6H", ident, 0, 1, 0, 0, 0) + LABEL + load.name(i % SET) + struct.pack("!2H", 16, 1)


def ask(ident, i):
    return random.choice((load.query, ask_challenge))(ident, i)


def bad(answer):
    """No answer of the zone's, or another name's challenge; that a name has none just now is right."""
    if not answer.startswith(LABEL, 12):
        return load.wrong(answer)
    if struct.unpack("!H", answer[6:8])[0] == 0:
        return answer[3] & 15 not in (0, 3)
    name = answer[13 + len(LABEL):].split(b"\x04", 1)[0]
    return answer[3] & 15 or answer[-43:] != text(int(name[1:]))


def request(control, key, count=0, data=b""):
    """Seconds until it is done."""
    start = time.monotonic()
    control.sendall(key + struct.pack("!I", count)[1:] + struct.pack("=I", len(data)) + data)
    answer = control.recv(8)
    if answer[:1] != b"A":
        raise ConnectionError(f"a request is refused: {key!r} {answer!r}")
    return time.monotonic() - start


def challenge():
    names = [load.name(i) for i in range(SET)]
    return b"".join(bytes([len(name)]) + name + text(i) + b"\0" for i, name in enumerate(names))


def await_challenge(sock):
    """Check that the challenge is answered, as it has to be once the request is done."""
    sock.send(ask_challenge(0, random.randrange(SET)))
    answer = sock.recv(512)
    if bad(answer) or not answer[7]:
        raise ConnectionError("a challenge is not answered")


def changes(path):
    def change(port, end):
        took = {"challenge": [], "flush": [], "reload": []}
        sock, = load.connected(port, 1)
        control = socket.socket(socket.AF_UNIX)
        control.settimeout(10)
        control.connect(path)
        while time.monotonic() < end or not took["reload"]:
            for _ in range(SETS):
                took["challenge"].append(request(control, b"C", SET, challenge()))
                await_challenge(sock)
                took["flush"].append(request(control, b"c"))
            took["reload"].append(request(control, b"Z"))
        return took
    return change


def main():
    args = load.options(__doc__)
    args.add_argument("--control", required=True, metavar="SOCKET")
    opt = args.parse_args()
    said = []
    try:
        for how, asking in ("busy", {"window": 32}), ("rare", {"window": SOCKETS, "pause": 0.1}):
            took, queries = load.beside(opt, changes(opt.control), ask=ask, bad=bad, sockets=SOCKETS, **asking)
            times = ", ".join(f"{what} {statistics.median(times) * 1e3:.2f} ms" for what, times in took.items())
            said.append(f"{how}: {times}, {queries:.0f} queries/s")
    except OSError as why:
        print(f"load: {why or 'no answer'}", file=sys.stderr)
        return 1
    print("; ".join(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
