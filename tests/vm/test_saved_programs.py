"""Programs that were saved: where they run, and where they are refused, on real boots with KASLR."""

import pathlib
import tempfile
import unittest

import ringside

READS = 'syscall::read:entry /execname == "workload"/ { @["read"] = count(); }'
TYPES = ('fbt::vfs_read:entry /execname == "workload" && curthread->pid == pid/'
         ' { @["read"] = count(); }')
ADDRESSES = 'BEGIN { printf("cpus %d", *(int *)&`nr_cpu_ids); exit(0); }'


class SavedPrograms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Three programs, each compiled against a boot of 6.1."""
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.saved = {}
        for name, text in (("reads", READS), ("types", TYPES), ("addresses", ADDRESSES)):
            path = pathlib.Path(cls.folder.name, name + ".dof")
            outcome = ringside.run(text, verb=("compile",), options=("-o", path))
            if outcome.status:
                raise AssertionError(outcome)
            cls.saved[name] = path

    def run_saved(self, name, image="debian-6.1", **more):
        return ringside.run(image=image, verb=("run", self.saved[name]), options=("-q",), **more)

    def refusal(self, name, **more):
        outcome = self.run_saved(name, **more)
        self.assertEqual((outcome.status, outcome.stdout), (1, ""), outcome)
        lines = [line for line in outcome.stderr.splitlines() if str(self.saved[name]) in line]
        self.assertEqual(len(lines), 1, outcome)
        return lines[0]

    def test_one_without_anything_of_the_kernels_runs_on_any(self):
        outcome = self.run_saved("reads", image="debian-6.12", command="workload --reads 40")

        self.assertEqual(outcome.status, 0, outcome)
        self.assertGreaterEqual(outcome.counts()["read"], 40, outcome)

    def test_one_with_types_runs_on_the_next_boot(self):
        outcome = self.run_saved("types", command="workload --reads 40")

        self.assertEqual(outcome.status, 0, outcome)
        self.assertGreaterEqual(outcome.counts()["read"], 40, outcome)

    def test_one_with_types_is_refused_on_another_kernel(self):
        self.assertRegex(self.refusal("types", image="debian-6.12"),
                         r"was compiled for Linux 6\.1\.\S+ \(build [0-9a-f]{12}\) and contains "
                         r"structure offsets; Linux 6\.12\.\S+ \(build [0-9a-f]{12}\) runs here: "
                         r"compile the program again here$")

    def test_one_with_addresses_is_refused_on_the_next_boot(self):
        for _ in range(2):  # KASLR has some 500 places, so once it may lie at the same
            outcome = self.run_saved("addresses")
            if outcome.status != 0:
                break
        self.assertRegex(outcome.stderr, r"was compiled for another boot of Linux 6\.1\.\S+ and "
                         r"contains addresses; that kernel lay at 0x\w+, the one here lies at 0x\w+ "
                         r"\(KASLR\): compile the program again here, or boot with nokaslr\n")

    def test_one_with_types_is_refused_without_a_guest(self):
        self.assertIn("but there is no guest", self.refusal("types", machine=False))


if __name__ == "__main__":
    unittest.main()
