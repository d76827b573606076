# SPDX-License-Identifier: MIT
"""Load for multipathd: clients that read its configuration all the time, while another has it loaded again."""
import argparse
import socket
import struct
import sys
import threading
import time

SOCKET = "\0/org/kernel/linux/storage/multipathd"
SIZE = struct.Struct("@N")


class Client:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(20)
        self.socket.connect(SOCKET)

    def receive(self, count):
        data = b""
        while len(data) < count:
            got = self.socket.recv(count - len(data))
            if not got:
                raise OSError("multipathd has gone")
            data += got
        return data

    def ask(self, command):
        data = command.encode() + b"\0"
        self.socket.sendall(SIZE.pack(len(data)) + data)
        return self.receive(SIZE.unpack(self.receive(SIZE.size))[0]).rstrip(b"\0").decode(errors="replace")


def connected(deadline):
    """A client, once multipathd listens and has its first configuration."""
    while True:
        try:
            client = Client()
            if client.ask("show daemon").rstrip().endswith("idle"):
                return client
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.02)


class Reader(threading.Thread):
    """Asks for the configuration, which is the same each time."""

    def __init__(self, want, until):
        super().__init__(daemon=True)
        self.client, self.want, self.until, self.answers, self.error = Client(), want, until, 0, None

    def run(self):
        try:
            while time.monotonic() < self.until and not self.error:
                got = self.client.ask("show config")
                self.answers += 1
                if got != self.want:
                    self.error = "a configuration that is not the one that was loaded"
        except OSError as error:
            self.error = str(error)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--readers", type=int, default=4)
    args = parser.parse_args()
    client = connected(time.monotonic() + 20)
    want, start = client.ask("show config"), time.monotonic()
    readers = [Reader(want, start + args.seconds) for _ in range(args.readers)]
    loads = 0
    for reader in readers:
        reader.start()
    while time.monotonic() < start + args.seconds:
        if client.ask("reconfigure").rstrip() != "ok":
            sys.exit("it refuses to load its configuration again")
        while not client.ask("show daemon").rstrip().endswith("idle"):
            pass
        loads += 1
    for reader in readers:
        reader.join(20)
    errors = [reader.error for reader in readers if reader.error]
    if errors:
        sys.exit(errors[0])
    seconds = time.monotonic() - start
    print(f"{len(want)} bytes of configuration: loaded {loads / seconds:.0f} times/s,"
          f" read {sum(reader.answers for reader in readers) / seconds:.0f} times/s")


if __name__ == "__main__":
    try:
        main()
    except OSError as problem:
        sys.exit(f"multipathd does not answer: {problem}")
