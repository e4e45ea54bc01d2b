#!/usr/bin/env python3
"""The Debian packages: they build, lintian finds no error, and on a system that has nothing else they are installed and
trace a guest.

    tests/packages.py [-k PATTERN]

Needs root, debhelper, lintian and debootstrap, and builds from what git tracks. The last line on stdout is
"N passed, N failed".
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "vm"), str(ROOT / "images")]

import private_apt  # noqa: E402
from test_attach_qmp import Machine  # noqa: E402

READS = 100


def run(*command, **options):
    """Runs it, its words on stderr; raises where it fails."""
    subprocess.run([str(word) for word in command], check=True, stdout=sys.stderr, **options)


def copy_sources(to):
    """Copies what git tracks."""
    to.mkdir()
    with subprocess.Popen(["git", "-C", ROOT, "ls-files", "-z"], stdout=subprocess.PIPE) as tracked:
        run("tar", "-C", ROOT, "--null", "-T", "-", "-cf", to / "sources.tar", stdin=tracked.stdout)
    run("tar", "-C", to, "-xf", to / "sources.tar")
    (to / "sources.tar").unlink()


def mirror():
    """Where the system's apt gets Debian's release from."""
    return next(uri for uri, suite, _ in private_apt.system_sources() if suite == private_apt.RELEASE)


@unittest.skipUnless(os.geteuid() == 0, "needs root, to make a root folder")
class Packages(unittest.TestCase):
    """One build, one system, in this order."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="ringside-packages-")))
        copy_sources(cls.folder / "ringside")
        # Symbols for debuggers would take a third of the time.
        run("dpkg-buildpackage", "-b", "-us", "-uc", cwd=cls.folder / "ringside",
            env=dict(os.environ, DEB_BUILD_OPTIONS=f"noautodbgsym parallel={os.cpu_count()}", DEB_CXXFLAGS_STRIP="-g",
                     DEB_CFLAGS_STRIP="-g"))
        cls.packages = sorted(cls.folder.glob("*.deb"))

    def test_lintian_finds_no_error(self):
        run("lintian", "--allow-root", "--fail-on", "error", next(self.folder.glob("*.changes")))

    def test_a_system_that_has_nothing_else_traces_a_guest(self):
        root = self.folder / "root"
        run("debootstrap", "--variant=minbase", private_apt.RELEASE, root, mirror())
        for package in self.packages:
            run("cp", package, root / "tmp")
        self.inside(root, "apt-get -qq -y --no-install-recommends install /tmp/*.deb")
        self.assertRegex(self.inside(root, "ringside --version"), r"^ringside \d+\.\d+")
        self.assertRegex(self.inside(root, "python3 -c 'import ringside; print(ringside.__version__)'"), r"^\d+\.\d+")
        with Machine("debian-6.12") as machine:
            (root / "monitor").mkdir()
            program = ("BEGIN { printf(\"tracing\\n\"); } fbt::vfs_read:entry /execname == \"workload\"/ { @ = count(); }"
                       " proc:::exit /execname == \"workload\"/ { exit(0); }")
            with self.start_inside(root, f"ringside -q --attach qmp:/monitor/qmp -n '{program}'",
                                   machine.folder) as tracing:
                self.assertEqual(tracing.stdout.readline(), "tracing\n")
                status, said = machine.port.run(f"workload --reads {READS}")
                self.assertEqual(status, 0, said)
                count = tracing.stdout.read().split()
            self.assertEqual(tracing.returncode, 0)
        self.assertEqual(len(count), 1, count)
        self.assertGreaterEqual(int(count[0]), READS)
        self.assertLess(int(count[0]), READS + 20, "what the program's start reads, besides")

    def start_inside(self, root, script, monitor=None):
        """Starts a shell's words on that system, which has /proc, and the folder of a monitor, for a time."""
        mounts = "mount -t proc proc \"$0/proc\" && "
        if monitor:
            mounts += f"mount --bind {monitor} \"$0/monitor\" && "
        return subprocess.Popen(["unshare", "--mount", "sh", "-c", mounts + "exec chroot \"$0\" sh -c \"$1\"", root, script],
                                stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                                env=dict(os.environ, DEBIAN_FRONTEND="noninteractive", PATH="/usr/sbin:/usr/bin:/sbin:/bin"))

    def inside(self, root, script):
        """Its output, once it has ended well."""
        with self.start_inside(root, script) as running:
            said = running.stdout.read()
        self.assertEqual(running.returncode, 0, said)
        return said


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    bad = len(outcome.failures) + len(outcome.errors)
    skipped = len(outcome.skipped)
    print(f"{max(0, outcome.testsRun - bad - skipped)} passed, {bad} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(bad != 0)
