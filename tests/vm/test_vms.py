"""`ringside vms`: the machines of this host as they are, and what --attach takes."""

import contextlib
import json
import subprocess
import tempfile
import unittest

import guest
import ringside
from test_attach_ends import clean, patient
from test_attach_qmp import begin, end, started


def listed(pid):
    """The entry of the machine of that process."""
    done = subprocess.run([ringside.binary(), "vms", "-O", "json"], text=True, check=True,
                          capture_output=True, timeout=ringside.TIMEOUT)
    vm, = [vm for vm in json.loads(done.stdout) if vm["pid"] == pid]
    return vm


class Vms(unittest.TestCase):
    """QEMUs that were started by hand."""

    def check(self, machine, image, **wanted):
        """The facts that stay, and these."""
        vm = listed(machine.pid)
        release = (guest.images_folder() / image / "release").read_text().strip()
        facts = {"vmm": "qemu", "accelerator": "tcg", "vcpus": 2, "kernel": release, **wanted}
        self.assertEqual({name: vm[name] for name in facts}, facts, vm)
        # Without the hole below 1 MiB.
        self.assertEqual(-(-vm["memory"] >> 20), 512, vm)

    def test_what_a_machine_is_and_whether_somebody_traces_it(self):
        for image in ringside.IMAGES:
            with self.subTest(image), patient(image) as machine:
                target = f"qmp:{machine.path}"
                idle = {"state": "running", "ours": None, "attach": target, "obstacle": None}
                self.check(machine, image, **idle)
                with machine.trace(begin("fbt::vfs_*:entry { @ = count(); }")) as running:
                    started(running)
                    holder = running.process.pid
                    self.check(machine, image, ours=f"traced by process {holder}", attach=None,
                               obstacle=f"process {holder} traces it")
                    self.assertEqual(end(running).status, 0)
                self.check(machine, image, **idle)
                with machine.trace(begin("fbt::vfs_*:entry { @ = count(); }")) as running:
                    started(running)
                    running.process.kill()
                    running.process.wait()
                    ringside.wait_for_end(running.mark)
                self.check(machine, image, ours="a shim", attach=target, obstacle=None)
                self.assertEqual(clean(machine).status, 0)
                self.check(machine, image, **idle)
                machine.owner.ask("stop")
                self.check(machine, image, **{**idle, "state": "paused"})

    def test_a_machine_whose_gdbserver_is_its_owners_is_there_with_the_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            with guest.bare_qemu(f"{folder}/qmp", "-gdb",
                                 f"unix:{folder}/gdb,server=on,wait=off") as process:
                vm = listed(process.pid)
            self.assertEqual((vm["state"], vm["attach"]), ("running", None), vm)
            self.assertIn("its gdbserver is its owner's", vm["obstacle"], vm)

    def test_a_machine_without_a_monitor_is_there_with_the_reason(self):
        with contextlib.ExitStack() as stack:
            machine = guest.Guest("debian-6.1")
            stack.enter_context(machine)
            vm = listed(machine.pid())
        self.assertIsNone(vm["attach"], vm)
        self.assertIn("no QMP socket with a path is on its command line", vm["obstacle"], vm)


if __name__ == "__main__":
    unittest.main()
