"""Guests that libvirt started, attached to by their domains: what virsh does to them meanwhile."""

import json
import os
import re
import signal
import subprocess
import time
import unittest

import libvirt
import ringside
from test_attach_qmp import COUNT, OPENED, READS, begin, check_a_pause, end, started
from patient import why, why_stopped
from test_take_over import LEFT

REASON = libvirt.missing()
SYSTEM_REASON = libvirt.missing_for_system()


def attach(target, program, record="yes", **settings):
    """A ringside that traces a domain, in the background. All of its probes record, or it says why not."""
    return ringside.Run(program, machine=False, options=["--attach", target, "-q", "-x", f"record={record}"], **settings)


class Case(unittest.TestCase):
    """One daemon for all tests of a class."""

    daemon = None

    @classmethod
    def setUpClass(cls):
        cls.libvirt = cls.enterClassContext(cls.daemon())

    def target(self, name):
        """A domain as --attach has it."""
        return f"{self.libvirt.uri}&name={name}"

    def check_counts(self, domain, target, **settings):
        """Counts of a workload are exact, and the domain goes on."""
        with attach(target, begin(f"{COUNT} {OPENED}"), **settings) as running:
            started(running)
            status, said = domain.port.run(f"workload --reads {READS}")
            outcome = end(running)
        self.assertEqual((status, outcome.status, outcome.stderr), (0, 0, ""), outcome)
        truth = ringside.Outcome(0, said.decode(), "").counts()
        counts = outcome.counts()
        self.assertEqual(counts.pop("reads"), truth["read"], outcome)
        self.assertEqual(sum(counts.values()), truth["openat"], outcome)
        self.assertEqual(domain.state(), "running")

    def check_pause(self, domain):
        check_a_pause(self, attach(self.target(domain.name), begin(COUNT)), domain.port,
                      pause=lambda: self.libvirt.virsh("suspend", domain.name),
                      go_on=lambda: self.libvirt.virsh("resume", domain.name))


@unittest.skipIf(REASON, REASON)
class Domains(Case):
    """Those of a user's session."""

    daemon = libvirt.Libvirt

    def test_counts_are_exact_by_name_and_by_uuid(self):
        one = self.libvirt.domain("one", "debian-6.1", cpus=2)
        two = self.libvirt.domain("two", "debian-6.12", backing=libvirt.SHARED)
        uuid = self.libvirt.virsh("domuuid", "two").strip()
        self.check_counts(one, self.target("one"))
        self.check_counts(two, f"{self.libvirt.uri}&uuid={uuid}")
        chosen = {"LIBVIRT_DEFAULT_URI": self.libvirt.uri}
        self.check_counts(one, "one", environment=chosen)
        self.check_counts(two, uuid, environment=chosen)

    def test_what_virsh_does_to_a_domain_is_told(self):
        domain = self.libvirt.domain("three", "debian-6.1")
        self.check_pause(domain)
        with attach(self.target("three"), begin(COUNT)) as running:
            started(running)
            self.libvirt.virsh("reset", "three")
            outcome = running.finish()
        self.assertEqual(outcome.stderr.splitlines()[-1],
                         "ringside: tracing ended: the guest rebooted", outcome)
        domain.port.expect("ready")
        with attach(self.target("three"), begin(COUNT)) as running:
            started(running)
            self.libvirt.virsh("destroy", "three")
            outcome = running.finish()
        self.assertRegex(outcome.stderr.splitlines()[-1],
                         r"^ringside: tracing ended: its ", outcome)

    def test_a_domain_that_is_paused_stays_so(self):
        domain = self.libvirt.domain("four", "debian-6.1")
        self.libvirt.virsh("suspend", "four")
        outcome = ringside.run("BEGIN { exit(0); } fbt::vfs_read:entry { @ = count(); }",
                               machine=False, options=["--attach", self.target("four")])
        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual(domain.state(), "paused")
        self.libvirt.virsh("resume", "four")
        self.check_counts(domain, self.target("four"))

    def test_a_domain_that_is_saved_is_healthy_when_it_comes_back(self):
        domain = self.libvirt.domain("five", "debian-6.12", cpus=2)
        saved = domain.folder / "saved"
        with attach(self.target("five"), begin("fbt::vfs_*:entry { @ = count(); }")) as running:
            started(running)
            self.assertEqual(domain.port.run("workload --reads 100")[0], 0)
            self.libvirt.virsh("save", "five", saved)
            outcome = running.finish()
        self.assertIn("ringside: tracing ended: its owner saves it, or moves it to another host",
                      outcome.stderr.splitlines(), outcome)
        # libvirt takes no command while it saves, so what is in the guest may have come along.
        self.libvirt.virsh("restore", saved)
        domain.connect()
        status, said = domain.port.run(f"workload --reads {READS}")
        self.assertEqual(status, 0)
        self.assertIn(f"read {READS}\n", said.decode())
        cleaned = ringside.run(machine=False, verb=["clean", self.target("five")])
        self.assertEqual(cleaned.status, 0, cleaned)
        self.check_counts(domain, self.target("five"))

    def test_a_domain_that_is_migrated_live_is_healthy_where_it_arrives(self):
        other = self.enterContext(libvirt.Libvirt())
        domain = self.libvirt.domain("moves", "debian-6.12", cpus=2)
        with attach(self.target("moves"), begin("fbt::vfs_*:entry { @ = count(); }")) as running:
            started(running)
            domain.port.start(f"workload --reads {READS * 30}")
            domain.port.send("go")
            self.libvirt.migrate(domain, other)
            outcome = running.finish()
        self.assertIn("ringside: tracing ended: its owner saves it, or moves it to another host",
                      outcome.stderr.splitlines(), outcome)
        domain.connect()
        # Breakpoints that stood in the guest have come along: the stub lets it pass.
        status, said = domain.port.run(f"workload --reads {READS}")
        self.assertEqual(status, 0)
        self.assertIn(f"read {READS}\n", said.decode())
        target = f"{other.uri}&name=moves"
        for expected in (f"{LEFT}|nothing of an earlier ringside", "nothing of an earlier ringside"):
            cleaned = ringside.run(machine=False, verb=["clean", target])
            self.assertEqual(cleaned.status, 0, cleaned)
            self.assertRegex(cleaned.stderr, expected)
        self.check_counts(domain, target)

    def test_a_killed_ringside_leaves_a_domain_that_runs(self):
        domain = self.libvirt.domain("six", "debian-6.1")
        for tenths in range(0, 12, 2):
            # Of so many some may wait.
            with attach(self.target("six"), begin("fbt:::entry { @ = count(); }"), "auto") as running:
                time.sleep(tenths / 10)
                # Wherever it is: it stops the domain several times on its way.
                running.process.kill()
                running.process.wait()
                ringside.wait_for_end(running.mark)
            self.assertEqual(domain.state(), "running")
            self.assertEqual(domain.port.run("workload --reads 10")[0], 0)
        # The last one had its breakpoints in it, or was about to.
        for expected in (f"{LEFT}|nothing of an earlier ringside", "nothing of an earlier ringside"):
            cleaned = ringside.run(machine=False, verb=["clean", self.target("six")])
            self.assertEqual(cleaned.status, 0, cleaned)
            self.assertRegex(cleaned.stderr, expected)
        self.check_counts(domain, self.target("six"))

    def test_a_libvirtd_that_starts_again_is_found(self):
        """Counts go on without it, samples with the next one, and nothing stays in the guest."""
        own = self.enterContext(libvirt.Libvirt())
        domain = own.domain("back", "debian-6.12", cpus=2)
        target = f"{own.uri}&name=back"
        program = begin("\n#pragma D option maxslow=100\n" + COUNT + ' profile-7 { @p = count(); }'
                        ' tick-1s { printa("sampled %@d\\n", @p); clear(@p); }')

        def sampled(running, before, number):
            running.read_until(lambda text: re.search(f"sampled {number}\n", text[len(before):]))
            return running.read_until(lambda text: True)

        with attach(target, program) as running:
            started(running)
            said = sampled(running, "", "[1-9].*")
            own.end_daemon()
            said = sampled(running, said, "0")
            status, truth = domain.port.run(f"workload --reads {READS}")
            own.start_daemon()
            sampled(running, said, "[1-9].*")
            outcome = end(running)
        self.assertEqual((status, outcome.status), (0, 0), outcome)
        self.assertEqual(outcome.counts()["reads"],
                         ringside.Outcome(0, truth.decode(), "").counts()["read"], outcome)
        self.assertRegex(outcome.stderr, "connection to its libvirt is lost, and looked for: .*samples\n"
                                         "(?s:.*)connection to its libvirt is back")
        with attach(target, begin("fbt::vfs_*:entry { @ = count(); }")) as running:
            started(running)
            own.end_daemon()
            running.process.send_signal(signal.SIGINT)
            own.start_daemon()  # while that waits for it
            outcome = running.finish()
        self.assertEqual(outcome.status, 0, outcome)
        self.assertNotIn("stay", outcome.stderr)
        cleaned = ringside.run(machine=False, verb=["clean", target])
        self.assertIn("nothing of an earlier ringside", cleaned.stderr)
        self.assertEqual(domain.state(), "running")

    def test_a_ringside_that_is_killed_in_a_pause_lets_the_domain_go(self):
        """At its first stops, before anything of it stands in the guest and while it places probes."""
        domain = self.libvirt.domain("nine", "debian-6.1")
        for stop in (1, 1, 2):
            with self.libvirt.stops("nine") as wait_for_stop, \
                    attach(self.target("nine"), begin("fbt::vfs_*:entry { @ = count(); }")) as running:
                for _ in range(stop):
                    self.assertTrue(wait_for_stop())
                running.process.kill()
                running.process.wait()
                self.assertEqual(ringside.wait_for_end(running.mark, ringside.TIMEOUT), [])
            self.assertEqual(domain.state(), "running", stop)
            self.assertEqual(domain.port.run("workload --reads 10")[0], 0)
            cleaned = ringside.run(machine=False, verb=["clean", self.target("nine")])
            self.assertEqual(cleaned.status, 0, cleaned)
        self.check_counts(domain, self.target("nine"))

    def test_a_pause_that_was_left_is_known_and_ended(self):
        """Its guardian is killed as well, as a service's control group is."""
        domain = self.libvirt.domain("ten", "debian-6.1")
        name = self.target("ten")
        with self.libvirt.stops("ten") as wait_for_stop, \
                attach(name, begin("fbt::vfs_*:entry { @ = count(); }")) as running:
            self.assertTrue(wait_for_stop())
            for pid in ringside.marked_processes(running.mark):
                os.kill(pid, signal.SIGSTOP)
            for pid in ringside.marked_processes(running.mark):
                os.kill(pid, signal.SIGKILL)
            running.process.wait()
            self.assertEqual(ringside.wait_for_end(running.mark, ringside.TIMEOUT), [])
        if domain.state() == "running":
            self.skipTest("it was killed between two pauses")
        killed = rf"a ringside that was killed \(process {running.process.pid}\)"
        self.assertRegex(why(name)[0], f"{killed} has paused it; `ringside clean` lets it go on")
        self.assertEqual(domain.state(), "paused")
        cleaned = ringside.run(machine=False, verb=["clean", name])
        self.assertEqual(cleaned.status, 0, cleaned)
        self.assertRegex(cleaned.stderr, f"{killed} had left it paused: it goes on")
        self.assertEqual(domain.state(), "running")
        self.check_counts(domain, name)
        # One of the owner's is none of ours.
        self.libvirt.virsh("suspend", "ten")
        self.assertEqual(ringside.run(machine=False, verb=["clean", name]).status, 0)
        self.assertEqual(domain.state(), "paused")

    def test_why_a_domain_hangs_is_told_beside_virsh(self):
        domain = self.libvirt.domain("why", "debian-6.12", cpus=2)
        domain.port.start("while :; do :; done")
        domain.port.send("go")
        text, tree = why(self.target("why"))
        self.assertEqual(tree["not_known"], [], text)
        self.assertEqual(sorted(vcpu["cpu"] for vcpu in tree["vcpus"]), [0, 1], text)
        self.assertIn("sh", [cpu["running"]["name"] for cpu in tree["cpus"]], text)
        self.assertEqual(domain.state(), "running")
        self.libvirt.virsh("suspend", "why")
        text, tree = why(self.target("why"))
        self.assertEqual(tree["causes"][0]["kind"], "stopped", text)
        self.assertEqual(domain.state(), "paused", "it is left so")
        self.libvirt.virsh("resume", "why")
        with attach(self.target("why"), begin("tick-10hz { @ = count(); }")) as running:
            started(running)
            text, tree = why(self.target("why"))
            self.assertIn(f"process {running.process.pid} is attached", " ".join(tree["not_known"]), text)
            self.assertEqual(len(tree["vcpus"]), 2, text)
            outcome = end(running)
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        pid_file, = self.libvirt.folder.rglob("why.pid")
        pid = int(pid_file.read_text())
        text, tree = why_stopped(self.target("why"), pid)
        self.assertEqual(tree["causes"][0]["kind"], "stopped", text)
        self.assertIn(f"its monitor: domain why: process {pid} is stopped by a signal: 'kill -CONT {pid}'"
                      " lets it go on", tree["not_known"])

    def test_a_card_for_more_room_is_plugged_in_through_libvirt(self):
        domain = self.libvirt.domain("card", "debian-6.12", cpus=2)
        everything = ("\n#pragma D option maxslow=100\n"
                      "fbt::: { @fired[probename] = count(); } END { trunc(@fired); }")
        refused = ringside.run(everything, machine=False, options=["--attach", self.target("card")])
        self.assertIn("for more room plug in a card: --attach TARGET,ivshmem", refused.stderr)
        for _ in range(2):
            with attach(f"{self.target('card')},ivshmem", begin(f"{COUNT} {everything}"), "auto") as running:
                started(running)
                status, said = domain.port.run(f"workload --reads {READS}")
                outcome = end(running)
            self.assertEqual((status, outcome.status, outcome.stderr), (0, 0, ""), outcome)
            truth = ringside.Outcome(0, said.decode(), "").counts()
            self.assertEqual(outcome.counts()["reads"], truth["read"], outcome)
            for tree in ("info pci", "info mtree -f"):
                self.assertNotIn("ringside", self.libvirt.virsh(
                    "qemu-monitor-command", "--hmp", "card", tree))
        self.check_counts(domain, self.target("card"))

    def test_vms_tells_their_states(self):
        self.libvirt.domain("runs", "debian-6.1")
        self.libvirt.domain("waits", "debian-6.12")
        self.libvirt.virsh("suspend", "waits")
        said = subprocess.run([ringside.binary(), "vms", "-O", "json"], text=True, check=True,
                              capture_output=True, timeout=ringside.TIMEOUT,
                              env=dict(os.environ, LIBVIRT_DEFAULT_URI=self.libvirt.uri)).stdout
        vms = {vm["name"]: vm for vm in json.loads(said)}
        for name, state, kernel in (("runs", "running", "6.1."), ("waits", "paused", "6.12.")):
            self.assertEqual((vms[name]["state"], vms[name]["attach"], vms[name]["accelerator"]),
                             (state, name, "tcg"), said)
            self.assertTrue(vms[name]["kernel"].startswith(kernel), said)
            self.assertEqual(self.libvirt.virsh("domstate", name).strip(), state)
            log, = self.libvirt.folder.rglob(f"{name}.log")
            self.assertNotIn("tainted", log.read_text(), "to look is no monitor command")

    def test_refusals_are_one_line(self):
        off = libvirt.Domain(self.libvirt, "off", "debian-6.1")
        self.libvirt.virsh("define", off.folder / "xml")
        nowhere = "qemu:///session?socket=/nowhere"
        for target, words in {
                self.target("nobody"): "has no domain 'nobody'; it has ",
                self.target("off"): "domain off is shut off",
                f"{nowhere}&name=one": f"one: libvirt at {nowhere} cannot be connected to: Failed",
                f"{nowhere}&name=two": "; start libvirtd, or name qmp:PATH or pid:N",
        }.items():
            with self.subTest(target):
                outcome = ringside.run("BEGIN { exit(0); }", machine=False,
                                       options=["--attach", target])
                self.assertEqual((outcome.status, outcome.stdout), (1, ""), outcome)
                self.assertEqual(len(outcome.stderr.splitlines()), 1, outcome)
                self.assertTrue(re.search(re.escape(words), outcome.stderr), outcome)


@unittest.skipIf(SYSTEM_REASON, SYSTEM_REASON)
class SystemDomains(Case):
    """Those of the whole system, whose QEMUs are another user's."""

    daemon = libvirt.SystemLibvirt

    def test_counts_are_exact(self):
        one = self.libvirt.domain("one", "debian-6.1", cpus=2)
        two = self.libvirt.domain("two", "debian-6.12", backing=libvirt.SHARED)
        for domain in (one, two):
            self.assertEqual(self.libvirt.owner(domain.name), libvirt.USER_ID)
            self.check_counts(domain, self.target(domain.name))
            self.check_counts(domain, domain.name, environment={"LIBVIRT_DEFAULT_URI": self.libvirt.uri})

    def test_what_virsh_does_to_it_is_told_and_why_it_hangs(self):
        domain = self.libvirt.domain("three", "debian-6.12")
        self.check_pause(domain)
        text, tree = why(self.target("three"))
        self.assertEqual((tree["not_known"], len(tree["vcpus"])), ([], 1), text)
        self.assertEqual(domain.state(), "running")

    def test_a_killed_ringside_is_cleaned_up_after(self):
        domain = self.libvirt.domain("four", "debian-6.1")
        with attach(self.target("four"), begin("fbt::vfs_*:entry { @ = count(); }")) as running:
            started(running)
            running.process.kill()
            running.process.wait()
            ringside.wait_for_end(running.mark)
        self.assertEqual(domain.port.run("workload --reads 10")[0], 0)
        cleaned = ringside.run(machine=False, verb=["clean", self.target("four")])
        self.assertEqual(cleaned.status, 0, cleaned)
        self.assertRegex(cleaned.stderr, LEFT)
        self.check_counts(domain, self.target("four"))


if __name__ == "__main__":
    unittest.main()
