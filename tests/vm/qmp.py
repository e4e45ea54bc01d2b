"""A small client of QEMU's monitor (QMP): one command, one answer. Keeps no events; a caller that wants them
overrides note().

Used by tests that act as the owner of a machine, and by tests/bench/compare.
"""

import json
import socket

from guest import TIMEOUT


class QmpError(AssertionError):
    """QEMU refused a command, or ended."""


class Qmp:
    """One connection; a context manager."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(TIMEOUT)
        self._socket.connect(str(path))
        self._file = self._socket.makefile("r")
        self._file.readline()  # the greeting
        self.ask("qmp_capabilities")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        """Hangs up."""
        self._file.close()
        self._socket.close()

    def ask(self, name, **arguments):
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
            if "event" in answer:
                self.note(answer)

    def note(self, event):
        """Takes an event that came before an answer."""

    def human(self, line):
        """Runs a line of the human monitor; returns its text."""
        return self.ask("human-monitor-command", **{"command-line": line})

    def status(self):
        """running, paused, ..."""
        return self.ask("query-status")["status"]
