"""Guests that hang, each in its own way, and what `ringside why` says of them.

Each guest is saved by its QEMU (dump-guest-memory) once it hangs, and the core is looked at; some
are looked at while they run as well: the report is of a guest that answers nothing. The truth about
it is known from how it was made to hang.
"""

import os
import subprocess
import unittest

import guest
import ringside
from patient import CPUS, MOUNT, Patient, functions, is_first, why_stopped


class Why(unittest.TestCase):
    def on_each(self, check, append=""):
        """Checks a guest of each image."""
        for image in ringside.IMAGES:
            with self.subTest(image), Patient(image, append) as patient:
                patient.image = image
                check(patient)

    def check_common(self, patient, text, tree, kind):
        """Checks what is true of all of them; returns the first cause's text."""
        release = (guest.images_folder() / patient.image / "release").read_text().strip()
        cause = tree["causes"][0]
        self.assertEqual(cause["kind"], kind, text)
        # Of a machine that runs the two forms are of two moments, and times differ.
        self.assertIn(": " + cause["text"].split(" for ")[0], text.splitlines()[0])
        self.assertEqual(tree["release"], release)
        self.assertEqual([cpu["cpu"] for cpu in tree["cpus"]], [*range(CPUS)], text)
        self.assertEqual(sorted(vcpu["cpu"] for vcpu in tree["vcpus"]), [*range(CPUS)], text)
        self.assertEqual(tree["not_known"], [], text)
        self.assertTrue(tree["log"], text)
        return cause["text"]

    def check_program(self, patient, tree):
        """D over the core: types, symbols and curthread are the saved guest's; nothing else fires."""
        def run(program):
            return subprocess.run([ringside.binary(), "--core", patient.core, "-qn", program], text=True,
                                  capture_output=True, timeout=ringside.TIMEOUT, check=False)
        said = run('BEGIN { printf("%s %d %s", stringof(curthread->comm), curthread->pid,'
                   " stringof(`init_task.comm)); exit(0); }")
        first = tree["cpus"][0]["running"]
        self.assertEqual((said.returncode, said.stderr), (0, ""))
        self.assertEqual(said.stdout.strip(), f"{first['name']} {first['pid']} swapper/0")
        for probe in ("fbt::vfs_read:entry", "tick-1s", "syscall:::entry"):
            refused = run(probe)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("a saved guest does not run", refused.stderr)

    def test_an_idle_guest_is_said_to_be_well(self):
        def check(patient):
            tasks = int(patient.do("ls -d /proc/[0-9]*/task/* | wc -l"))
            last = patient.do("dmesg | tail -n 1")
            text, tree = patient.why_once(is_first("all-idle"))

            self.check_common(patient, text, tree, "all-idle")
            self.assertEqual(tree["waiting"], [], text)
            self.assertEqual(tree["disks"], [], text)
            # The shell and its pipeline have gone; kernel threads come and go.
            self.assertAlmostEqual(tree["tasks"], tasks, delta=8)
            # The kernel may have more to say of its clock meanwhile.
            self.assertTrue(any(line["text"] in last for line in tree["log"][-4:]), text)
            for vcpu in tree["vcpus"]:
                self.assertTrue(vcpu["halted"] and vcpu["interrupts_on"], text)
            _, raw = patient.why_by_memory()
            self.assertEqual(raw["causes"], tree["causes"], "its RAM alone says the same")
            self.assertEqual(raw["vcpus"], [])
            text, alive = patient.why_alive()
            self.check_common(patient, text, alive, "all-idle")
            patient.do("true")
            text, stopped = why_stopped(patient.target("second"), patient.pid())
            self.assertEqual(stopped["causes"][0]["kind"], "stopped", text)
            self.assertIn(f"its monitor: process {patient.pid()} is stopped by a signal: 'kill -CONT "
                          f"{patient.pid()}' lets it go on", stopped["not_known"])
            os.truncate(patient.core, 4 << 20)
            cut = subprocess.run([ringside.binary(), "why", "--core", patient.core], text=True,
                                 capture_output=True, timeout=ringside.TIMEOUT, check=False)
            self.assertEqual(cut.returncode, 0, cut)
            self.assertRegex(cut.stdout.splitlines()[0],
                             rf"the kernel may lie in the 25\d MiB that {patient.core} lacks$")

        self.on_each(check)

    def test_writers_to_a_frozen_file_system_wait_for_its_thaw(self):
        def check(patient):
            patient.do(f"{MOUNT} && fsfreeze --freeze /tmp/m")
            patient.hang("echo a > /tmp/m/a & mkdir /tmp/m/b & wait")
            text, tree = patient.why_hung(2)

            cause = self.check_common(patient, text, tree, "frozen-filesystem")
            self.assertIn("ext4 file system on vda is frozen", cause)
            self.assertIn("2 tasks wait", cause)
            self.assertEqual(tree["frozen_filesystems"], [{"device": "vda", "type": "ext4"}])
            for task in tree["waiting"]:
                self.assertEqual(task["waits"], {"for": "frozen-filesystem", "device": "vda",
                                                 "function": task["waits"]["function"]}, text)
                self.assertIn("mnt_want_write", functions(task), text)
                self.assertGreater(task["since_ns"], 1e9, text)

        self.on_each(check)

    def test_a_disk_that_does_not_answer_is_found_behind_the_locks(self):
        def check(patient):
            patient.do(f"{MOUNT} && dd if=/dev/zero of=/tmp/m/f bs=1M count=8 2>/dev/null"
                       " && sync && echo 3 > /proc/sys/vm/drop_caches")
            patient.stall_disk()
            # Two readers with one file position, which a mutex guards: the second waits for the first.
            patient.hang("exec 3</tmp/m/f; dd <&3 bs=1M of=/dev/null & sleep 1; dd <&3 bs=1M of=/dev/null"
                         " & wait")
            text, tree = patient.why_hung(2)

            cause = self.check_common(patient, text, tree, "storage")
            self.assertIn("vda has", cause)
            # Either may have come first; the disk may have answered a request before it stalled.
            readers = [task for task in tree["waiting"] if task["name"] == "dd"]
            holder, waiter = sorted(readers, key=lambda task: task["waits"]["for"])
            self.assertEqual(holder["waits"]["for"], "io", text)
            self.assertIn("filemap_read", functions(holder), text)
            self.assertEqual(waiter["waits"]["lock"]["kind"], "mutex", text)
            self.assertEqual(waiter["waits"]["lock"]["owner"], holder["pid"], text)
            self.assertEqual([each["kind"] for each in tree["causes"]], ["storage", "lock-holder"], text)
            disk, = tree["disks"]
            self.assertEqual(disk["name"], "vda")
            self.assertGreaterEqual(disk["in_flight"], 1)
            self.assertTrue(all(request["operation"] == "read" for request in disk["requests"]), text)
            self.assertGreater(disk["oldest_ns"], 1e9, text)

        self.on_each(check)

    def test_a_cpu_that_spins_with_interrupts_off_is_named_with_its_function(self):
        def check(patient):
            patient.lose_a_cpu()
            patient.hang("hostname lost")
            text, tree = patient.why_once(is_first("interrupts-off"))

            cause = self.check_common(patient, text, tree, "interrupts-off")
            self.assertIn("__x64_sys_sethostname", cause)
            lost, = [cpu for cpu in tree["cpus"] if not cpu["idle"]]
            vcpu, = [vcpu for vcpu in tree["vcpus"] if vcpu["cpu"] == lost["cpu"]]
            self.assertFalse(vcpu["interrupts_on"], text)
            self.check_program(patient, tree)
            self.assertEqual(lost["running"]["name"], "hostname")
            self.assertGreater(lost["timer_overdue_ns"], 1e9, text)
            self.assertIn("do_syscall_64", functions(lost["running"]), text)
            text, alive = patient.why_alive()
            self.assertEqual(self.check_common(patient, text, alive, "interrupts-off").split(" for ")[0],
                             cause.split(" for ")[0])

        self.on_each(check)

    def test_a_real_time_task_that_never_sleeps_starves_others(self):
        def check(patient):
            patient.do("echo -1 > /proc/sys/kernel/sched_rt_runtime_us")
            patient.hang("hang realtime 1 & hang spin 1 & wait")
            text, tree = patient.why_once(is_first("realtime-spin"))

            self.check_common(patient, text, tree, "realtime-spin")
            running = tree["cpus"][1]["running"]
            self.assertEqual((running["name"], running["realtime_priority"]), ("hang", 50), text)
            self.assertGreaterEqual(tree["cpus"][1]["run_queue"], 2, text)

        self.on_each(check)

    def test_busy_cpus_are_named_with_who_is_on_them(self):
        def check(patient):
            patient.hang("hang spin 0 & hang spin 1 & wait")
            both = [("hang", "user")] * CPUS

            def seen(tree):
                return [(cpu["running"]["name"], vcpu["mode"])
                        for cpu, vcpu in zip(tree["cpus"], tree["vcpus"])]

            # The clock may interrupt either of them at the moment of looking.
            text, tree = patient.why_once(lambda tree: seen(tree) == both)

            self.check_common(patient, text, tree, "busy")
            self.assertEqual(seen(tree), both, text)

        self.on_each(check)

    def test_a_panic_is_told_with_its_reason(self):
        def check(patient):
            patient.hang("echo c > /proc/sysrq-trigger")
            text, tree = patient.why_once(is_first("panicked"))

            cause = self.check_common(patient, text, tree, "panicked")
            self.assertIn("sysrq triggered crash", cause)
            running = tree["cpus"][tree["panic"]["cpu"]]["running"]
            self.assertEqual(running["name"], "sh")
            self.assertIn("sysrq_handle_crash", functions(running), text)

        self.on_each(check, "panic=0")

    def test_no_memory_is_a_reason_to_panic(self):
        def check(patient):
            patient.do("echo 1 > /proc/sys/vm/panic_on_oom; mount -o remount,size=100% /tmp")
            patient.hang("dd if=/dev/zero of=/tmp/all bs=1M")
            text, tree = patient.why_once(is_first("panicked"))

            cause = self.check_common(patient, text, tree, "panicked")
            self.assertIn("Out of memory", cause)
            memory = tree["memory_bytes"]
            self.assertLess(memory["free"], memory["total"] / 8, text)
            self.assertGreater(memory["shared"], memory["total"] / 2, text)
            panicked = functions(tree["cpus"][tree["panic"]["cpu"]]["running"])
            self.assertIn("out_of_memory", [name.removesuffix(".cold") for name in panicked], text)

        self.on_each(check, "panic=0")
