"""Who may attach to whose machine: its own user without more rights, and nobody else but root."""

import os
import pathlib
import socket
import subprocess
import tempfile
import unittest

import guest
import ringside
from test_attach_bad_input import Refusals
from test_attach_qmp import Case, Machine

AS_NOBODY = {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/"}
SYSTEM_PYTHON = "/usr/bin/python3"  # another one may be in a folder of root's
OWN_MACHINES = ("test_attach_qmp.Again", "test_attach_qmp.Debug")


def run_as_nobody(*words, **settings):
    return subprocess.run(words, text=True, capture_output=True, check=False,
                          timeout=guest.TIMEOUT, **{**AS_NOBODY, **settings})


@unittest.skipIf(os.geteuid() != 0, "only root can become somebody else")
class Users(Refusals, Case):
    def need(self, *paths):
        """Skips unless there is a nobody here who can read these."""
        try:
            can = all(run_as_nobody("test", "-r", each).returncode == 0
                      for each in (ringside.binary(), tempfile.gettempdir(), *paths))
        except OSError:
            can = False
        if not can:
            self.skipTest("others cannot read this copy of the sources, or there is no other user")

    def test_a_machine_of_roots_is_refused_to_others(self):
        self.need()
        machine = self.enterContext(Machine())
        machine.folder.chmod(0o755)

        machine.path.chmod(0o755)
        self.check_refused(f"qmp:{machine.path}", f"{machine.path} may not be connected to: be root, or"
                                                  " user 0", **AS_NOBODY)
        machine.path.chmod(0o777)
        whose = (f"process {machine.pid} is not for us: it is user root (0)'s; be that user or root"
                 " (CAP_SYS_PTRACE)")
        self.check_refused(f"qmp:{machine.path}", f"{machine.path}: {whose}", **AS_NOBODY)
        self.check_refused(f"pid:{machine.pid}", whose, **AS_NOBODY)
        listed = run_as_nobody(ringside.binary(), "vms")
        self.assertIn(f"no: {whose}\n", listed.stdout, listed)
        self.check_left_alone(machine)

    def test_a_socket_of_libvirts_that_others_may_not_use_is_told(self):
        self.need()
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="ringside-lv-")))
        folder.chmod(0o755)
        listener = self.enterContext(socket.socket(socket.AF_UNIX))
        listener.bind(str(folder / "socket"))
        listener.listen(1)
        (folder / "socket").chmod(0o700)
        uri = f"qemu:///session?socket={folder}/socket"
        self.check_refused(f"{uri}&name=web1", f"web1: libvirt at {uri} cannot be connected to: Failed to "
                           f"connect socket to '{folder}/socket': Permission denied; be root, or in the "
                           "group that may use that socket, or name qmp:PATH or pid:N", **AS_NOBODY)

    def test_a_user_without_rights_attaches_to_his_own(self):
        here = pathlib.Path(__file__).parent
        self.need(here, guest.images_folder())
        outcome = run_as_nobody(SYSTEM_PYTHON, "-B", "-m", "unittest", *OWN_MACHINES, cwd=here,
                                env={**os.environ, "HOME": "/"})
        self.assertEqual(outcome.returncode, 0, outcome)


if __name__ == "__main__":
    unittest.main()
