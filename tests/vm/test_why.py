"""Guests that hang, each in its own way, and what `ringside why` says of them.

Each guest is saved by its QEMU (dump-guest-memory) once it hangs, and the core is looked at; some
are looked at while they run as well: the report is of a guest that answers nothing. The truth about
it is known from how it was made to hang.
"""

import json
import pathlib
import re
import select
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import guest
import ringside
from made_images import Archive, initrd_with, static_program
from qmp import Qmp

CPUS = 2
DISK = "/machine/peripheral/disk0/virtio-backend"
MOUNT = ("for m in $(cat /modules/virtio); do insmod /modules/$m 2>/dev/null; done;"
         " mkdir /tmp/m && until mount -t ext4 /dev/vda /tmp/m; do sleep 1; done")


class Debugger:
    """QEMU's gdbstub, as far as it is needed to change code that has run."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(guest.PATIENCE)
        self._socket.connect(str(path))

    def __call__(self, packet):
        self.send(packet)
        answer = b""
        while not re.search(rb"\$([^#]*)#..$", answer):
            answer += self._socket.recv(4096)
        self._socket.sendall(b"+")
        return answer

    def ask_why_stopped(self):
        """Takes the answer, and the news of the stop that coming here made, which is T02."""
        self.send(b"?")
        answer = b""
        while not re.search(rb"\$T05[^#]*#..$", answer):
            answer += self._socket.recv(4096)
        self._socket.sendall(b"+")

    def take_ack(self):
        """Takes the plus sign for what was sent last."""
        if (got := self._socket.recv(1)) != b"+":
            raise AssertionError(f"the gdbstub says {got}")

    def is_told(self):
        """Whether something has come that was not asked for."""
        return bool(select.select([self._socket], [], [], 1)[0])

    def send(self, packet):
        self._socket.sendall(b"$%s#%02x" % (packet, sum(packet) & 255))

    def close(self):
        self._socket.close()


class Patient:
    """A guest that will hang; a context manager."""

    def __init__(self, image, append="", cpus=CPUS):
        self._folder = tempfile.TemporaryDirectory(prefix="ringside-why-")
        folder = pathlib.Path(self._folder.name)
        self.core, self._ram = folder / "core", folder / "ram"
        disk = folder / "disk"
        disk.touch()
        subprocess.run(["truncate", "-s", "64M", disk], check=True)
        subprocess.run(["/usr/sbin/mkfs.ext4", "-q", "-F", disk], check=True)
        archive = Archive()
        archive.file("bin/hang", static_program("hang.c", "-O1"), 0o755)
        initrd = folder / "initrd"
        initrd.write_bytes(initrd_with(image, archive))
        self._paths = {name: folder / name for name in ("qmp", "second", "third", "gdb")}
        options = ["-qmp", f"unix:{folder}/qmp,server=on,wait=off",
                   "-qmp", f"unix:{folder}/second,server=on,wait=off",
                   "-qmp", f"unix:{folder}/third,server=on,wait=off",
                   "-object", f"memory-backend-file,id=ram,size=256M,mem-path={self._ram},share=on",
                   "-machine", "pc,memory-backend=ram",
                   "-drive", f"file={disk},if=none,id=d0,format=raw,throttling.bps-total=1000000000000",
                   "-device", "virtio-blk-pci,drive=d0,id=disk0"]
        self._guest = guest.Guest(image, cpus=cpus, memory=256, options=options, initrd=initrd,
                                  append=append)

    def __enter__(self):
        self.port = self._guest.__enter__()
        self.monitor = Qmp(self._paths["qmp"])
        return self

    def __exit__(self, *unused):
        self.monitor.close()
        self._guest.__exit__(*unused)
        self._folder.cleanup()

    def do(self, command):
        """Runs a command that must succeed."""
        status, output = self.port.run(command)
        if status != 0:
            raise AssertionError(f"{command}: status {status}: {output}")
        return output.decode()

    def hang(self, command):
        """Starts a command that will not end."""
        self.port.start(command)
        self.port.send("go")

    def why_hung(self, count):
        """The report once so many tasks hang. A QEMU that saves its guest first lets it have what its
        disks hold back, so this is waited for in the RAM of the guest that runs."""
        deadline = time.monotonic() + guest.PATIENCE
        while not hung(count)(self.why_by_memory()[1]) and time.monotonic() < deadline:
            time.sleep(0.5)
        return self.why()

    def stall_disk(self):
        """From now on the disk takes requests and does not answer them."""
        self.monitor.ask("block_set_io_throttle", id=DISK, bps=1, bps_rd=0, bps_wr=0, iops=0, iops_rd=0,
                     iops_wr=0)

    def lose_a_cpu(self, code=b"faebfe"):
        """Makes sethostname() turn interrupts off (cli) and jump to itself, or what the code says."""
        line = self.do("grep -E ' __x64_sys_sethostname$' /proc/kallsyms")
        address = int(line.split()[0], 16)
        debugger = self.open_debugger()
        debugger(b"M%x,%x:%s" % (address, len(code) // 2, code))
        debugger.send(b"c")
        debugger.close()
        self.monitor.human("gdbserver none")

    def open_debugger(self):
        """A debugger of the owner's, which has stopped the guest."""
        self.monitor.human(f"gdbserver unix:{self._paths['gdb']},server=on,wait=off")
        debugger = Debugger(self._paths["gdb"])
        debugger.ask_why_stopped()
        return debugger

    def target(self, name):
        """The target at one of the monitors' sockets."""
        return f"qmp:{self._paths[name]}"

    def pid(self):
        """The QEMU's process."""
        return self._guest.pid()

    def status(self):
        """running, paused, ..."""
        return self.monitor.ask("query-status")["status"]

    def why(self):
        """The report of the guest as it is now: (text, tree)."""
        self.core.unlink(missing_ok=True)
        self.monitor.ask("dump-guest-memory", paging=False, protocol=f"file:{self.core}")
        return why("--core", self.core)

    def why_by_memory(self):
        """The same by the guest's RAM alone, while it runs."""
        return why("--core", self._ram)

    def why_alive(self):
        """The same of the machine that runs, by its monitor."""
        return why(self.target("second"))

    def why_once(self, ready):
        """The report once ready(tree) is true of it, or the last one: a loaded machine is slow."""
        deadline = time.monotonic() + guest.PATIENCE
        while not ready((report := self.why())[1]) and time.monotonic() < deadline:
            time.sleep(0.5)
        return report


def why(*target):
    """Runs `why` on a machine or a file; returns what it says: (text, tree)."""
    outputs = []
    for form in ([], ["-O", "json"]):
        done = subprocess.run([ringside.binary(), "why", *target, *form], text=True,
                              capture_output=True, timeout=ringside.PATIENCE, check=False)
        if done.returncode != 0 or done.stderr:
            raise AssertionError(f"status {done.returncode}: {done.stderr}")
        outputs.append(done.stdout)
    return outputs[0], json.loads(outputs[1])["why"]


def is_first(kind):
    """Whether a report's likeliest cause is of that kind."""
    return lambda tree: tree["causes"][0]["kind"] == kind


def hung(count):
    """Whether so many tasks have waited for more than a second."""
    return lambda tree: sum(task.get("since_ns", 0) > 1e9 for task in tree["waiting"]) >= count


def functions(task):
    """The functions on a task's stack, innermost first."""
    return [frame["symbol"].split("+")[0] for frame in task.get("stack", [])]


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
                                  capture_output=True, timeout=ringside.PATIENCE, check=False)
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
            self.assertIn(tree["log"][-1]["text"], last, text)
            for vcpu in tree["vcpus"]:
                self.assertTrue(vcpu["halted"] and vcpu["interrupts_on"], text)
            _, raw = patient.why_by_memory()
            self.assertEqual(raw["causes"], tree["causes"], "its RAM alone says the same")
            self.assertEqual(raw["vcpus"], [])
            text, alive = patient.why_alive()
            self.check_common(patient, text, alive, "all-idle")
            patient.do("true")

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


class Alive(unittest.TestCase):
    """Hangs of guests that are looked at while they run, with one to four vCPUs."""

    def on_each(self, check, append=""):
        """Checks a guest of each image, which have one and four vCPUs."""
        for image, cpus in zip(ringside.IMAGES, (1, 4)):
            with self.subTest(image), Patient(image, append, cpus) as patient:
                check(patient)

    def why_once(self, patient, ready):
        """The report once ready(tree), or the last one."""
        deadline = time.monotonic() + guest.PATIENCE
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

    @unittest.skip("each look is a pause, and QEMU drains its disks in a pause, throttled or not: this wants a "
                   "disk that stalls for good")
    def test_a_rw_semaphore_that_a_sleeping_reader_holds(self):
        def check(patient):
            patient.do(f"{MOUNT} && dd if=/dev/zero of=/tmp/m/f bs=1M count=8 2>/dev/null")
            patient.stall_disk()
            patient.hang("sync & sleep 2; mount -o remount,ro /tmp/m & wait")
            blocked = lambda tree: [task for task in tree["waiting"] if task["name"] == "mount"  # noqa: E731
                                    and task.get("since_ns", 0) > 1e9]
            text, tree = self.why_once(patient, blocked)
            waiter, = blocked(tree)
            lock = waiter["waits"]["lock"]
            self.assertEqual((lock["kind"], lock["held_by_readers"]), ("rw_semaphore", True), text)
            holder, = [task for task in tree["waiting"] if task["pid"] == lock["owner"]]
            self.assertEqual(holder["name"], "sync", text)
            self.assertIn("iterate_supers", functions(holder), text)
            said, = [cause["text"] for cause in tree["causes"] if cause["kind"] == "lock-holder"]
            self.assertIn(f"sync (pid {holder['pid']}) holds", said, text)

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

    def test_kernel_code_that_lets_nobody_else_run(self):
        def check(patient):
            patient.lose_a_cpu(b"ebfe")  # jmp .
            patient.hang("hostname lost")
            text, tree = self.why_once(
                patient, lambda tree: tree["causes"][0]["kind"] in ("kernel-spin", "soft-lockup"))
            self.assertIn("__x64_sys_sethostname", tree["causes"][0]["text"], text)
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
        """What is true of it however it is looked at."""
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
                deadline = time.monotonic() + guest.PATIENCE
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


class WithoutLinux(unittest.TestCase):
    def test_a_guest_in_its_firmware_is_looked_at_and_profiled(self):
        with tempfile.TemporaryDirectory(prefix="ringside-why-") as folder:
            path = pathlib.Path(folder, "qmp")
            process = subprocess.Popen(
                ["qemu-system-x86_64", "-accel", "tcg", "-nodefaults", "-display", "none", "-m", "64", "-smp", "2",
                 "-qmp", f"unix:{path},server=on,wait=off"], preexec_fn=guest.end_with_parent)
            try:
                deadline = time.monotonic() + guest.PATIENCE
                while not path.exists() and time.monotonic() < deadline:
                    time.sleep(0.05)
                time.sleep(1)
                text, tree = why(f"qmp:{path}")
                self.assertEqual([cause["kind"] for cause in tree["causes"]], ["firmware"], text)
                self.assertEqual([vcpu["mode"] for vcpu in tree["vcpus"]], ["firmware"] * 2, text)
                alone = subprocess.run([ringside.binary(), "why", f"pid:{process.pid}"], text=True,
                                       capture_output=True, timeout=ringside.PATIENCE, check=False)
                self.assertEqual((alone.returncode, alone.stdout), (1, ""))
                self.assertIn("no Linux is to be seen in its guest", alone.stderr)
                profiled = self.attach(path, "profile-97 /cpu == 0/ { @ = count(); } tick-2s { exit(0); }")
                self.assertEqual(profiled.returncode, 0, profiled.stderr)
                self.assertGreater(int(profiled.stdout), 0)
                self.assertIn("only probes that need no Linux (dtrace, profile)", profiled.stderr)
                refused = self.attach(path, "fbt::vfs_read:entry { }")
                self.assertEqual(refused.returncode, 1)
                self.assertIn("no Linux that runs was found in the guest", refused.stderr)
            finally:
                process.kill()
                process.wait()

    def attach(self, path, program):
        """The outcome of a program on what runs there."""
        return subprocess.run([ringside.binary(), "--attach", f"qmp:{path}", "-qn", program], text=True,
                              capture_output=True, timeout=ringside.PATIENCE, check=False)

    def test_a_machine_that_was_never_started_is_said_to_be(self):
        with tempfile.TemporaryDirectory(prefix="ringside-why-") as folder:
            process = subprocess.Popen(
                ["qemu-system-x86_64", "-accel", "tcg", "-nodefaults", "-display", "none", "-m", "64", "-S",
                 "-qmp", f"unix:{folder}/qmp,server=on,wait=on"],
                preexec_fn=guest.end_with_parent)
            try:
                deadline = time.monotonic() + guest.PATIENCE
                while not pathlib.Path(folder, "qmp").exists() and time.monotonic() < deadline:
                    time.sleep(0.05)
                monitor = Qmp(f"{folder}/qmp")
                monitor.ask("dump-guest-memory", paging=False, protocol=f"file:{folder}/never")
                monitor.ask("cont")
                time.sleep(1)
                monitor.ask("stop")
                monitor.ask("dump-guest-memory", paging=False, protocol=f"file:{folder}/firmware")
                monitor.close()
            finally:
                process.kill()
                process.wait()
            _, never = why("--core", f"{folder}/never")
            text, firmware = why("--core", f"{folder}/firmware")

        self.assertEqual([cause["kind"] for cause in never["causes"]], ["not-started"])
        self.assertEqual([cause["kind"] for cause in firmware["causes"]], ["firmware"], text)


if __name__ == "__main__":
    unittest.main()
