#!/usr/bin/env python3
"""A QEMU whose gdbstub turns hostile when the first byte of guest code is to be written.

    HOSTILE=silent|lies|refuses|nonsense|endless QEMU=PATH hostile_qemu.py QEMU'S ARGUMENTS

For test_hostile_qemu.py. Everything else is the real QEMU, of which this is the parent: it stands
between the gdbstub and the descriptor that ringside gave for it.
"""

import ctypes
import os
import re
import select
import signal
import socket
import sys

PR_SET_PDEATHSIG = 1


def packet(payload):
    """A packet of the gdb remote protocol."""
    return b"$%s#%02x" % (payload, sum(payload) & 0xff)


class Gdbstub:
    """Passes on what ringside and the real stub say, or says something else instead."""

    def __init__(self, kind, client, stub):
        self._kind = kind
        self._client = client
        self._stub = stub
        self._hostile = False

    def from_client(self, data):
        """Passes requests on, until one would write code."""
        if not self._hostile and (found := re.search(rb"\$M[0-9a-f]+,", data)):
            self._hostile = True
            self._stub.sendall(data[:found.start()])
            data = data[found.start():]
        if not self._hostile:
            self._stub.sendall(data)
        elif self._kind == "lies":
            self._answer(data, packet(b"OK"))
        elif self._kind == "refuses":
            self._answer(data, packet(b"E14"))
        elif self._kind == "nonsense":
            self._client.sendall(b"$\x1b[2J\xff#zz")
        elif self._kind == "endless":
            self._client.setblocking(True)
            while True:
                self._client.sendall(b"+" * 65536)

    def _answer(self, data, by):
        """Answers what writes code; all else goes to the stub, so that the guest can go on."""
        for request in re.findall(rb"\$[^#]*#..|\x03", data):
            if request.startswith(b"$M"):
                self._client.sendall(by)
            else:
                self._stub.sendall(request)

    def from_stub(self, data):
        """Passes answers on, unless there are others now."""
        if not self._hostile or self._kind in ("lies", "refuses"):
            self._client.sendall(data)


def main():
    words = sys.argv[1:]
    at = next(i for i, word in enumerate(words) if re.match(r"socket,id=debugger,fd=\d+$", word))
    client = socket.socket(fileno=int(words[at].rpartition("=")[2]))
    stub, theirs = socket.socketpair()
    words[at] = f"socket,id=debugger,fd={theirs.fileno()}"
    os.set_inheritable(theirs.fileno(), True)
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.execv(os.environ["QEMU"], [os.environ["QEMU"], *words])
    theirs.close()
    between = Gdbstub(os.environ["HOSTILE"], client, stub)
    try:
        while True:
            ready = select.select([client, stub], [], [])[0]
            for source, passes in ((client, between.from_client), (stub, between.from_stub)):
                if source in ready:
                    if not (data := source.recv(65536)):
                        return
                    passes(data)
    except OSError:
        return


main()
