"""`ringside web` by real HTTP: who is let in, what programs print, how they end, saved results, /metrics read by
Prometheus; and on a guest the guest's own counts."""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import guest
import ringside
from web import Page, Server

READS = 1000
COUNTS = """BEGIN { printf("tracing\\n"); }
syscall::read:return /execname == "workload" && arg1 == 7/ { @reads[execname] = count(); @sizes = quantize(arg1); }
fbt::vfs_read:entry /execname == "workload"/ { @stacks[stack()] = count(); }
syscall::read:return /execname == "workload" && arg1 == 7 && n++ < 10/ { trace(arg1); }
"""


class Requests(unittest.TestCase):
    """No guest is needed: programs that have none."""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server())

    def page(self):
        return self.enterContext(Page(self.server))

    def wait_until_none_runs(self):
        deadline = time.monotonic() + ringside.TIMEOUT
        while self.server.programs():
            self.assertLess(time.monotonic(), deadline, "programs outlive their page")
            time.sleep(0.05)

    def test_the_first_address_gives_a_cookie_and_goes_on_without_the_token(self):
        status, headers, _ = self.server.ask(f"/?token={self.server.token}", headers={})
        self.assertEqual((status, headers["Location"]), (303, "/"))
        self.assertEqual(headers["Set-Cookie"], f"ringside-{self.server.port}={self.server.token}; Path=/; HttpOnly; "
                                                "SameSite=Strict")
        status, headers, text = self.server.ask("/", headers=self.server.cookie)
        self.assertEqual(status, 200)
        self.assertIn("default-src 'none'; script-src 'self'", headers["Content-Security-Policy"])
        self.assertIn("<title>ringside</title>", text)

    def test_nobody_else_is_let_in(self):
        cookie, own = self.server.cookie, f"127.0.0.1:{self.server.port}"
        wrong = {"Cookie": f"ringside-{self.server.port}={'0' * 32}"}
        for path in ("/", "/page.js", "/api/events", "/metrics", "/api/look?command=ps&target=x", "/nothing"):
            for headers, wanted in (({}, 401), (wrong, 401), ({"Authorization": "Bearer x"}, 401),
                                    (cookie | {"Host": "evil.example"}, 421), (cookie | {"Host": f"evil.example:{self.server.port}"}, 421),
                                    (cookie | {"Origin": "http://evil.example"}, 403), (cookie | {"Origin": "null"}, 403),
                                    (cookie | {"Sec-Fetch-Site": "cross-site"}, 403)):
                status, _, text = self.server.ask(path, headers=headers)
                self.assertEqual(status, wanted, (path, headers, text))
        status, _, _ = self.server.ask("/api/run", method="POST", body="{}", headers=cookie)
        self.assertEqual(status, 403, "a change without an origin")
        status, _, _ = self.server.ask(f"/?token={'0' * 32}", headers={"Host": own})
        self.assertEqual(status, 401)
        status, _, text = self.server.ask("/metrics", headers={"Authorization": f"Bearer {self.server.token}"})
        self.assertEqual(status, 200, text)

    def test_requests_that_are_none_are_refused(self):
        for data in (b"\0\1\2\3\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 200000 + b"\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=ringside.TIMEOUT) as raw:
                with contextlib.suppress(ConnectionError):
                    raw.sendall(data)
                    self.assertNotIn(b" 200 ", raw.recv(4096))
        status, _, text = self.server.ask("/api/run", method="POST", body="x" * (3 << 20))
        self.assertEqual((status, "shorten the program" in text), (413, True))
        self.assertEqual(self.server.ask("/")[0], 200)

    def test_a_program_runs_with_its_arguments(self):
        page = self.page()
        program = page.run('BEGIN { printf("%s %d <script>alert(1)</script>\\n", $$1, $2); @a[$$1] = sum($2); exit(3); }',
                           arguments=["-w \"two words\"", "42"])
        self.assertEqual(page.end_of(program), 3)
        record = page.of(program, "record")[0]["record"]
        self.assertEqual(record["output"][0]["message"], '-w "two words" 42 <script>alert(1)</script>\n')
        self.assertEqual(page.aggregation(program, "a")["aggregation-data"], [{"keys": ['-w "two words"'], "sum": 42}])
        names = [each["name"] for each in page.saved(program)]
        self.assertEqual(names, ["BEGIN", "AGGREGATIONS"], "what was shown meanwhile is not saved")

    def test_errors_come_with_their_place(self):
        page = self.page()
        program = page.run("BEGIN { }\nBEGIN { nothing(); }\n")
        self.assertEqual(page.end_of(program), 1)
        self.assertRegex(page.messages(program), r"/dev/stdin[^\d\n]{1,12}2\b")

    def test_programs_may_change_nothing_on_the_host(self):
        page, path = self.page(), pathlib.Path(tempfile.gettempdir(), f"ringside-web-test-{os.getpid()}")
        for d in ('BEGIN { system("touch %s"); }', 'BEGIN { freopen("%s"); printf("x"); }',
                  '#pragma D option destructive\nBEGIN { system("touch %s"); }',
                  '#pragma D option ctypes=%s\nstruct a { int b; };\nBEGIN { exit(0); }',
                  '#pragma D option maxslow=100\nBEGIN { exit(0); } /* %s */', '#pragma D option cpp\nBEGIN { exit(0); } /* %s */'):
            with self.subTest(d):
                program = page.run(d % path)
                self.assertEqual(page.end_of(program), 1, page.messages(program))
                self.assertRegex(page.messages(program), "Destructive actions not allowed|may change the host")
                self.assertFalse(path.exists())

    def test_programs_end_when_their_page_goes(self):
        page, other = Page(self.server), self.page()
        for _ in range(2):
            program = page.run("BEGIN { printf(\"tracing\\n\"); } tick-1s { }")
            page.wait_until_traced(program)
        stays = other.run("BEGIN { printf(\"tracing\\n\"); } tick-1s { }")
        other.wait_until_traced(stays)
        self.assertEqual(len(self.server.programs()), 3)
        page.close()
        deadline = time.monotonic() + ringside.TIMEOUT
        while len(self.server.programs()) > 1:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.assertEqual(self.server.ask(f"/api/records?program={program}")[0], 404)
        other.stop(stays)
        self.assertEqual(other.end_of(stays), 0)
        self.wait_until_none_runs()

    def test_a_killed_server_takes_its_programs_along(self):
        server = Server()
        self.addCleanup(server.process.kill)
        page = Page(server)
        program = page.run("BEGIN { printf(\"tracing\\n\"); } tick-1s { }")
        page.wait_until_traced(program)
        server.process.kill()
        self.assertEqual(server.process.wait(), -9)
        self.assertEqual(ringside.wait_for_end(server.mark, ringside.TIMEOUT), [])
        page.close()
        with self.assertRaises(ringside.Leftovers):
            server.__exit__(None)

    def test_five_pages_may_be_open(self):
        for _ in range(5):
            self.page()
        status, _, text = self.server.ask("/api/events")
        self.assertEqual((status, text), (503, "5 pages are open already: close one of them\n"))
        self.doCleanups()
        self.page()

    def test_what_is_too_much_to_show_is_counted_and_saved(self):
        page = self.page()
        program = page.run("#pragma D option bufsize=64m\nBEGIN { for (this->i = 0; this->i < 30000; this->i++) "
                           '{ printf("record %d", this->i); } exit(0); }')
        self.assertEqual(page.end_of(program), 0, page.messages(program))
        shown = page.of(program, "record")
        left_out = page.of(program, "left-out")[-1]["count"]
        self.assertLess(len(shown), 30000)
        saved = page.saved(program)
        self.assertEqual(len(shown) + left_out, len(saved))
        messages = [each["output"][0]["message"] for each in saved if "message" in each["output"][0]]
        self.assertEqual(messages, [f"record {n}" for n in range(30000)])

    def test_a_browser_that_does_not_read_costs_no_memory(self):
        page = self.page()
        program = page.run("#pragma D option strsize=2k\n#pragma D option bufsize=64m\nBEGIN { printf(\"tracing\\n\"); s = $$1; } "
                           'tick-20ms { for (this->i = 0; this->i < 100; this->i++) { printf("%s", s); } n++; } '
                           "tick-20ms /n == 400/ { exit(0); }", arguments=["x" * 2000])
        deadline = time.monotonic() + ringside.TIMEOUT
        while self.server.programs():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.2)
        self.assertLess(self.server.resident(), 80 << 20)
        self.assertEqual(page.end_of(program), 0)
        saved = page.saved(program)
        drops = sum(each.get("count", 0) for each in saved if each["name"] == "DROP")
        texts = sum(len(each.get("output", [{}])[0].get("message", "")) == 2000 for each in saved)
        self.assertEqual(texts + drops, 40000)

    def test_errors_that_are_too_many_to_show_are_counted_and_saved(self):
        page = self.page()
        program = page.run("#pragma D option bufsize=16m\nprofile-997 { trace(*(int *)8); } profile-997 /n++ == 3000/ { exit(0); }")
        self.assertEqual(page.end_of(program), 0, page.messages(program))
        told = page.messages(program).splitlines()
        shown = sum("invalid address" in line for line in told)
        left_out = sum(int(line.split()[0]) for line in told if line.endswith(" lines were not shown"))
        errors = sum("error" in each for each in page.saved(program))
        self.assertGreater(errors, 0)
        self.assertGreaterEqual(shown + left_out, errors)

    def test_100000_keys_are_cut_while_they_grow_and_saved_whole(self):
        page = self.page()
        program = page.run("#pragma D option aggsize=256m\nBEGIN { for (this->i = 0; this->i < 100000; this->i++) "
                           '{ @keys[this->i, "a key of some length"] = sum(this->i); } } tick-1s { exit(0); }')
        self.assertEqual(page.end_of(program), 0, page.messages(program))
        meanwhile = page.aggregation(program, "keys", "MEANWHILE")
        self.assertEqual((len(meanwhile["aggregation-data"]), meanwhile["left-out"]), (1000, 99000))
        self.assertEqual(meanwhile["aggregation-data"][-1]["sum"], 99999)
        self.assertGreater(page.of(program, "large")[0]["bytes"], 4 << 20)
        last = page.saved(program)[-1]["output"][0]["aggregation-data"]
        self.assertEqual(sorted(entry["sum"] for entry in last), list(range(100000)))

    def test_pictures_that_cannot_be_drawn_say_why(self):
        page = self.page()
        program = page.run("BEGIN { exit(0); }")
        page.end_of(program)
        status, headers, text = self.server.ask(f"/api/picture?form=flame&program={program}")
        self.assertEqual(status, 422)
        self.assertIn("count()", text)
        self.assertIn("sandbox", headers["Content-Security-Policy"])

    def test_examples_are_those_that_come_with_it(self):
        self.assertIn("opens", self.server.text("/api/examples"))
        self.assertIn("syscall::open", self.server.text("/api/examples?name=opens"))
        self.assertEqual(self.server.ask("/api/examples?name=../../etc/passwd")[0], 404)

    def test_a_port_that_is_in_use_is_told(self):
        for words, wanted in ((["--listen", str(self.server.port)], "Address already in use"),
                              (["--listen", "nowhere:80"], "is no address")):
            done = subprocess.run([ringside.binary(), "web", *words], capture_output=True, text=True, check=False,
                                  timeout=ringside.TIMEOUT)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done)
            self.assertIn(wanted, done.stderr)


class Traces(unittest.TestCase):
    """A guest that is traced from a page."""

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="ringside-web-guest-"))
        machine = guest.Guest("debian-6.12", cpus=2, append=guest.PATIENT, options=[
            "-name", "web<b>1", "-qmp", f"unix:{folder}/qmp,server=on,wait=off"])
        cls.port = cls.enterClassContext(machine)
        cls.target = f"qmp:{folder}/qmp"
        cls.server = cls.enterClassContext(Server(cls.target))

    def traced(self, d):
        """A page, and its program, which traces."""
        page = self.enterContext(Page(self.server))
        program = page.run(d, self.target)
        page.wait_until_traced(program)
        return page, program

    def work(self):
        status, said = self.port.run(f"workload --reads {READS} --read-size 7")
        self.assertEqual(status, 0, said)

    def test_counts_are_the_guests(self):
        page, program = self.traced(COUNTS)
        self.work()
        page.wait_for(lambda event: event["kind"] == "record" and event["record"]["name"] == "MEANWHILE" and
                      any(item["aggregation-name"] == "reads" and item["aggregation-data"][0]["count"] == READS
                          for item in event["record"]["output"]))
        flame = self.server.text(f"/api/picture?form=flame&program={program}")
        self.assertIn("vmlinux`ksys_read", flame, "a flame graph while the program runs")
        page.stop(program)
        self.assertEqual(page.end_of(program), 0, page.messages(program))
        self.assertEqual(page.aggregation(program, "reads")["aggregation-data"], [{"keys": ["workload"], "count": READS}])
        sizes = page.aggregation(program, "sizes")["aggregation-data"][0]["buckets"]
        self.assertEqual({each["value"]: each["count"] for each in sizes if each["count"]}, {4: READS})
        traced = [event["record"] for event in page.of(program, "record") if event["record"]["provider"] == "syscall"]
        self.assertEqual([(each["output"][0]["value"], each["execname"]) for each in traced], [(7, "workload")] * 10)
        self.assertEqual(len(page.saved(program)), 12)

    def test_the_page_knows_the_machine(self):
        with Page(self.server) as page:
            event = page.wait_for(lambda event: event["kind"] == "machines" and event["machines"] and
                                  event["machines"][0].get("state") == "running" and event["machines"][0].get("load"))
        machine, = event["machines"]
        self.assertEqual((machine["name"], machine["state"], machine["attach"], len(machine["load"])),
                         ("web_b_1", "running", self.target, 3))
        self.port.run("sh -c 'sleep 1000; true' '<script>alert(1)</script>' &")
        target = urllib.request.quote(self.target, safe="")
        processes = json.loads(self.server.text(f"/api/look?command=ps&target={target}"))["ps"][0]["processes"]
        self.assertIn("<script>alert(1)</script>", sum((each["command"] for each in processes), []))
        for command in ("dmesg", "modules", "mounts", "netstat", "lsof", "why"):
            self.assertIn(command, json.loads(self.server.text(f"/api/look?command={command}&target={target}")))

    @unittest.skipUnless(shutil.which("prometheus"), "Prometheus is not installed (apt-get install prometheus)")
    def test_prometheus_reads_the_figures(self):
        page, program = self.traced(COUNTS)
        self.work()
        page.wait_for(lambda event: event["kind"] == "record" and event["record"]["name"] == "MEANWHILE")
        with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
            free.close()
            pathlib.Path(folder, "prometheus.yml").write_text(
                "scrape_configs:\n- job_name: ringside\n  scrape_interval: 1s\n  authorization:\n"
                f"    credentials: {self.server.token}\n  static_configs:\n  - targets: ['127.0.0.1:{self.server.port}']\n")
            with open(f"{folder}/log", "wb") as log, subprocess.Popen(
                    ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                     f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log) as prometheus:
                try:
                    self.check_prometheus(port, program, f"{folder}/log")
                finally:
                    prometheus.terminate()

    def check_prometheus(self, port, program, log):
        """It has the count of the reads, each bucket, and no error."""
        count = self.query(port, f'ringside_aggregation{{program="{program}",aggregation="reads",key1="workload"}} == {READS}', log)
        self.assertEqual(count["metric"]["machine"], "web_b_1", "as traces call it")
        self.query(port, f'ringside_distribution_bucket{{program="{program}",le="7.0"}} == {READS}', log)
        self.query(port, f'ringside_firings_total{{program="{program}"}} >= {READS}', log)
        self.query(port, 'up{job="ringside"} == 1', log)

    def query(self, port, words, log):
        """The first result, once there is one."""
        deadline = time.monotonic() + ringside.TIMEOUT
        while time.monotonic() < deadline:
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                address = f"http://127.0.0.1:{port}/api/v1/query?query={urllib.request.quote(words)}"
                with urllib.request.urlopen(address, timeout=30) as reply:
                    result = json.load(reply)["data"]["result"]
                if result:
                    return result[0]
            time.sleep(0.2)
        raise AssertionError(f"{words}: {pathlib.Path(log).read_text()}")


if __name__ == "__main__":
    unittest.main()
