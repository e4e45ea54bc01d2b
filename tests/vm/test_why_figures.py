"""The figures of `ringside why`, against the guest's own: load, run queues, thresholds, RCU, how long
interrupts are off; who runs on a saved CPU 1; and that to look changes no byte of the guest.
"""

import hashlib
import pathlib
import subprocess
import time
import unittest

import guest
import ringside
from patient import Patient, is_first, why

# struct pcpu_hot has it first in 6.2 to 6.14, before that it is a variable of its own.
CURRENT = {"debian-6.1": "current_task", "debian-6.12": "pcpu_hot"}
SPINS = 3
SPIN = "; ".join(["hang spin 1 </dev/null >/dev/null 2>&1 &"] * SPINS).replace("&;", "&")


def digest(path):
    """A hash of a guest's RAM."""
    with open(path, "rb") as ram:
        return hashlib.file_digest(ram, "sha256").hexdigest()


def as_in_proc(load):
    """A load average as /proc/loadavg has it, which is not always the nearest (fs/proc/loadavg.c)."""
    fixed = round(load * 2048) + 2048 // 200
    return f"{fixed // 2048}.{fixed % 2048 * 100 // 2048:02}"


class Figures(unittest.TestCase):
    def test_load_queues_and_thresholds_are_the_guests(self):
        for image in ringside.IMAGES:
            with self.subTest(image), Patient(image) as patient:
                patient.do(SPIN)
                # So long that the load is not 0.00, which is renewed every 5 s.
                deadline = time.monotonic() + guest.TIMEOUT
                while patient.do("cat /proc/loadavg").startswith("0.0"):
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.5)
                self.check_load(patient)
                text, tree = patient.why_once(lambda tree: tree["cpus"][1].get("run_queue") == SPINS)
                self.assertEqual(tree["cpus"][1]["run_queue"], SPINS, text)
                self.assertEqual(tree["cpus"][1]["running"]["name"], "hang", text)
                # Twice the time after which the hard watchdog acts (kernel/watchdog.c).
                seconds = int(patient.do("cat /proc/sys/kernel/watchdog_thresh"))
                self.assertEqual(tree["soft_lockup_threshold_ns"], 2 * seconds * 10**9, text)
                self.check_current(patient, image, tree)

    def check_load(self, patient):
        """Equal to the last digit, where it has not been renewed meanwhile."""
        for _ in range(10):
            before = patient.do("cat /proc/loadavg").split()[:3]
            text, tree = patient.why_alive()
            if patient.do("cat /proc/loadavg").split()[:3] == before:
                self.assertEqual([as_in_proc(each) for each in tree["load"]], before, text)
                return
        self.fail("the load was renewed 10 times")

    def check_current(self, patient, image, tree):
        """D reads the saved CPU 1's own variables."""
        program = ("BEGIN { t = *(struct task_struct **)((uintptr_t)&`" + CURRENT[image] +
                   " + ((uint64_t *)&`__per_cpu_offset)[1]);"
                   ' printf("%s %d", stringof(t->comm), t->pid); exit(0); }')
        said = subprocess.run([ringside.binary(), "--core", patient.core, "-qn", program], text=True,
                              capture_output=True, timeout=ringside.TIMEOUT, check=False)
        running = tree["cpus"][1]["running"]
        self.assertEqual((said.returncode, said.stdout.strip(), said.stderr),
                         (0, f"hang {running['pid']}", ""))

    def test_a_cpu_that_is_lost_is_what_rcu_waits_for(self):
        for image in ringside.IMAGES:
            with self.subTest(image), Patient(image) as patient:
                patient.lose_a_cpu()
                # Each process that ends wants a grace period; an idle guest may never want one.
                patient.hang("taskset 1 sh -c 'while :; do sleep 0.2; done' & taskset 2 hostname lost")
                began = time.monotonic()
                ready = is_first("interrupts-off")
                patient.why_once(lambda tree: ready(tree) and 1 in tree["rcu"]["waits_for_cpus"])
                # Between its two looks the other CPU may have written into the lost one's run queue.
                deadline = time.monotonic() + guest.TIMEOUT
                while True:
                    text, tree = patient.why_alive()
                    vcpus = {vcpu["cpu"]: vcpu for vcpu in tree["vcpus"]}
                    if "interrupts_off_ns" in vcpus[1] or time.monotonic() > deadline:
                        break
                most = (time.monotonic() - began) * 1e9 + 1e9
                self.assertTrue(tree["rcu"]["in_grace_period"], text)
                self.assertEqual(tree["rcu"]["waits_for_cpus"], [1], text)
                self.assertEqual([cpu.get("rcu_waits", False) for cpu in tree["cpus"]], [False, True], text)
                self.assertIn(int(tree["rcu"]["age_ns"]), range(1, int(most)), text)
                self.assertIn(tree["cpus"][1]["timer_overdue_ns"], range(1, int(most)), text)
                self.assertFalse(vcpus[1]["interrupts_on"], text)
                self.assertIn(vcpus[1].get("interrupts_off_ns"), range(1, int(most)), text)
                self.assertNotIn("interrupts_off_ns", vcpus[0], text)


class Untouched(unittest.TestCase):
    def test_to_look_changes_no_byte_of_ram(self):
        for image in ringside.IMAGES:
            with self.subTest(image), Patient(image) as patient:
                patient.monitor.ask("stop")
                ram = pathlib.Path(patient.ram)
                before = digest(ram)
                for look in (patient.why_alive, patient.why_by_memory, lambda: why(f"pid:{patient.pid()}")):
                    text, tree = look()
                    self.assertIn("release", tree, text)
                    self.assertEqual(digest(ram), before)
                    self.assertEqual(patient.status(), "paused")
                patient.monitor.ask("cont")
                patient.do("true")
                self.assertNotEqual(digest(ram), before, "the file is what the guest writes to")


if __name__ == "__main__":
    unittest.main()
