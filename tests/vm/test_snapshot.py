"""snapshot(): a guest in a file, as of a firing, while it stands still; and that it goes on.

The file is read by ringside itself (--core, why --core), by readelf, by this test, and by Debian's crash
with the debug information that tests/vm/debug_kernel fetches.
"""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import guest
import libvirt
import ringside
import test_attach_qmp
from patient import functions, why

READS = 500
WHICH = 100


def core(path, program, options=("-q",)):
    """Runs a program that reads a core."""
    return subprocess.run([ringside.binary(), "--core", path, *options, "-n", program], text=True,
                          capture_output=True, timeout=ringside.TIMEOUT, check=False)


def notes(path):
    """How many notes of each name and type a core has."""
    said = subprocess.run(["readelf", "--wide", "--notes", path], text=True, check=True,
                          capture_output=True).stdout
    found = {}
    for line in said.splitlines():
        words = line.split()
        if len(words) > 1 and words[1].startswith("0x"):
            found[words[0]] = found.get(words[0], 0) + 1
    return found


class Case(unittest.TestCase):
    """A folder for files, and what every one of them must say."""

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="ringside-snapshot-")
        self.addCleanup(self._folder.cleanup)
        self.path = pathlib.Path(self._folder.name) / "guest.core"

    def program(self):
        """Saves the guest at one of the workload's calls; says what the guest is like just then."""
        return ('BEGIN { printf("tracing\\n"); }'
                ' syscall::read:entry /execname == "workload"/ { @["reads"] = count(); ++reads; }'
                f' syscall::read:entry /execname == "workload" && reads == {WHICH}/ {{'
                ' printf("at %x %d %x %d\\n", (uint64_t)curthread, pid, regs[R_RSP], cpu);'
                ' printf("jiffies %d\\n", `jiffies);'
                f' snapshot("{self.path}"); }}')

    def check(self, outcome, cpus, release):
        """The file is the guest of that very moment."""
        task, pid, stack, cpu = re.search(r"^at (\w+) (\d+) (\w+) (\d+)$", outcome.stdout, re.M).groups()
        jiffies = int(re.search(r"^jiffies (\d+)$", outcome.stdout, re.M)[1])
        self.assertEqual(notes(self.path), {"CORE": cpus, "QEMU": cpus, "VMCOREINFO": 1})
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o600)

        said = core(self.path, f"BEGIN {{ t = (struct task_struct *)0x{task};"
                    ' printf("%d %s %d", t->tgid, stringof(t->comm), `jiffies); exit(0); }')
        self.assertEqual((said.returncode, said.stderr), (0, ""), said)
        words = said.stdout.split()
        self.assertEqual(words[:2], [pid, "workload"], said)
        # The guest went on for as long as it takes to pause a machine.
        self.assertIn(int(words[2]) - jiffies, range(0, 2500), said)

        text, tree = why("--core", self.path)
        self.assertEqual(tree["release"], release, text)
        self.assertEqual(sorted(vcpu["cpu"] for vcpu in tree["vcpus"]), [*range(cpus)], text)
        running = tree["cpus"][int(cpu)]["running"]
        self.assertEqual((running["name"], running["pid"]), ("workload", int(pid)), text)
        self.assertIn("x64_sys_read", functions(running)[0], text)
        self.assertEqual(self.registers(int(cpu))["rsp"], int(stack, 16))

    def registers(self, cpu):
        """rip and rsp of NT_PRSTATUS, by gdb's layout of it: a judge that is not ours."""
        data = self.path.read_bytes()[:1 << 16]
        found = [match.start() for match in re.finditer(rb"CORE\0\0\0\0", data)]
        at = found[cpu] + 8 + 112
        word = lambda n: int.from_bytes(data[at + 8 * n:at + 8 * n + 8], "little")  # noqa: E731
        return {"rip": word(16), "rsp": word(19)}


class Started(Case):
    """Guests that ringside starts."""

    def test_the_file_is_the_guest_of_the_firing_and_the_guest_goes_on(self):
        for image, cpus in (("debian-6.1", 1), ("debian-6.12", 2)):
            with self.subTest(image):
                outcome = ringside.run(self.program(), image=image, cpus=cpus, options=["-qw"],
                                       command=f"workload --reads {READS}")
                self.assertEqual(outcome.status, 0, outcome)
                counts = outcome.counts()
                self.assertEqual(counts["reads"], counts["read"], outcome)
                self.assertEqual(outcome.stderr, "")
                release = (guest.images_folder() / image / "release").read_text().strip()
                self.check(outcome, cpus, release)
                self.path.unlink()

    def test_one_file_a_firing_and_none_is_overwritten(self):
        name = self.path.with_name("%d.core")
        program = ('syscall::read:entry /execname == "workload" && n < 4/'
                   f' {{ snapshot("{name}", n++ / 2); }}')
        outcome = ringside.run(program, options=["-w"], command=f"workload --reads {READS}")

        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual(sorted(each.name for each in self.path.parent.iterdir()), ["0.core", "1.core"])
        lines = outcome.stderr.splitlines()
        self.assertEqual(len([line for line in lines if "the guest stood still" in line]), 2, outcome)
        self.assertEqual(len([line for line in lines if "exists already, and is not overwritten" in line]),
                         2, outcome)

    def test_what_cannot_be_written_is_a_line_and_the_guest_goes_on(self):
        path = self.path.parent / "absent/x"
        outcome = ringside.run(
            'syscall::read:entry /execname == "workload"/ { @["reads"] = count(); }'
            f' syscall::read:entry /execname == "workload" && !n++/ {{ snapshot("{path}"); }}',
            options=["-qw"], command=f"workload --reads {READS}")

        counts = outcome.counts()
        self.assertEqual((outcome.status, counts["reads"]), (0, counts["read"]), outcome)
        self.assertEqual(outcome.stderr, f"ringside: snapshot(): cannot write {path}: No such file or"
                                         " directory\n")

    def test_the_hosts_own_firings_pause_the_machine_as_well(self):
        outcome = ringside.run(f'BEGIN {{ snapshot("{self.path}"); exit(0); }}', cpus=2, options=["-qw"])

        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        _, tree = why("--core", self.path)
        self.assertEqual(len(tree["vcpus"]), 2)
        again = ringside.run(f'tick-100ms {{ snapshot("{self.path}2"); exit(0); }}'
                             f' profile-97 {{ @ = count(); }}', cpus=2, options=["-qw"])
        self.assertEqual((again.status, again.stderr), (0, ""), again)
        sample = ringside.run(f'profile-97 /cpu == 1/ {{ snapshot("{self.path}3"); exit(0); }}', cpus=2,
                              options=["-qw"])
        self.assertEqual((sample.status, sample.stderr), (0, ""), sample)
        _, tree = why("--core", f"{self.path}3")
        self.assertEqual(len(tree["vcpus"]), 2)

    def test_refusals(self):
        program = 'BEGIN { snapshot("x"); exit(0); }'
        for options, words in ((["-w"], "there is no guest"), ([], "Destructive actions not allowed"),
                               (["-w", "-x", "bufpolicy=ring"], "there is no guest")):
            outcome = ringside.run(program, machine=False, options=options)
            self.assertEqual(outcome.status, 1, outcome)
            self.assertIn(words, outcome.stderr)


class Attached(Case):
    """Guests of others."""

    def test_of_a_machine_that_runs(self):
        with test_attach_qmp.Machine("debian-6.1", 2) as machine:
            self.check_attached(machine)
        with test_attach_qmp.Machine("debian-6.12", 1) as machine:
            self.check_attached(machine, "debian-6.12", 1)

    @unittest.skipIf(libvirt.missing(), libvirt.missing())
    def test_of_a_domain_of_libvirts(self):
        with libvirt.Libvirt() as daemon:
            domain = daemon.domain("one", "debian-6.12", cpus=2)
            options = ["-qw", "--attach", f"{daemon.uri}&name=one"]
            with ringside.Run(self.program(), machine=False, options=options) as running:
                test_attach_qmp.started(running)
                status, said = domain.port.run(f"workload --reads {READS}")
                outcome = test_attach_qmp.end(running)
            self.assertEqual((status, outcome.status, outcome.stderr), (0, 0, ""), outcome)
            truth = ringside.Outcome(0, said.decode(), "").counts()
            self.assertEqual(outcome.counts()["reads"], truth["read"], outcome)
            self.assertEqual(domain.state(), "running")
            release = (guest.images_folder() / "debian-6.12/release").read_text().strip()
            self.check(outcome, 2, release)

    def check_attached(self, machine, image="debian-6.1", cpus=2):
        """By its monitor."""
        with machine.trace(self.program(), ["-qw"]) as running:
            test_attach_qmp.started(running)
            status, said = machine.port.run(f"workload --reads {READS}")
            outcome = test_attach_qmp.end(running)
        self.assertEqual((status, outcome.status, outcome.stderr), (0, 0, ""), outcome)
        truth = ringside.Outcome(0, said.decode(), "").counts()
        self.assertEqual(outcome.counts()["reads"], truth["read"], outcome)
        self.assertEqual(machine.owner.status(), "running")
        self.assertEqual(machine.owner.chardevs(), machine.chardevs)
        release = (guest.images_folder() / image / "release").read_text().strip()
        self.check(outcome, cpus, release)
        self.path.unlink()


def debug_kernel(image):
    """The kernel with its debug information, 280 MB to fetch the first time; skips without network."""
    return guest.fetched("debug_kernel", image, "debug information of the kernel")


@ringside.takes_long
class Crash(Case):
    """crash of Debian, with the kernel's own debug information, as the judge."""

    def test_crash_reads_it(self):
        if not shutil.which("crash"):
            self.skipTest("no crash: apt-get install crash")
        release = (guest.images_folder() / "debian-6.1/release").read_text().strip()
        kernel = debug_kernel("debian-6.1")
        outcome = ringside.run(self.program(), cpus=2, options=["-qw"], command=f"workload --reads {READS}")
        self.assertEqual(outcome.status, 0, outcome)
        task, pid, stack, cpu = re.search(r"^at (\w+) (\d+) (\w+) (\d+)$", outcome.stdout, re.M).groups()

        said = subprocess.run(
            ["crash", "-s", kernel, self.path], text=True, capture_output=True, check=False,
            timeout=ringside.TIMEOUT,
            input=f"sys\nps\nhelp -r\nstruct task_struct.pid,comm {task}\nquit\n").stdout

        self.assertRegex(said, r"CPUS: 2\n")
        self.assertRegex(said, rf"RELEASE: {re.escape(release)}\n")
        self.assertRegex(said, rf"> +{pid} .* {cpu} +{task} .* workload\n")
        self.assertRegex(said, rf"pid = {pid},\n +comm = \"workload")
        registers = said.partition(f"CPU {cpu}:\n")[2]
        self.assertEqual(re.search(r"RSP: (\w+)", registers)[1], stack.zfill(16), said)


if __name__ == "__main__":
    unittest.main()
