"""Domains in a storm of firings, to which their owner does something by libvirt: snapshots, block jobs,
hot-plug, saving and restoring. Counts are exact, the domain goes on, and nothing of ours is in it at the
end.
"""

import os
import unittest
from unittest import mock

import guest
import libvirt
import ringside
from made_images import image_with_another_kernel
from test_attach_ends import ANOTHER, LOAD, MOVED, STARTED_ANOTHER
from test_attach_libvirt import REASON, Case, attach
from test_attach_qmp import COUNT, begin, end, started
from test_deaths import STORM as KILLED_IN
from test_deaths import check_storm
from test_owner_snapshots import make_disk
from test_storm import TROUBLE
from test_take_over import LEFT

STORM = "\n#pragma D option maxslow=100\nfbt::vfs_*:entry, syscall:::entry { @storm = count(); } " + COUNT
WORK = "workload --reads 500 --opens 50"
NOTHING = "nothing of an earlier ringside"
MIB = 1 << 20


@unittest.skipIf(REASON, REASON)
@ringside.takes_long
class Owners(Case):
    """Those of a user's session."""

    daemon = libvirt.Libvirt

    def domain(self, name, image="debian-6.12", **settings):
        """One under load, whose kernel does not complain of a host that lets it wait."""
        domain = self.libvirt.domain(name, image, append=guest.PATIENT, **settings)
        self.addCleanup(domain.close)
        self.assertEqual(domain.port.run(LOAD)[0], 0)
        return domain

    def storm(self, domain):
        """A trace of it that has begun."""
        running = self.enterContext(attach(self.target(domain.name), begin(STORM)))
        started(running)
        return running

    def reads(self, domain):
        """The workload's own word of what it did."""
        status, said = domain.port.run(WORK)
        self.assertEqual(status, 0, said)
        return ringside.Outcome(0, said.decode(), "").counts()["read"]

    def check_through(self, domain, acts):
        """The trace goes on beside what the owner does, one after another, and sees all."""
        running = self.storm(domain)
        truth = 0
        for act in acts:
            domain.port.start(WORK)
            domain.port.send("go")
            act()
            status, said = domain.port.finish()
            self.assertEqual(status, 0, said)
            truth += ringside.Outcome(0, said.decode(), "").counts()["read"]
        outcome = end(running)
        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual(outcome.counts()["reads"], truth, outcome)
        self.check_clean(domain, NOTHING)

    def check_clean(self, domain, expected=f"{LEFT}|{NOTHING}"):
        """Works by itself, and what is left of us is taken out."""
        self.reads(domain)
        self.assertEqual(domain.state(), "running")
        for words in (expected, NOTHING):
            cleaned = ringside.run(machine=False, verb=["clean", self.target(domain.name)])
            self.assertEqual(cleaned.status, 0, cleaned)
            self.assertRegex(cleaned.stderr, words)

    def check_well(self, domain):
        """Its kernel has complained of nothing, and a trace sees all of it."""
        status, said = domain.port.run("rm -f /tmp/go; dmesg | tail -c 6000")
        self.assertEqual(status, 0)
        self.assertIsNone(TROUBLE.search(said.decode(errors="replace")), said)
        self.check_counts(domain, self.target(domain.name))

    def test_snapshots_and_jobs_of_disks_and_what_is_plugged_in(self):
        disk = self.libvirt.folder / "base.qcow2"
        make_disk(disk, 64 * MIB)
        domain = self.domain("jobs", cpus=1, most_cpus=2,
                             disks=[libvirt.DISK.format(format="qcow2", path=disk, name="vda")])
        virsh, folder = self.libvirt.virsh, domain.folder
        more = folder / "more"
        with open(more, "wb") as file:
            file.truncate(MIB)
        (folder / "more.xml").write_text(libvirt.DISK.format(format="raw", path=more, name="vdb"))

        def external_snapshot():
            virsh("snapshot-create-as", "jobs", "--disk-only", "--no-metadata", "--diskspec",
                  f"vda,file={folder}/overlay")

        def commit():
            virsh("blockcommit", "jobs", "vda", "--active", "--pivot", "--wait")

        def copy():
            virsh("blockcopy", "jobs", "vda", "--dest", folder / "copy", "--format", "qcow2",
                  "--transient-job", "--pivot", "--wait")

        def dump():
            virsh("dump", "jobs", folder / "core", "--live", "--memory-only")

        def plug_a_disk():
            virsh("attach-device", "jobs", folder / "more.xml", "--live")

        def unplug_it():
            virsh("detach-device", "jobs", folder / "more.xml", "--live")

        def plug_a_cpu():
            virsh("setvcpus", "jobs", 2, "--live")

        self.check_through(domain, (external_snapshot, commit, copy, dump, plug_a_disk, unplug_it, plug_a_cpu))
        self.check_well(domain)

    def test_two_at_once(self):
        domains = [self.domain(name, image) for name, image in zip(("left", "right"), ringside.IMAGES)]
        program = begin("\n#pragma D option maxslow=100\nfbt::vfs_*:entry { @storm = count(); }"
                        ' syscall::read:entry /execname == "workload"/ { @[vmname] = count(); }')
        targets = [f"--attach={self.target(domain.name)}" for domain in domains]
        with ringside.Run(program, machine=False, options=[*targets, "-q"]) as running:
            running.read_until(lambda text: text.count("tracing\n") >= 1)
            for domain in domains:
                domain.port.start(WORK)
            for domain in domains:
                domain.port.send("go")
            truth = {domain.name: ringside.Outcome(0, domain.port.finish()[1].decode(), "").counts()["read"]
                     for domain in domains}
            outcome = end(running)
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        counts = outcome.counts()
        self.assertEqual({name: counts.get(name) for name in truth}, truth, outcome)
        for domain in domains:
            self.check_clean(domain, NOTHING)
            self.check_well(domain)

    def test_one_that_starts_another_kernel(self):
        with image_with_another_kernel("debian-6.12") as environment, mock.patch.dict(os.environ, environment):
            domain = self.domain("kexec")
            running = self.storm(domain)
            domain.port.start(ANOTHER)
            domain.port.send("go")
            outcome = running.finish()
            self.assertEqual((outcome.status, outcome.stderr), (1, f"ringside: {STARTED_ANOTHER}\n"), outcome)
            domain.port.expect("ready")
            domain.port.output()
            status, said = domain.port.run("kexec watch 2 1000 a0000")
            self.assertEqual(status, 0, said)
            self.assertIn("changed 0\n", said.decode())
            # The kernel that follows does not use the first megabyte either.
            self.check_clean(domain, f"to which nothing in the guest led|{NOTHING}")
            self.check_well(domain)

    def test_one_whose_ringside_is_killed(self):
        domain = self.domain("killed", cpus=2)
        running = self.enterContext(attach(self.target("killed"), begin(KILLED_IN)))
        check_storm(self, running, domain.port, domain.state)
        self.check_clean(domain, LEFT)
        self.check_well(domain)

    def check_left(self, domain, act, connects=False):
        """The trace ends because of what the owner does, and says why."""
        running = self.storm(domain)
        act()
        outcome = running.finish()
        self.assertEqual(outcome.status, 1, outcome)
        self.assertIn(f"ringside: tracing ended: {MOVED}", outcome.stderr.splitlines(), outcome)
        if connects:
            domain.connect()
        self.check_clean(domain)
        self.check_well(domain)

    def test_one_that_is_saved_and_restored(self):
        for image in ringside.IMAGES:
            with self.subTest(image):
                domain = self.domain(f"saved-{image}", image, cpus=2)
                saved = domain.folder / "saved"

                def save_and_restore(name=domain.name, saved=saved):
                    self.libvirt.virsh("save", name, saved)
                    self.libvirt.virsh("restore", saved)

                self.check_left(domain, save_and_restore, connects=True)

    def test_one_that_is_saved_by_its_host_and_started_again(self):
        domain = libvirt.Domain(self.libvirt, "managed", "debian-6.12", cpus=2, append=guest.PATIENT)
        self.addCleanup(domain.close)
        self.libvirt.virsh("define", domain.folder / "xml")
        self.addCleanup(self.libvirt.virsh, "undefine", "managed", "--managed-save", check=False)
        self.libvirt.virsh("start", "managed")
        domain.connect()
        domain.port.expect("ready")
        self.assertEqual(domain.port.run(LOAD)[0], 0)

        def save_and_start():
            self.libvirt.virsh("managedsave", "managed")
            self.libvirt.virsh("start", "managed")

        self.check_left(domain, save_and_start, connects=True)

    def test_a_snapshot_with_memory(self):
        """The guest goes on where it is, and what was of ours in it stays in the snapshot alone."""
        disk = self.libvirt.folder / "external.qcow2"
        make_disk(disk, 64 * MIB)
        domain = self.domain("memory", disks=[libvirt.DISK.format(format="qcow2", path=disk, name="vda")])

        def snapshot():
            self.libvirt.virsh("snapshot-create-as", "memory", "--no-metadata", "--live", "--memspec",
                               f"file={domain.folder}/memory", "--diskspec",
                               f"vda,file={domain.folder}/overlay")

        self.check_left(domain, snapshot)

    def test_an_internal_snapshot_and_back(self):
        disk = self.libvirt.folder / "internal.qcow2"
        make_disk(disk, 4 << 30)
        domain = self.domain("internal", disks=[libvirt.DISK.format(format="qcow2", path=disk, name="vda")])
        running = self.storm(domain)
        self.libvirt.virsh("snapshot-create-as", "internal", "one")
        self.reads(domain)
        outcome = end(running)
        # Whether it was seen that memory was on its way is chance.
        self.assertTrue(outcome.status == 0 or MOVED in outcome.stderr, outcome)
        self.check_clean(domain)
        self.libvirt.virsh("snapshot-revert", "internal", "one")  # starts another QEMU
        domain.connect()
        self.check_clean(domain, LEFT)
        self.libvirt.virsh("snapshot-delete", "internal", "one")
        self.check_well(domain)


if __name__ == "__main__":
    unittest.main()
