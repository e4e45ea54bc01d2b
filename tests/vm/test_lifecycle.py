"""How runs end: by signal, by death of either side, by the guest's doing; nothing stays behind."""

import contextlib
import io
import os
import pathlib
import random
import shlex
import shutil
import signal
import tempfile
import time
import unittest

import guest
import ringside
from qmp import Qmp

STORM = "workload --reads 100 --seconds 600"
PROGRAM = ('BEGIN { printf("<begun>\\n"); }'
           ' fbt::vfs_read:entry /execname == "workload"/ { @ = count(); }'
           ' tick-10hz { printa("<seen> %@d\\n", @); }'
           ' END { printf("<ended>\\n"); printa("<total> %@d\\n", @); }')


def wait_for_firings(running):
    """Reads a run's output until its probe has fired; returns what was read."""
    return running.read_until(lambda text: any(
        int(line.split()[1]) > 0 for line in text.splitlines()[:-1] if line.startswith("<seen> ")))


def cpu_seconds(pid):
    """The CPU time that a process has taken; 0 once it is gone."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Ends(unittest.TestCase):
    def storm(self, **settings):
        """A run in the middle of many firings; returns it with its output so far."""
        settings = {"options": ["-q"], "command": STORM, "cpus": 2, **settings}
        running = self.enterContext(ringside.Run(PROGRAM, **settings))
        return running, wait_for_firings(running)

    def check_signal_ends_tracing(self, number):
        running, _ = self.storm()
        self.assertTrue(running.qemu())

        running.process.send_signal(number)
        outcome = running.finish(60)

        self.assertEqual(outcome.status, 0, outcome)
        self.assertIn("<ended>", outcome.stdout)
        self.assertGreater(outcome.counts()["<total>"], 0, outcome)

    def test_interrupt_fires_end_and_prints(self):
        self.check_signal_ends_tracing(signal.SIGINT)

    def test_terminate_fires_end_and_prints(self):
        self.check_signal_ends_tracing(signal.SIGTERM)

    def test_kill_takes_qemu_along(self):
        running, _ = self.storm()

        running.process.kill()
        running.process.wait()

        self.assertEqual(ringside.wait_for_end(running.mark), [])

    def test_a_kept_guest_survives_our_death_in_a_storm(self):
        running, _ = self.storm(options=["-q", "--keep"],
                                command="workload --reads 100 --seconds 8 && poweroff -f")

        running.process.kill()
        running.process.wait()

        # The guest can only power itself off when the storm ended well without us.
        self.assertTrue(running.qemu())
        self.assertEqual(ringside.wait_for_end(running.mark, timeout=ringside.TIMEOUT), [])

    def wrapped_qemu(self, script):
        """A program in a folder of its own that runs `script`, to which $QEMU is the real one."""
        wrapper = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "qemu"
        real = os.environ.get("RINGSIDE_QEMU") or shutil.which("qemu-system-x86_64")
        wrapper.write_text(f"#!/bin/sh\nQEMU={shlex.quote(real)}\n{script}\n")
        wrapper.chmod(0o755)
        return wrapper

    def sampled_kept_guest(self):
        """A kept guest that ringside pauses all the time, and a monitor of its QEMU of our own."""
        wrapper = self.wrapped_qemu('exec "$QEMU" "$@" -qmp "unix:$0.qmp,server=on,wait=off"')
        running = self.enterContext(ringside.Run(
            'profile-997 { @ = count(); } tick-10hz { printa("<seen> %@d\\n", @); }',
            options=["-q", "--keep", "--qemu", wrapper], cpus=2, command=STORM))
        wait_for_firings(running)
        return running, self.enterContext(Qmp(f"{wrapper}.qmp"))

    def check_guest_runs_alone(self, running, qmp):
        deadline = time.monotonic() + 30
        while set(ringside.marked_processes(running.mark)) != set(running.qemu()):
            self.assertLess(time.monotonic(), deadline, "more than QEMU outlived ringside")
            time.sleep(0.05)
        self.assertTrue(running.qemu())
        self.assertEqual(qmp.ask("query-status")["status"], "running")

    def test_a_kept_guest_runs_on_when_we_are_killed_in_a_pause(self):
        running, qmp = self.sampled_kept_guest()
        deadline = time.monotonic() + 60
        while True:
            running.process.send_signal(signal.SIGSTOP)
            if not qmp.ask("query-status")["running"]:
                break
            running.process.send_signal(signal.SIGCONT)
            self.assertLess(time.monotonic(), deadline, "no pause was met")
            time.sleep(random.uniform(0, 0.003))

        running.process.kill()
        running.process.wait()

        self.check_guest_runs_alone(running, qmp)

    def test_a_kept_guest_runs_on_when_we_are_killed_at_any_moment(self):
        running, qmp = self.sampled_kept_guest()
        time.sleep(random.uniform(0, 0.05))  # the moment, not a wait for anything

        running.process.kill()
        running.process.wait()

        self.check_guest_runs_alone(running, qmp)

    def test_a_kept_guest_runs_on_when_we_end_well(self):
        running, qmp = self.sampled_kept_guest()

        running.process.send_signal(signal.SIGINT)
        running.process.communicate(timeout=60)

        self.assertEqual(running.process.returncode, 0)
        self.check_guest_runs_alone(running, qmp)

    def test_a_silent_host_costs_firings_but_no_calls(self):
        running, _ = self.storm(command="workload --reads 100 --getppid 10 --seconds 8")

        running.process.send_signal(signal.SIGSTOP)
        time.sleep(6)  # twice what the stub waits on a slow host; the silence itself, not a wait for anything
        running.process.send_signal(signal.SIGCONT)
        outcome = running.finish()

        counts = outcome.counts()
        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual(counts["read"], 100 * counts["rounds"], outcome)
        self.assertEqual(counts["getppid"], 10 * counts["rounds"], outcome)
        self.assertLess(counts["<total>"], counts["read"], outcome)
        self.assertRegex(outcome.stderr, r"\d+ .*(lost|drop)")

    def test_death_of_qemu_is_told(self):
        running, _ = self.storm()

        for pid in running.qemu():
            os.kill(pid, signal.SIGKILL)
        outcome = running.finish(60)

        self.assertEqual(outcome.status, 1, outcome)
        self.assertIn("<ended>", outcome.stdout)
        self.assertGreater(outcome.counts()["<total>"], 0, outcome)
        self.assertRegex(outcome.stderr, r"(?i)qemu")

    def test_qemu_is_in_a_sandbox_and_cannot_shrink_the_guests_memory(self):
        running, _ = self.storm()
        qemu = running.qemu()[0]

        status = pathlib.Path(f"/proc/{qemu}/status").read_text()
        self.assertRegex(status, r"(?m)^Seccomp:\t2$", "a filter")
        memory = [link for link in pathlib.Path(f"/proc/{qemu}/fd").iterdir()
                  if "ringside-guest-ram" in os.readlink(link)]
        self.assertTrue(memory)
        for link in memory:
            with open(link, "r+b", buffering=0) as file, self.assertRaises(PermissionError):
                file.truncate(4096)
        running.process.send_signal(signal.SIGINT)

        self.assertEqual(running.finish(60).status, 0)

    def check_guest_goes_away(self, command, word):
        outcome = ringside.run(PROGRAM, options=["-q"],
                               command=f"workload --reads 500; {command}; sleep 100")

        self.assertEqual(outcome.status, 1, outcome)
        self.assertIn("<ended>", outcome.stdout)
        self.assertEqual(outcome.counts()["<total>"], 500, outcome)
        self.assertRegex(outcome.stderr, word)

    def test_panic_of_the_guest_is_told(self):
        self.check_guest_goes_away("echo c > /proc/sysrq-trigger", r"(?i)panic")

    def test_reboot_of_the_guest_is_told(self):
        self.check_guest_goes_away("reboot -f", r"(?i)reboot|reset")

    def check_loss_in_boot_is_told(self, running, word):
        outcome = running.finish()

        self.assertEqual((outcome.status, outcome.stdout), (1, ""), outcome)
        self.assertRegex(outcome.stderr.splitlines()[-1], f"^{ringside.LOST}{word}", outcome)

    def test_a_panic_in_boot_is_told(self):
        running = self.enterContext(ringside.Run(
            PROGRAM, options=["--append", "rdinit=/bin/false"], command=STORM, attempts=1))

        self.check_loss_in_boot_is_told(
            running, "the guest panicked; .* Kernel panic - not syncing: Attempted to kill init")

    def test_death_of_qemu_in_boot_is_told(self):
        running = self.enterContext(ringside.Run(PROGRAM, command=STORM, attempts=1))
        deadline = time.monotonic() + 60
        while not (booting := [pid for pid in running.qemu() if cpu_seconds(pid) > 0.5]):
            self.assertLess(time.monotonic(), deadline, "no guest boots")
            time.sleep(0.01)

        os.kill(booting[0], signal.SIGSEGV)

        self.check_loss_in_boot_is_told(running, r"qemu \(TCG\) died: signal 11 \(Segmentation")

    def test_a_run_whose_guest_is_lost_in_boot_is_started_again(self):
        panics_once = ('[ -e "$0.ran" ] && exec "$QEMU" "$@"; touch "$0.ran"\n'
                       'exec "$QEMU" "$@" -append "console=ttyS0 panic=-1 rdinit=/bin/false"')
        running = self.enterContext(ringside.Run(
            PROGRAM, options=["-q", "--qemu", self.wrapped_qemu(panics_once)],
            command="workload --reads 20"))

        with contextlib.redirect_stderr(io.StringIO()) as told:
            outcome = running.finish()

        self.assertEqual((outcome.status, outcome.counts()["<total>"]), (0, 20), outcome)
        self.assertRegex(told.getvalue(),
                         f"^started again: {ringside.LOST}the guest panicked; .*\n$")

    def test_no_firing_before_the_command_and_none_after_it(self):
        outcome = ringside.run(
            'BEGIN { printf("<begun> %d\\n", $target); } syscall:::entry /pid == $target/'
            " { @[probefunc] = count(); }", options=["-q"], command="workload --getppid 10")

        counts = outcome.counts()
        self.assertEqual(outcome.status, 0, outcome)
        self.assertGreater(counts["<begun>"], 1, outcome)
        self.assertEqual(outcome.stdout.count("<begun>"), 1)
        # The report tells 10 by itself; the aggregation's line has the same name and count.
        self.assertEqual(counts["getppid"], 10, outcome)
        self.assertEqual(counts["execve"], 1, "the probes stood before the command began")
        self.assertEqual(counts["exit_group"], 1, outcome)


class Errors(unittest.TestCase):
    def test_a_bad_address_is_an_error_firing_and_tracing_goes_on(self):
        outcome = ringside.run(
            'fbt::vfs_read:entry /execname == "workload"/ { @in = count(); trace(*(int *)8); }'
            ' ERROR { @errors = count(); }'
            ' END { printa("<in> %@d\\n<errors> %@d\\n", @in, @errors); }',
            options=["-q"], command="workload --reads 20")

        counts = outcome.counts()
        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual((counts["<in>"], counts["<errors>"]), (20, 20), outcome)
        self.assertRegex(outcome.stderr, r"error on enabled probe ID \d+ \(ID \d+: "
                                         r"fbt:vmlinux:vfs_read:entry\): invalid address \(0x8\)")

    def test_an_unknown_probe_is_one_error(self):
        outcome = ringside.run("fbt::no_such_function:entry { trace(1); }", command="true")

        self.assertEqual(outcome.status, 1, outcome)
        self.assertRegex(outcome.stderr, r"fbt::no_such_function:entry")
        self.assertRegex(outcome.stderr, r"(?i)match")

    def test_a_function_that_cannot_be_probed_tells_why(self):
        outcome = ringside.run("fbt::do_syscall_64:entry { trace(1); }")

        self.assertEqual(outcome.status, 1, outcome)
        self.assertRegex(outcome.stderr,
                         "fbt:vmlinux:do_syscall_64:entry cannot be probed: .*ftrace")

        outcome = ringside.run("syscall::exit*:", options=["-l", "-v"])

        self.assertEqual(outcome.status, 0, outcome)
        self.assertRegex(outcome.stdout, r"(?m)^ *\d+ +syscall +vmlinux +exit_group entry$")
        self.assertRegex(outcome.stdout, r"(?m)^\t\tsyscall:vmlinux:exit_group:return: ")

    def test_functions_of_the_command_have_probes_from_its_first_instruction_on(self):
        outcome = ringside.run(
            "pid$target:a.out:_start:entry,pid$target:a.out:dyn_*er:entry,pid$target:libc.so.6:exit:entry"
            " { @[probefunc] = count(); } pid$target:a.out:dyn_outer:return { @value[probename] = sum(arg1); }"
            " pid$target:libc.so.6:read:entry { @reads[probefunc] = count(); }",
            options=["-q"], command="dynamic 20")

        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        found = dict(line.split() for line in outcome.stdout.splitlines() if len(line.split()) == 2 and "0x" not in line)
        self.assertEqual(found, {"_start": "1", "dyn_inner": "1", "dyn_outer": "1", "exit": "1", "return": "20",
                                 "read": "20"})

    def test_output_of_the_command_is_ours_and_its_words_are_kept(self):
        outcome = ringside.run("BEGIN { x = 1; }", options=["-q"],
                               command="printf '%s|' 'two  blanks' '$HOME'; echo to-stderr >&2")

        self.assertEqual(outcome.status, 0, outcome)
        self.assertIn("two  blanks|$HOME|", outcome.stdout)
        # An image that was made before has both on one line.
        initrd = (guest.images_folder() / "debian-6.1/initrd").read_bytes()
        apart = b"run-apart" in initrd
        self.assertEqual("to-stderr\n" in outcome.stderr, apart, outcome)
        self.assertEqual("to-stderr" in outcome.stdout, not apart, outcome)


if __name__ == "__main__":
    unittest.main()
