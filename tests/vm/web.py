"""Runs `ringside web` for a test: its requests, the events of its pages, and that it leaves nothing behind.

Does not: know a browser (browser.py).
"""

import http.client
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import uuid

import ringside


class Server:
    """A server; a context manager."""

    def __init__(self, *targets, options=(), environment=None):
        self._folder = tempfile.TemporaryDirectory(prefix="ringside-web-")
        self.mark = uuid.uuid4().hex
        environment = {**os.environ, "TMPDIR": self._folder.name, ringside.MARK: self.mark, **(environment or {})}
        self.process = subprocess.Popen([ringside.binary(), "web", *options, *map(str, targets)], env=environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.address = self.process.stdout.readline().strip()
        match = re.fullmatch(r"http://(127\.0\.0\.1):(\d+)/\?token=([0-9a-f]{32})", self.address)
        if not match:
            raise AssertionError(f"no address: {self.address!r} {self.process.stderr.read()}")
        self.port, self.token = int(match[2]), match[3]
        self.cookie = {"Cookie": f"ringside-{self.port}={self.token}"}
        self.origin = {"Origin": f"http://127.0.0.1:{self.port}"}

    def __enter__(self):
        return self

    def __exit__(self, kind, *unused):
        self.process.send_signal(signal.SIGTERM)
        try:
            _, errors = self.process.communicate(timeout=ringside.TIMEOUT)
        finally:
            self.process.kill()
        left = ringside.wait_for_end(self.mark)
        files = os.listdir(self._folder.name)
        self._folder.cleanup()
        if kind is None and (left or files or errors or self.process.returncode != 0):
            raise ringside.Leftovers(f"processes {left}, files {files}, status {self.process.returncode}: {errors}")

    def connect(self):
        """A connection to it."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=ringside.TIMEOUT)

    def ask(self, path, *, method="GET", body=None, headers=None):
        """Status, headers and text of a reply; without `headers` as a page that is let in asks."""
        connection = self.connect()
        try:
            connection.request(method, path, body, self.cookie | self.origin if headers is None else headers)
            reply = connection.getresponse()
            return reply.status, dict(reply.getheaders()), reply.read().decode()
        finally:
            connection.close()

    def text(self, path):
        """The text of a reply that must succeed."""
        status, _, text = self.ask(path)
        if status != 200:
            raise AssertionError(f"{path}: {status}: {text}")
        return text

    def programs(self):
        """The processes of programs that it has started, which trace."""
        return [pid for pid in ringside.marked_processes(self.mark) if is_program(pid)]

    def resident(self):
        """Its memory, in bytes."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * 4096


def is_program(pid):
    """Whether this ringside runs a page's program."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"\0sealed\0" in file.read()
    except OSError:
        return False


class Page:
    """An open page: its connection for events, and the programs that it starts."""

    def __init__(self, server):
        self.server = server
        self._open()
        self.events = []
        self.name = self.wait_for(lambda event: event["kind"] == "page")["page"]

    def _open(self):
        """Pages that were just closed may count for a moment."""
        deadline = time.monotonic() + ringside.TIMEOUT
        while True:
            self.connection = self.server.connect()
            self.connection.request("GET", "/api/events", headers=self.server.cookie)
            self.reply = self.connection.getresponse()
            if self.reply.status == 200:
                return
            said = self.reply.read()
            self.connection.close()
            if time.monotonic() > deadline:
                raise AssertionError(said)
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        """As a browser that ends, with the connection alone."""
        self.reply.close()
        self.connection.close()

    def next(self):
        """The next event."""
        while not (line := self.reply.readline()).startswith(b"data: "):
            if not line:
                raise AssertionError("the events have ended")
        event = json.loads(line[6:])
        self.events.append(event)
        return event

    def wait_for(self, found, limit=ringside.TIMEOUT):
        """The first event for which found(event) is true, among those that were read or come."""
        for event in self.events:
            if found(event):
                return event
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            if found(event := self.next()):
                return event
        raise AssertionError(f"not in time: {self.events}")

    def run(self, d, *targets, arguments=()):
        """Starts a program; its number."""
        order = {"page": self.name, "targets": list(map(str, targets)), "d": d, "arguments": list(arguments)}
        status, _, text = self.server.ask("/api/run", method="POST", body=json.dumps(order))
        if status != 200:
            raise AssertionError(f"{status}: {text}")
        return json.loads(text)["program"]

    def wait_until_traced(self, program):
        """BEGIN has printed "tracing"."""
        self.wait_for(lambda event: event["kind"] == "record" and event["program"] == program
                      and event["record"].get("output", [{}])[0].get("message") == "tracing\n")

    def stop(self, program):
        """Ends it, as the button does."""
        status, _, text = self.server.ask(f"/api/stop?program={program}", method="POST", body="{}")
        if status != 200:
            raise AssertionError(text)

    def end_of(self, program):
        """Waits for its end; the exit status."""
        return self.wait_for(lambda event: event["kind"] == "end" and event["program"] == program)["status"]

    def of(self, program, kind):
        """The events of a kind that have come."""
        return [event for event in self.events if event["kind"] == kind and event["program"] == program]

    def messages(self, program):
        """Its lines on stderr."""
        return "\n".join(event["text"] for event in self.of(program, "message"))

    def saved(self, program):
        """All of its records."""
        return [json.loads(line) for line in self.server.text(f"/api/records?program={program}").splitlines()]

    def aggregation(self, program, name, record="AGGREGATIONS"):
        """The entries of an aggregation, as the last record of that name has them."""
        records = [event["record"] for event in self.of(program, "record") if event["record"]["name"] == record]
        return next(item for item in records[-1]["output"] if item["aggregation-name"] == name)
