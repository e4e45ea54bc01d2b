"""A real Chromium, driven by chromedriver over WebDriver's own HTTP: no package of Python is needed.

Used by test_web_page.py. Does not: know the page.
"""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import ringside

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the name that WebDriver gives elements in its JSON
MISSING = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
needs_browser = unittest.skipIf(MISSING, f"{' and '.join(MISSING)} not installed (apt-get install chromium chromium-driver)")


class BrowserError(AssertionError):
    """The browser refused a command."""


class Browser:
    """A browser with one page; a context manager."""

    def __init__(self, width=1400, height=1600):
        self._folder = tempfile.TemporaryDirectory(prefix="ringside-browser-")
        environment = dict(os.environ, HOME=self._folder.name, XDG_CONFIG_HOME=self._folder.name,
                           XDG_CACHE_HOME=self._folder.name, TMPDIR=self._folder.name)
        # A group of its own, so that the browser ends with its driver.
        self._driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, env=environment, start_new_session=True)
        self._base = f"http://127.0.0.1:{self._port()}/session"
        arguments = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", f"--window-size={width},{height}",
                     f"--user-data-dir={self._folder.name}/profile", "--disable-background-networking", "--no-first-run"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        self.downloads = f"{self._folder.name}/downloads"
        os.mkdir(self.downloads)
        wanted = {"goog:chromeOptions": {"args": arguments, "prefs": {"download.default_directory": self.downloads}},
                  "goog:loggingPrefs": {"browser": "ALL"}}
        session = self._ask("POST", self._base, {"capabilities": {"alwaysMatch": wanted}})
        self._base += f"/{session['sessionId']}"
        self.send("POST", "/timeouts", {"script": 60000, "pageLoad": 120000})

    def _port(self):
        for line in self._driver.stdout:
            if match := re.search(r"started successfully on port (\d+)", line):
                return int(match[1])
        raise BrowserError("chromedriver does not start")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        try:
            self.send("DELETE", "")
        finally:
            os.killpg(self._driver.pid, signal.SIGKILL)
            self._driver.communicate()
            self._folder.cleanup()

    @staticmethod
    def _ask(method, address, body):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=ringside.TIMEOUT) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            raise BrowserError(json.load(error)["value"]["message"]) from None

    def send(self, method, path, body=None):
        """A command of WebDriver; its value."""
        return self._ask(method, self._base + path, body)

    def open(self, address):
        """Loads a page."""
        self.send("POST", "/url", {"url": address})

    def execute(self, script, *arguments):
        """Runs the body of a function in the page; what it returns."""
        return self.send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def devtools(self, command, **parameters):
        """A command of Chromium's own protocol."""
        return self.send("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def wait_for(self, script, *arguments):
        """Runs it until it returns something that is true."""
        deadline = time.monotonic() + ringside.TIMEOUT
        while not (value := self.execute(script, *arguments)):
            if time.monotonic() > deadline:
                raise AssertionError(f"not in time: {script}: {self.execute('return document.body.innerText')}")
            time.sleep(0.1)
        return value

    def find(self, selector):
        """An element."""
        return self.send("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        """A click with the mouse."""
        self.send("POST", f"/element/{self.find(selector)}/click", {})

    def type(self, selector, text):
        """Keys into an element; special ones are WebDriver's characters."""
        self.send("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def text(self, selector):
        """The text that is shown of an element."""
        return self.send("GET", f"/element/{self.find(selector)}/text")

    def screenshot(self, path):
        """The whole window, as a PNG."""
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.send("GET", "/screenshot")))

    def log(self):
        """The lines of the page's console, violations of its policy included."""
        return self.send("POST", "/se/log", {"type": "browser"})

    def colours(self, scheme):
        """"dark" or "light", as the user's desktop would have it."""
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
