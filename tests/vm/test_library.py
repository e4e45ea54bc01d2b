"""libringside and its Python package on guests that their owner has started.

Programs of the library run in processes of their own and say "tracing" when their probes stand. Truth
is the workload's own word.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import guest
import ringside
from test_attach_qmp import Machine

READS = 3000
BUILD = pathlib.Path(os.environ.get("RINGSIDE_BUILD", guest.ROOT / "build"))
EXAMPLE = BUILD / "library/trace_example"
PACKAGE = BUILD / "bindings/python"
READ = 'syscall::read:entry /execname == "workload"/'
LAST = 'syscall::exit_group:entry /execname == "workload"/ { exit(3); }'
ROOM = ("bufsize=16m", "switchrate=20hz")


class Program:
    """A process that uses the library."""

    def __init__(self, words, env=None):
        self.process = subprocess.Popen([str(word) for word in words], env=env, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.communicate()

    def await_line(self, start):
        """Waits until it says so."""
        for line in self.process.stdout:
            if line.startswith(start):
                return
        raise AssertionError(f"it has ended instead: {self.process.communicate()[1]}")

    def finish(self):
        """Its status, and all that it has said since."""
        out, err = self.process.communicate(timeout=guest.TIMEOUT)
        return self.process.returncode, out, err


def python(script, *words):
    """The script in a Python that finds the package."""
    return Program([sys.executable, "-P", "-c", script, *words],
                   {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"})


def counts_of(said):
    """The calls that the workload says it has made."""
    return ringside.Outcome(0, said.decode(), "").counts()


class OnGuest(unittest.TestCase):
    """One guest for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.machine = cls.enterClassContext(Machine(cpus=2))
        cls.target = f"qmp:{cls.machine.path}"

    def run_workload(self):
        """Runs it; how often it has called read()."""
        status, said = self.machine.port.run(f"workload --reads {READS}")
        self.assertEqual(status, 0)
        return counts_of(said)["read"]

    def check_left_alone(self):
        """The guest runs, and nothing of ours is plugged into it."""
        self.assertEqual(self.machine.owner.status(), "running")
        self.assertEqual(self.machine.owner.chardevs(), self.machine.chardevs)


class C(OnGuest):
    """The header, by the example that comes with it."""

    def trace(self, program, *options):
        """Traces a workload; its reads and the example's lines."""
        with Program([EXAMPLE, self.target, program, *ROOM, *options]) as running:
            running.await_line("tracing")
            reads = self.run_workload()
            status, out, err = running.finish()
        self.assertEqual((status, err), (0, ""), out)
        self.check_left_alone()
        return reads, out.splitlines()

    def check_counts(self, *options):
        """Each read is a record, and the aggregation has counted them all."""
        reads, lines = self.trace(f'{READ} {{ trace(4711); @[execname] = count(); }} {LAST}', *options)
        self.assertEqual(lines.count("integer: 4711"), reads)
        self.assertIn("status: 3", lines)
        found = [json.loads(line.partition(": ")[2]) for line in lines if line.startswith("aggregations")]
        self.assertEqual(found, [[{"aggregation-data": [{"keys": ["workload"], "count": reads}],
                                   "aggregation-name": "_", "aggregation-function": "count"}]])

    def test_records_by_callback(self):
        self.check_counts()

    def test_records_by_polling(self):
        self.check_counts("poll")

    def test_a_signal_handler_stops_it_and_END_fires(self):
        with Program([EXAMPLE, self.target, 'END { trace("last"); }']) as running:
            running.await_line("tracing")
            running.process.send_signal(signal.SIGINT)
            status, out, err = running.finish()
        self.assertEqual((status, err), (0, ""))
        self.assertIn("text: last", out.splitlines())
        self.check_left_alone()

    def test_errors_have_a_place(self):
        with Program([EXAMPLE, self.target, "BEGIN\n{\n  trace(nothing);\n}"]) as running:
            status, out, err = running.finish()
        self.assertEqual((status, out), (1, ""))
        self.assertIn("D_IDENT_UNDEF at line 3, column 9", err)
        self.check_left_alone()

    def test_what_is_for_the_command_is_refused(self):
        with Program([EXAMPLE, self.target, 'BEGIN { system("true"); }', "destructive"]) as running:
            status, out, err = running.finish()
        self.assertEqual((status, out), (1, ""))
        self.assertIn("system() is for the command's output", err)


@unittest.skipUnless(list((PACKAGE / "ringside").glob("_ringside.*.so")),
                     "no Python package was built: it needs pybind11-dev and python3-dev")
class Python(OnGuest):
    """The package, by scripts of a few lines."""

    def start(self, script):
        """The script, with what all of them need in front."""
        return python(f"""
import json, sys
import ringside
target, READ, LAST = sys.argv[1], {READ!r}, {LAST!r}
def tracing():
    print("tracing", flush=True)
{script}""", self.target)

    def run_script(self, script, act=lambda: None):
        """The lines that it prints behind "tracing", when `act` is done; and what that has given."""
        with self.start(script) as running:
            if "tracing()" in script:
                running.await_line("tracing")
            done = act()
            status, out, err = running.finish()
        self.assertEqual((status, err), (0, ""), out)
        self.check_left_alone()
        return done, out.splitlines()

    def test_records_and_aggregations_have_types(self):
        reads, lines = self.run_script("""
with ringside.attach(target) as vm:
    trace = vm.trace(READ + '{ printf("%s %d", execname, pid); trace(arg2); @[execname, 7] = count();'
                     ' @sizes = quantize(arg2); @all = count(); }' + LAST, bufsize="16m")
    tracing()
    records = [record for record in trace if record]
one = records[0]
print(len(records), trace.status, trace.running)
print(json.dumps([one.text.split()[0], type(one[1]).__name__, len(one), one.probe, one.cpu < 2]))
print(json.dumps([trace.aggregations["_"]["workload", 7], trace.aggregations["all"][()],
                  sum(bucket.count for bucket in trace.aggregations["sizes"][()])]))
print(trace.messages, trace.drops, trace.errors)
""", self.run_workload)
        self.assertEqual(lines[0], f"{reads} 3 False")
        self.assertEqual(json.loads(lines[1]), ["workload", "int", 3, "syscall:vmlinux:read:entry", True])
        self.assertEqual(json.loads(lines[2]), [reads] * 3)
        self.assertEqual(lines[3], "[] [] []")

    def test_stacks_are_lists(self):
        _, lines = self.run_script("""
with ringside.attach(target) as vm:
    trace = vm.trace('fbt::vfs_read:entry /execname == "workload"/'
                     ' { @[stack(2), execname] = count(); stack(3); exit(0); }')
    tracing()
    stack = next(trace)[0]
    trace.run()
    (frames, name), count = next(iter(trace.aggregations["_"].items()))
    print(type(stack).__name__, len(stack), stack[0].symbol, stack[0].module, stack[0].address > 1 << 63)
    print(frames == tuple(stack[:2]), name, count)
""", self.run_workload)
        words = lines[0].split()
        self.assertEqual(words[:2], ["list", "3"])
        self.assertEqual(words[3:], ["vmlinux", "True"])
        self.assertEqual(lines[1], "True workload 1")

    def test_aggregations_can_be_had_while_it_runs(self):
        _, lines = self.run_script("""
with ringside.attach(target) as vm:
    trace = vm.trace('tick-10ms { @ticks = count(); }')
    while trace.aggregations.get("ticks", {}).get((), 0) < 3:
        pass
    trace.stop()
    trace.run()
    print(trace.running, trace.aggregations["ticks"][()] >= 3, trace.end)
    print([record.text for record in vm.trace('tick-10ms { printf("%d", $1); }', arguments=["42"],
                                              seconds=1)][0])
""")
        self.assertEqual(lines, ["False True stopped", "42"])

    def test_errors_are_exceptions(self):
        _, lines = self.run_script("""
with ringside.attach(target) as vm:
    try:
        vm.trace("BEGIN\\n{\\n  trace(nothing);\\n}")
    except ringside.CompileError as error:
        print(error.line, error.column, error.tag, "nothing" in str(error))
    for words in ({"bufsize": "much"}, {"oformat": "json"}, {"seconds": -1.0}, {"arguments": ["a\\0b"]},
                  {"seconds": "x"}):
        try:
            vm.trace("BEGIN { exit(0); }", **words)
        except (ringside.Error, TypeError) as error:
            print(type(error).__name__)
    faulty = vm.trace("BEGIN { trace(*(int *)8); } BEGIN { exit(4); }")
    print(len(list(faulty)), faulty.status, "invalid address (0x8)" in faulty.errors[0]["error"]["msg"])
try:
    ringside.attach("qmp:/nowhere")
except ringside.Error as error:
    print(error)
""")
        self.assertEqual(lines[:7], ["3 9 D_IDENT_UNDEF True", *["Error"] * 4, "TypeError", "1 4 True"])
        self.assertIn("/nowhere", lines[7])

    def test_ctrl_c_leaves_the_machine(self):
        with self.start("""
import threading, time
vm = ringside.attach(target)
trace = vm.trace('tick-10ms { @ = count(); } END { @end = count(); }')
this, loop = threading.get_ident(), sys._getframe().f_lineno + 7
def tell_from_the_loop():
    while sys._current_frames()[this].f_lineno != loop:
        time.sleep(0.01)
    tracing()
threading.Thread(target=tell_from_the_loop).start()
try:
    for record in trace:
        pass
except KeyboardInterrupt:
    print(trace.running, trace.aggregations["end"], trace.aggregations["_"][()] > 0)
""") as running:
            running.await_line("tracing")
            running.process.send_signal(signal.SIGINT)
            self.assertEqual(running.finish(), (0, "False {(): 1} True\n", ""))
        self.check_left_alone()

    def test_a_forked_process_leaves_the_trace_alone(self):
        _, lines = self.run_script("""
import os
vm = ringside.attach(target)
trace = vm.trace('tick-100ms { @ = count(); trace(1); }')
next(trace)
child = os.fork()
if child == 0:
    try:
        trace.aggregations
    except ringside.Error as error:
        print(error, flush=True)
    trace.close()
    vm.close()
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), [next(trace)[0] for _ in range(20)][-1], flush=True)
trace.close()
""")
        self.assertEqual(lines, ["ringside_trace_aggregations(): the trace is that of the process that this one was forked from",
                                 "7 1"])

    def test_a_second_thread_cannot_take_away_what_a_loop_waits_for(self):
        _, lines = self.run_script("""
import threading
vm = ringside.attach(target)
trace = vm.trace('tick-1h { trace(1); }')
def error_of(use):
    try:
        use()
    except ringside.Error as error:
        return str(error)
def disturb():
    while not error_of(lambda: trace.aggregations):  # until the loop waits
        pass
    for use in (trace.close, vm.close):
        print(error_of(use))
    trace.stop()
other = threading.Thread(target=disturb)
other.start()
while error_of(lambda: print(list(trace), trace.end)):  # the other one asks just now
    pass
other.join()
for use in (trace.close, trace.close, vm.close, vm.close):
    use()
""")
        self.assertEqual(lines, ["the trace is used by another thread now"] * 2 + ["[] stopped"])

    def test_objects_outlive_their_machine(self):
        _, lines = self.run_script("""
import gc
with ringside.attach(target) as vm:
    trace = vm.trace('tick-10ms { trace("kept"); }')
    record = next(trace)
    task = vm.kernel["init_task"]
print(record[0], trace.running, list(trace), task.comm)
for use in (lambda: vm.ps(), lambda: vm.trace("BEGIN"), lambda: vm.kernel["init_task"]):
    try:
        use()
    except ringside.Error as error:
        print(error)
del vm, trace, task
gc.collect()
print(record.probe)
""")
        self.assertEqual(lines[0], "kept False [] swapper/0")
        self.assertEqual([line.partition(": ")[2] for line in lines[1:4]], ["the machine is closed"] * 3)
        self.assertEqual(lines[4], "profile:::tick-10ms")

    def test_lists_and_memory_by_the_kernels_types(self):
        _, lines = self.run_script("""
with ringside.attach(target) as vm:
    init = vm.kernel["init_task"]
    print(init.comm, init.pid, init.type_, int(init.mm), hasattr(init, "nothing"), init["comm"])
    task = vm.kernel.at("struct task_struct", int(init.tasks.next) - (init.tasks.address_ - init.address_))
    print(task.pid, task.comm == [each["name"] for each in vm.ps() if each["pid"] == 1][0])
    print(task.real_parent.comm, int(task.real_parent) == init.address_, task.se.value_()["on_rq"] in (0, 1))
    print(bytes(vm.kernel.read(vm.kernel["linux_banner"].address_, 13)))
    for wrong in (lambda: vm.kernel["no_such"], lambda: init.nothing, lambda: init.mm.pgd,
                  lambda: vm.kernel.read(8, 8), lambda: vm.kernel.at("struct no_such", 0)):
        try:
            wrong()
        except (ringside.Error, AttributeError) as error:
            print(type(error).__name__)
    print(sorted(vm.why()["why"]), sorted(vm.look("ps")), vm.probes("fbt:vmlinux:vfs_read:"), vm.netstat() != [])
""")
        self.assertEqual(lines[0], "swapper/0 0 struct task_struct 0 False swapper/0")
        self.assertEqual(lines[1], "1 True")
        self.assertEqual(lines[2], "swapper/0 True True")
        self.assertEqual(lines[3], "b'Linux version'")
        self.assertEqual(lines[4:9], ["Error", "AttributeError", "Error", "Error", "Error"])
        self.assertIn("['fbt:vmlinux:vfs_read:entry', 'fbt:vmlinux:vfs_read:return']", lines[9])


@unittest.skipUnless(list((PACKAGE / "ringside").glob("_ringside.*.so")), "no Python package was built")
class MachineThatEnds(unittest.TestCase):
    def test_a_machine_that_ends_is_told(self):
        with Machine() as machine, python("""
import sys
import time
import ringside
vm = ringside.attach(sys.argv[1])
task = vm.kernel["init_task"]
trace = vm.trace('tick-100ms { @ = count(); }')
print("tracing", flush=True)
try:
    trace.run()
except ringside.MachineGoneError as error:
    ticks = trace.aggregations.get("_", {}).get((), 0)  # it may have ended before the first one
    print(trace.end, trace.running, ticks >= 0, str(error).startswith("tracing ended"))
def error_of(use):
    try:
        use()
    except ringside.Error as error:
        return type(error).__name__
for use in (lambda: task.comm, lambda: vm.ps()):
    while error_of(use) != "MachineGoneError":  # until its process has ended
        time.sleep(0.1)
    print("gone")
print(error_of(lambda: vm.trace("BEGIN")))
""", f"qmp:{machine.path}") as running:
            running.await_line("tracing")
            machine.owner.ask("quit")
            status, out, err = running.finish()
        self.assertEqual((status, err), (0, ""))
        lines = out.splitlines()
        self.assertEqual(lines[0], "machine ended False True True")
        self.assertEqual(lines[1:3], ["gone"] * 2)
        self.assertTrue(lines[3].endswith("Error"))


class OtherLanguages(OnGuest):
    """The wrappers' own tests, which want a guest."""

    def check(self, compiler, words, folder):
        """Runs them, against the library in the build folder."""
        if shutil.which(compiler) is None:
            self.skipTest(f"{compiler} is missing")
        with tempfile.TemporaryDirectory(prefix="ringside-bindings-") as made:
            env = {**os.environ, "RINGSIDE_TARGET": self.target, "LD_LIBRARY_PATH": str(EXAMPLE.parent),
                   "PKG_CONFIG_PATH": str(BUILD / "meson-uninstalled"), "CARGO_TARGET_DIR": made,
                   "GOCACHE": made, "GOFLAGS": "-mod=mod"}
            done = subprocess.run(words, cwd=guest.ROOT / "bindings" / folder, env=env, text=True,
                                  check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.check_left_alone()
        return done.stdout

    def test_rust(self):
        said = self.check("cargo", ["cargo", "test", "--offline", "--", "--test-threads=1"], "rust")
        self.assertIn("2 passed", said)

    def test_go(self):
        said = self.check("go", ["go", "test", "-v", "./..."], "go")
        self.assertIn("--- PASS: TestRecordsAndAggregationsAreExact", said)
        self.assertNotIn("SKIP", said)
