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


def update(ident, i):
    """Replace the addresses of a name by another one."""
    zone = ZONE + struct.pack("!2H", 6, 1)
    delete = name(i) + struct.pack("!2HIH", 1, 255, 0, 0)
    address = bytes([127, 0, ident >> 8 & 255, ident & 255])
    add = name(i) + struct.pack("!2HIH", 1, 1, 60, 4) + address
    return struct.pack("!6H", ident, 5 << 11, 1, 0, 2, 0) + zone + delete + add


def flood(port, end, window):
    """Keep WINDOW queries under way until END; returns how many were answered."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect(("127.0.0.1", port))
    answered, ident = 0, 0
    while time.monotonic() < end:
        for _ in range(window):
            ident = (ident + 1) & 0xffff
            sock.send(query(ident, random.randrange(NAMES)))
        for _ in range(window):
            if not select.select([sock], [], [], 0.2)[0]:
                break  # lost, or the server is gone
            answer = sock.recv(512)
            if len(answer) < 12 or answer[3] & 15 or struct.unpack("!H", answer[6:8])[0] != 1:
                raise ConnectionError("a wrong answer")
            answered += 1
    return answered


def updates(port, end):
    """One after the other; returns the seconds of each."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect(("127.0.0.1", port))
    sock.settimeout(10)
    took, ident = [], 0
    while time.monotonic() < end:
        ident = (ident + 1) & 0xffff
        start = time.monotonic()
        sock.send(update(ident, random.randrange(NAMES)))
        answer = sock.recv(512)
        took.append(time.monotonic() - start)
        if answer[3] & 15:
            raise ConnectionError(f"an update is refused: {answer[3] & 15}")
    return took


def await_server(port):
    """Until it answers; at most ten seconds."""
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


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--port", type=int, required=True)
    args.add_argument("--seconds", type=float, default=5)
    args.add_argument("--clients", type=int, default=2, help="processes that ask (default: 2)")
    opt = args.parse_args()
    try:
        await_server(opt.port)
    except OSError as why:
        print(f"load: {why}", file=sys.stderr)
        return 1
    end, pipes = time.monotonic() + opt.seconds, []
    for _ in range(opt.clients):
        ours, theirs = os.pipe()
        if not os.fork():
            try:
                os.write(theirs, b"%d" % flood(opt.port, end, 32))
                os._exit(0)
            except OSError:
                os._exit(1)
        os.close(theirs)
        pipes.append(ours)
    try:
        took = updates(opt.port, end)
    except OSError as why:
        print(f"load: {why or 'no answer'}", file=sys.stderr)
        return 1
    told = [os.read(pipe, 32) for pipe in pipes]
    if not took or b"" in told:
        print("load: the server is gone, or answers wrongly", file=sys.stderr)
        return 1
    print(f"{len(took) / opt.seconds:.0f} updates/s of {statistics.median(took) * 1e3:.2f} ms, {sum(map(int, told)) / opt.seconds:.0f} queries/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
