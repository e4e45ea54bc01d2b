#!/usr/bin/env python3
"""A QEMU whose first monitor lies to whoever talks to it.

    QEMU=PATH HOSTILE=FILE hostile_monitor.py QEMU'S ARGUMENTS

For test_hostile_monitor.py. FILE says how: "KIND SEED", read anew at each connection. This process becomes the
real QEMU, so that the socket is its own for all that a client can see; a child stands between the clients
and that QEMU's true socket. It passes on descriptors as well, so that a client gets as far as it would.
"""

import ctypes
import json
import os
import pathlib
import random
import re
import select
import signal
import socket
import sys
import time

PR_SET_PDEATHSIG = 1
HONEST = 12  # answers, before a monitor of these kinds turns: some way into attaching
NONSENSE = [None, True, -1, 2**64, 1e308, "", "\0\x1b[2J", "0x" + "f" * 40, "x" * 5000, [], [[]] * 50, {}, {"": []}]


def broken(value, chance):
    """The value with parts of it replaced, left out, repeated or turned into another number."""
    if chance.random() < 0.15:
        return chance.choice(NONSENSE)
    if isinstance(value, dict):
        return {key: broken(part, chance) for key, part in value.items() if chance.random() > 0.05}
    if isinstance(value, list):
        parts = [broken(part, chance) for part in value]
        return parts * chance.choice((1, 1, 1, 0, 2, 100))
    if isinstance(value, str):
        return re.sub(r"0x[0-9a-f]+|\b\d+\b", lambda found: other_number(found[0], chance), value)
    if isinstance(value, int):
        return chance.choice((value, value + 1, -value, value << 20, 2**63 - 1))
    return value


def other_number(text, chance):
    """Mostly the same one."""
    if chance.random() < 0.8:
        return text
    return chance.choice(("0x0", "0xffffffffffffffff", text + "000", text[:-1] or "9", "-1"))


def moved_address(value, chance):
    """The answer of gpa2hva, leading elsewhere."""
    if not isinstance(value, str) or "Host virtual address" not in value:
        return value
    return re.sub(r"is 0x[0-9a-f]+", lambda found: f"is {int(found[0][3:], 16) + (chance.randrange(1, 4096) << 12):#x}",
                  value)


class Liar:
    """Makes the words that the client is told instead of each line of QEMU's."""

    def __init__(self, kind, seed):
        self._kind = kind
        self._chance = random.Random(seed)
        self._answers = 0
        self._turns = self._chance.randrange(1, 40)

    def tell(self, line):
        """The bytes for the client; None: nothing ever again. May go on for ever."""
        message = json.loads(line)
        if "return" not in message:
            return [line]
        self._answers += 1
        if self._kind == "addresses":
            message["return"] = moved_address(message["return"], self._chance)
            return [json.dumps(message).encode() + b"\r\n"]
        if self._answers < HONEST and self._kind != "anything" or self._answers < self._turns:
            return [line]
        return getattr(self, "_" + self._kind)(message, line)

    def _honest(self, _message, line):
        return [line]

    def _silence(self, _message, _line):
        return None

    def _endless(self, _message, _line):
        return iter(lambda: b" " * 65536, b"")

    def _events(self, _message, line):
        names = ("STOP", "RESUME", "RESET", "SHUTDOWN", "MEMORY_DEVICE_SIZE_CHANGE", "MIGRATION", "\x1b[2J" * 50)
        events = [{"event": self._chance.choice(names), "data": self._chance.choice(NONSENSE), "timestamp": {}}
                  for _ in range(5000)]
        return [b"".join(json.dumps(event).encode() + b"\r\n" for event in events), line]

    def _depth(self, message, _line):
        return [json.dumps({"id": message.get("id"), "return": 0}).encode().replace(
            b": 0}", b": " + b"[" * 500000 + b"]" * 500000 + b"}") + b"\r\n"]

    def _ids(self, message, line):
        others = [json.dumps({**message, "id": other}).encode() + b"\r\n" for other in NONSENSE]
        return [*others, line] if self._chance.random() < 0.5 else others

    def _anything(self, message, line):
        if self._chance.random() < 0.5:
            return [line]
        message["return"] = broken(message["return"], self._chance)
        return [json.dumps(message).encode() + b"\r\n"]


def stand_between(client, qemu, liar):
    """Until one of them hangs up."""
    said = b""
    while True:
        ready = select.select([client, qemu], [], [])[0]
        if client in ready:
            data, descriptors, _, _ = socket.recv_fds(client, 65536, 8)
            if not data:
                return
            socket.send_fds(qemu, [data], descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
        if qemu in ready:
            data = qemu.recv(65536)
            if not data:
                return
            *lines, said = (said + data).split(b"\n")
            for line in lines:
                told = liar.tell(line + b"\n")
                if told is None:
                    client.recv(1 << 20, socket.MSG_WAITALL)  # until the client has enough of it
                    return
                for part in told:
                    client.sendall(part)


def serve(listener, path, plan):
    """Takes clients one after the other."""
    while True:
        client = listener.accept()[0]
        kind, seed = pathlib.Path(plan).read_text().split()
        qemu = socket.socket(socket.AF_UNIX)
        while qemu.connect_ex(path) != 0:
            time.sleep(0.05)
        try:
            stand_between(client, qemu, Liar(kind, int(seed)))
        except OSError:
            pass
        client.close()
        qemu.close()


def main():
    words = sys.argv[1:]
    at = next(i for i, word in enumerate(words) if word == "-qmp") + 1
    path = re.match(r"unix:([^,]+)", words[at])[1]
    words[at] = words[at].replace(path, path + ".true")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1)
    qemu = os.getpid()
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == qemu:
            serve(listener, path + ".true", os.environ["HOSTILE"])
        return
    os.execvp(os.environ["QEMU"], [os.environ["QEMU"], *words])


main()
