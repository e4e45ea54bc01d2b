"""`ringside why` looks at guests that run, hang or sleep meanwhile, and at what is no Linux."""

import pathlib
import re
import signal
import struct
import subprocess
import tempfile
import time
import unittest

import guest
import ringside
from patient import CPUS, Patient, functions, is_first, why
from qmp import Qmp


def mask_the_timer(patient):
    """Code of a function that masks its CPU's timer (the mask bit of the APIC's LVT timer register)."""
    read, write = patient.addresses("native_apic_mem_read", "native_apic_mem_write")
    timer = struct.pack("<BI", 0xbf, 0x320)  # mov edi, APIC_LVTT
    call = [struct.pack("<HQ", 0xb848, to) + b"\xff\xd0" for to in (read, write)]  # rax = to; call rax
    mask = b"\x0d\0\0\1\0\x89\xc6"  # or eax, 0x10000; mov esi, eax
    return (timer + call[0] + mask + timer + call[1] + b"\x31\xc0\xc3").hex().encode()


def call_without_interrupt(patient, cpu, function):
    """Code of a function that calls `function` on an idle CPU and waits for it, for ever: something is
    in that CPU's queue already, so no interrupt is sent. A variable that the kernel needs no more
    (envp_init) is that entry: a struct __call_single_data, locked, synchronous."""
    queue, offsets, entry, called, call = patient.addresses(
        "call_single_queue", "__per_cpu_offset", "envp_init", function, "smp_call_function_single")
    debugger = patient.open_debugger()
    answer = debugger(b"m%x,8" % (offsets + 8 * cpu))
    base, = struct.unpack("<Q", bytes.fromhex(re.search(rb"\$([0-9a-f]{16})#", answer)[1].decode()))
    data = struct.pack("<4Q", 0, 0x11, called, 0)
    debugger(b"M%x,%x:%s" % (entry, len(data), data.hex().encode()))
    debugger.send(b"c")
    debugger.close()
    patient.monitor.human("gdbserver none")
    head = (queue + base) % (1 << 64)
    return (struct.pack("<HQHQ", 0xb848, head, 0xb948, entry) + b"\x48\x89\x08"  # [rax=head] = rcx=entry
            + struct.pack("<BIHQ", 0xbf, cpu, 0xbe48, called)  # edi = the CPU; rsi = the function
            + b"\x31\xd2\xb9\x01\0\0\0"  # edx = 0; ecx = 1: wait
            + struct.pack("<HQ", 0xb848, call) + b"\xff\xd0\x31\xc0\xc3").hex().encode()


class Alive(unittest.TestCase):
    """Hangs of guests that are looked at while they run, with one to four vCPUs."""

    def on_each(self, check, append=""):
        """Checks a guest of each image, which have one and four vCPUs."""
        for image, cpus in zip(ringside.IMAGES, (1, 4)):
            with self.subTest(image), Patient(image, append, cpus) as patient:
                check(patient)

    def why_once(self, patient, ready):
        """The report once ready(tree), or the last one."""
        deadline = time.monotonic() + guest.TIMEOUT
        while not ready((report := patient.why_alive())[1]) and time.monotonic() < deadline:
            time.sleep(0.5)
        self.assertTrue(ready(report[1]), report[0])
        self.assertEqual(report[1]["not_known"], [], report[0])
        return report

    def test_memory_that_runs_out_again_and_again(self):
        def check(patient):
            patient.hang("hang eat 0")
            text, tree = self.why_once(patient, lambda tree: is_first("out-of-memory")(tree)
                                       and tree["memory_bytes"].get("last_killed"))
            self.assertRegex(tree["memory_bytes"]["last_killed"], r"^hang \(pid \d+\)$", text)
            self.assertGreaterEqual(tree["memory_bytes"]["oom_kills"], 1, text)

        self.on_each(check)

    def test_a_task_that_waits_for_another_on_no_lock(self):
        def check(patient):
            patient.hang("hang vfork 0")
            text, tree = self.why_once(patient, is_first("tasks-stuck"))
            waiter, = tree["waiting"]
            self.assertEqual(waiter["waits"], {"for": "completion", "function": waiter["waits"]["function"]})
            self.assertNotIn("wait_for", waiter["waits"]["function"], text)
            self.assertIn("kernel_clone", functions(waiter), text)
            self.assertGreater(waiter["since_ns"], 1e9, text)

        self.on_each(check)

    def test_a_timer_that_is_masked_stops_the_clock_or_leaves_its_cpu_behind(self):
        def check(patient):
            patient.lose_a_cpu(mask_the_timer(patient))
            cpu = len(patient.why_alive()[1]["cpus"]) > 1
            sleep = "while :; do sleep 0.2; done"
            patient.hang(f"{sleep} & taskset {1 << cpu} sh -c 'hostname lost; {sleep}'")
            text, tree = self.why_once(patient, is_first("timer-lost"))
            self.assertTrue(tree["cpus"][cpu]["idle"], text)
            self.assertGreater(tree["cpus"][cpu]["timer_overdue_ns"], 1e9, text)
            self.assertEqual(tree.get("clock_stands", False), not cpu, text)
            self.assertIn(f"CPU {cpu:d} is idle with interrupts on", tree["causes"][0]["text"])

        self.on_each(check)

    def test_a_call_to_an_idle_cpu_that_no_interrupt_tells_of(self):
        for image in ringside.IMAGES:
            # A CPU that nothing wakes meanwhile.
            with self.subTest(image), Patient(image, "isolcpus=3 nohz_full=3", 4) as patient:
                patient.lose_a_cpu(call_without_interrupt(patient, 3, "ktime_get"))
                patient.hang("hostname lost")
                text, tree = self.why_once(patient, is_first("call-lost"))
                self.assertIn("CPU 3 is idle, and what another CPU has asked of it (ktime_get) has waited",
                              tree["causes"][0]["text"])
                self.assertEqual(tree["cpus"][3]["called_function"], "ktime_get", text)
                self.assertGreater(tree["cpus"][3]["call_waits_ns"], 1e9, text)

    def test_kernel_code_that_lets_nobody_else_run(self):
        def check(patient):
            patient.lose_a_cpu(b"ebfe")  # jmp .
            patient.hang("hostname lost")
            # Some looks find the CPU in its timer's interrupt.
            text, tree = self.why_once(
                patient, lambda tree: tree["causes"][0]["kind"] in ("kernel-spin", "soft-lockup")
                and "__x64_sys_sethostname" in tree["causes"][0]["text"])
            self.assertIn("hostname (pid", tree["causes"][0]["text"], text)

        # Of one vCPU nobody would be left to time it.
        for image in ringside.IMAGES:
            with self.subTest(image), Patient(image, cpus=3) as patient:
                check(patient)

    def test_a_crowd_that_wants_to_run(self):
        def check(patient):
            patient.hang("hang bomb 100")
            text, tree = self.why_once(patient, lambda tree: sum(cpu["run_queue"] for cpu in tree["cpus"]) >= 100)
            self.assertEqual(tree["causes"][0]["kind"], "busy", text)
            self.assertIn("tasks want to run", tree["causes"][0]["text"], text)

        self.on_each(check)

    def test_a_thousand_tasks_are_all_seen(self):
        def check(patient):
            patient.hang("hang crowd 1000")
            text, tree = self.why_once(patient, lambda tree: tree["tasks"] >= 1001)
            self.assertEqual(tree["waiting"], [], text)

        self.on_each(check)


class Beside(unittest.TestCase):
    """Guests that others look at or have stopped: nobody notices us, and what is missing is said."""

    def test_owners_debuggers_and_tracers_are_not_disturbed(self):
        for image in ringside.IMAGES:
            with self.subTest(image), Patient(image) as patient:
                patient.hang("hang spin 1")
                self.check_alone(patient)
                self.check_beside_a_debugger(patient)
                self.check_beside_a_tracer(patient)
                self.check_its_process_alone(patient)
                self.check_paused(patient)

    def check_spin(self, text, tree):
        """Checks all that is true of it however it is looked at."""
        self.assertEqual(tree["cpus"][1]["running"]["name"], "hang", text)
        self.assertTrue(tree["log"], text)

    def check_alone(self, patient):
        text, tree = why(patient.target("second"))
        self.check_spin(text, tree)
        self.assertEqual(tree["not_known"], [], text)
        self.assertEqual(sorted(vcpu["cpu"] for vcpu in tree["vcpus"]), [0, 1], text)
        self.assertEqual(patient.status(), "running")

    def check_beside_a_debugger(self, patient):
        debugger = patient.open_debugger()
        text, tree = why(patient.target("second"))
        self.check_spin(text, tree)
        self.assertEqual(tree["causes"][0]["kind"], "stopped", text)
        debugger.send(b"c")
        debugger.take_ack()
        text, tree = why(patient.target("second"))
        self.check_spin(text, tree)
        self.assertIn("debugger is connected", " ".join(tree["not_known"]), text)
        self.assertEqual(len(tree["vcpus"]), CPUS, text)
        self.assertFalse(debugger.is_told(), "it sees no stop")
        debugger.close()
        patient.monitor.human("gdbserver none")

    def check_beside_a_tracer(self, patient):
        program = 'BEGIN { printf("tracing\\n"); } tick-10hz { @ = count(); }'
        with ringside.Run(program, machine=False, options=["--attach", patient.target("third"), "-q"]) as run:
            run.read_until(lambda text: "tracing\n" in text)
            text, tree = why(patient.target("second"))
            self.check_spin(text, tree)
            self.assertIn(f"process {run.process.pid} is attached", " ".join(tree["not_known"]), text)
            self.assertEqual(len(tree["vcpus"]), CPUS, text)
            text, tree = why(patient.target("third"))
            self.check_spin(text, tree)
            self.assertEqual(tree["vcpus"], [], "its monitor is the tracer's")
            self.assertIn("has one client at a time", " ".join(tree["not_known"]), text)
            run.process.send_signal(signal.SIGINT)
            outcome = run.finish()
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)

    def check_its_process_alone(self, patient):
        text, tree = why(f"pid:{patient.pid()}")
        self.check_spin(text, tree)
        self.assertEqual(tree["vcpus"], [], text)
        self.assertIn("only its monitor has its registers", " ".join(tree["not_known"]), text)
        self.assertEqual(patient.status(), "running")

    def check_paused(self, patient):
        patient.monitor.ask("stop")
        text, tree = why(patient.target("second"))
        self.check_spin(text, tree)
        self.assertEqual(tree["causes"][0]["kind"], "stopped", text)
        self.assertIn("its owner has paused it", tree["stands_still"], text)
        self.assertEqual(len(tree["vcpus"]), CPUS, text)
        self.assertEqual(patient.status(), "paused", "it is left so")
        patient.monitor.ask("cont")

    def test_a_guest_that_sleeps_is_said_to(self):
        for image in ringside.IMAGES:
            with self.subTest(image), Patient(image) as patient:
                patient.hang("echo mem > /sys/power/state")
                deadline = time.monotonic() + guest.TIMEOUT
                while patient.status() != "suspended" and time.monotonic() < deadline:
                    time.sleep(0.2)
                text, tree = why(patient.target("second"))
                self.assertEqual(tree["causes"][0]["kind"], "stopped", text)
                self.assertIn("sleeps", tree["stands_still"], text)
                self.assertEqual(patient.status(), "suspended", "it is left so")
                text, tree = why(f"pid:{patient.pid()}")
                self.assertIn("has suspended itself", tree["stands_still"], text)
                patient.monitor.ask("system_wakeup")
                self.assertEqual(patient.port.finish()[0], 0)
                patient.hang("echo freeze > /sys/power/state")  # of which QEMU knows nothing
                deadline = time.monotonic() + guest.TIMEOUT
                while not is_first("stopped")(tree := patient.why_alive()[1]):
                    self.assertLess(time.monotonic(), deadline, tree["causes"])
                self.assertIn("s2idle", tree["stands_still"])
                self.assertEqual(patient.status(), "running")


class WithoutLinux(unittest.TestCase):
    def test_a_guest_in_its_firmware_is_looked_at_and_profiled(self):
        with tempfile.TemporaryDirectory(prefix="ringside-why-") as folder:
            path = pathlib.Path(folder, "qmp")
            with guest.bare_qemu(path, "-smp", "2") as process:
                time.sleep(1)
                text, tree = why(f"qmp:{path}")
                self.assertEqual([cause["kind"] for cause in tree["causes"]], ["firmware"], text)
                self.assertEqual([vcpu["mode"] for vcpu in tree["vcpus"]], ["firmware"] * 2, text)
                alone = subprocess.run([ringside.binary(), "why", f"pid:{process.pid}"], text=True,
                                       capture_output=True, timeout=ringside.TIMEOUT, check=False)
                self.assertEqual((alone.returncode, alone.stdout), (1, ""))
                self.assertIn("no Linux is to be seen in its guest", alone.stderr)
                profiled = self.attach(path, "profile-97 /cpu == 0/ { @ = count(); } tick-2s { exit(0); }")
                self.assertEqual(profiled.returncode, 0, profiled.stderr)
                self.assertGreater(int(profiled.stdout), 0)
                self.assertIn("only probes that need no Linux (dtrace, profile)", profiled.stderr)
                refused = self.attach(path, "fbt::vfs_read:entry { }")
                self.assertEqual(refused.returncode, 1)
                self.assertIn("no Linux that runs was found in the guest", refused.stderr)

    def attach(self, path, program):
        """The outcome of a program on what runs there."""
        return subprocess.run([ringside.binary(), "--attach", f"qmp:{path}", "-qn", program], text=True,
                              capture_output=True, timeout=ringside.TIMEOUT, check=False)

    def test_a_machine_that_was_never_started_is_said_to_be(self):
        with tempfile.TemporaryDirectory(prefix="ringside-why-") as folder:
            with guest.bare_qemu(f"{folder}/qmp", "-S", wait="on"):
                monitor = Qmp(f"{folder}/qmp")
                monitor.ask("dump-guest-memory", paging=False, protocol=f"file:{folder}/never")
                monitor.ask("cont")
                time.sleep(1)
                monitor.ask("stop")
                monitor.ask("dump-guest-memory", paging=False, protocol=f"file:{folder}/firmware")
                monitor.close()
            _, never = why("--core", f"{folder}/never")
            text, firmware = why("--core", f"{folder}/firmware")

        self.assertEqual([cause["kind"] for cause in never["causes"]], ["not-started"])
        self.assertEqual([cause["kind"] for cause in firmware["causes"]], ["firmware"], text)


if __name__ == "__main__":
    unittest.main()
