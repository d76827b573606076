#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Queries and dynamic updates for a name server at 127.0.0.1: it follows pointers under RCU to answer, and reclaims
what an update replaces after a grace period.

Prints updates and queries in a second, and how long an update takes.  Exit status: 0; 1 the server went away or answered wrongly.
"""
import argparse
import os
import random
import select
import socket
import statistics
import struct
import sys
import time

ZONE, NAMES = b"\x04test\x00", 1000


def name(i):
    text = b"n%d" % i
    return bytes([len(text)]) + text + ZONE


def query(ident, i):
    return struct.pack("!6H", ident, 0, 1, 0, 0, 0) + name(i) + struct.pack("!2H", 1, 1)


def address(i, ident):
    return name(i) + struct.pack("!2HIH", 1, 1, 60, 4) + bytes([127, 0, ident >> 8 & 255, ident & 255])


def update(ident, i, new):
    """Replace the addresses of a name by another one, and add so many names that were not there."""
    records = [name(i) + struct.pack("!2HIH", 1, 255, 0, 0), address(i, ident)]
    records += [address(random.randrange(NAMES, 1 << 31), ident) for _ in range(new)]
    return struct.pack("!6H", ident, 5 << 11, 1, 0, len(records), 0) + ZONE + struct.pack("!2H", 6, 1) + b"".join(records)


def connected(port, number):
    """Sockets; a server that has one for each of its threads may take what comes from one of them in any of its threads."""
    socks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(number)]
    for sock in socks:
        sock.connect(("127.0.0.1", port))
        sock.settimeout(10)
    return socks


def wrong(answer):
    return len(answer) < 12 or answer[3] & 15 or struct.unpack("!H", answer[6:8])[0] != 1


def flood(port, end, window, ask=query, bad=wrong, sockets=1, pause=0):
    """Keep WINDOW queries under way until END, by turns from so many ports, with pauses of this mean; returns how many were answered."""
    socks = connected(port, sockets)
    answered, ident = 0, 0
    while time.monotonic() < end:
        for i in range(window):
            ident = (ident + 1) & 0xffff
            socks[i % sockets].send(ask(ident, random.randrange(NAMES)))
        for i in range(window):
            sock = socks[i % sockets]
            if not select.select([sock], [], [], 0.2)[0]:
                break  # lost, or the server is gone
            if bad(sock.recv(512)):
                raise ConnectionError("a wrong answer")
            answered += 1
        if pause:
            time.sleep(random.uniform(0, 2 * pause))
    return answered


def updates(port, end, new=0, sockets=1):
    """One after the other; returns the seconds of each."""
    socks = connected(port, sockets)
    took, ident = [], 0
    while time.monotonic() < end:
        ident = (ident + 1) & 0xffff
        sock = socks[ident % sockets]
        start = time.monotonic()
        sock.send(update(ident, random.randrange(NAMES), new))
        answer = sock.recv(512)
        took.append(time.monotonic() - start)
        if answer[3] & 15:
            raise ConnectionError(f"an update is refused: {answer[3] & 15}")
    return took


def await_server(port):
    """Wait until the server answers; at most ten seconds."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect(("127.0.0.1", port))
    sock.settimeout(0.1)
    for _ in range(100):
        try:
            sock.send(query(1, 1))
            if not sock.recv(512)[3] & 15:
                return
        except OSError:
            time.sleep(0.1)
    raise ConnectionError("no server")


def beside(opt, change, window=32, **asking):
    """Return the result of change(port, end), and the queries in a second that were answered beside it."""
    await_server(opt.port)
    end, pipes = time.monotonic() + opt.seconds, []
    for _ in range(opt.clients):
        ours, theirs = os.pipe()
        if not os.fork():
            try:
                os.write(theirs, b"%d" % flood(opt.port, end, window, **asking))
                os._exit(0)
            except OSError:
                os._exit(1)
        os.close(theirs)
        pipes.append(ours)
    changed = change(opt.port, end)
    counts = [os.read(pipe, 32) for pipe in pipes]
    if not changed or b"" in counts:
        raise ConnectionError("the server is gone, or answers wrongly")
    return changed, sum(map(int, counts)) / opt.seconds


def options(about):
    args = argparse.ArgumentParser(description=about)
    args.add_argument("--port", type=int, required=True)
    args.add_argument("--seconds", type=float, default=5)
    args.add_argument("--clients", type=int, default=2, help="processes that ask (default: 2)")
    return args


def main():
    args = options(__doc__)
    args.add_argument("--sockets", type=int, default=1, help="of each client (default: 1)")
    args.add_argument("--new", type=int, default=0, help="names that an update adds (default: 0)")
    opt = args.parse_args()
    try:
        took, queries = beside(opt, lambda port, end: updates(port, end, opt.new, opt.sockets), sockets=opt.sockets)
    except OSError as why:
        print(f"load: {why or 'no answer'}", file=sys.stderr)
        return 1
    print(f"{len(took) / opt.seconds:.0f} updates/s of {statistics.median(took) * 1e3:.2f} ms, {queries:.0f} queries/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
