"""A small QMP client: one command, one answer. Used by compare; keeps no events."""

import json
import socket


class QmpError(Exception):
    """QEMU refused a command."""


class Qmp:
    """One connection; a context manager."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._file = self._socket.makefile("r")
        self._file.readline()  # the greeting
        self.command("qmp_capabilities")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self._file.close()
        self._socket.close()

    def command(self, name, **arguments):
        """Runs one command; returns what it returned."""
        request = {"execute": name, "arguments": arguments} if arguments else {"execute": name}
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        while True:
            line = self._file.readline()
            if not line:
                raise QmpError(f"QEMU ended during {name}")
            answer = json.loads(line)
            if "error" in answer:
                raise QmpError(f"{name}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def monitor(self, line):
        """Runs a line of the human monitor; returns its text."""
        return self.command("human-monitor-command", **{"command-line": line}).strip()
