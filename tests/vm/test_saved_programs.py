"""Programs that were saved: compiled once, run on other boots (KASLR) and on other kernels.

The output of a saved program is compared with that of the same script when it is compiled on the
kernel that it runs on, and both with what the workload is known to do.
"""

import pathlib
import re
import tempfile
import unittest

import ringside

READS = 'syscall::read:entry /execname == "workload"/ { @["read"] = count(); }'
# A symbol, bit-fields, sizes, offsets, enumerators, members through several pointers, args[], a
# translator, a structure by value, print() of an array and of a structure.
ALL = r"""
BEGIN
{
    printf("cpus %d\n", *(int *)&`nr_cpu_ids);
    printf("first task %s\n", stringof(`init_task.comm));
    this->set = *(struct kset **)&`module_kset;
    printf("bits %d %d\n", this->set->kobj.state_initialized, this->set->kobj.state_in_sysfs);
    printf("sizes %d %d\n", sizeof (struct task_struct), sizeof (struct file) * 2);
    printf("offset %d\n", offsetof(struct task_struct, real_cred));
    printf("enumerators %d %d\n", PIDTYPE_SID, __BPF_FUNC_MAX_ID);
}

fbt::vfs_read:entry
/execname == "workload" && !seen/
{
    seen = 1;
    printf("ids %d %d\n", curthread->pid == pid,
        curthread->signal->pids[PIDTYPE_TGID]->numbers[0].nr == pid);
    printf("info %s %d\n", curpsinfo->pr_psargs, curpsinfo->pr_pid == pid);
    printf("type %s\n", stringof(args[0]->f_inode->i_sb->s_type->name));
    printf("args %d\n", (uint64_t)args[0] == arg0 && (uint64_t)args[1] == arg1);
    printf("step %d\n", (uint64_t)(curthread + 1) - (uint64_t)curthread);
    self->cred = *curthread->real_cred;
    printf("copy %d\n", self->cred.uid.val == uid);
    print(curthread->signal->rlim);
    print(*args[0]);
}
"""
# Things that 6.12 lacks, or has otherwise.
LACKING = {
    "member": ("fbt::vfs_read:entry\n{ trace(args[0]->f_inode->i_atime.tv_sec); }",
               r"line 2: struct inode has no member i_atime\.tv_sec in this kernel"),
    "symbol": ("BEGIN { trace((uint64_t)&`generic_file_splice_read); exit(0); }",
               r"line 1: this kernel has no symbol vmlinux`generic_file_splice_read"),
    "prototype": ("fbt::notify_change:entry { trace((uint64_t)args[0]); }",
                  r"line 1: args\[0\] of fbt::notify_change:entry is struct mnt_idmap \* here and "
                  r"struct user_namespace \* where the program was compiled: compile it again here"),
    "size": ("BEGIN { tracemem(&`init_task, sizeof (struct task_struct)); exit(0); }",
             r"line 1: struct task_struct: its size is \d+ here and \d+ where the program was "
             r"compiled, and the code depends on that: compile it again here"),
}
WORKLOAD = "workload --reads 40"


def told(outcome):
    """The facts of the kernel that a run of ALL tells. Of what print() shows, the types and
    members: addresses, counts and what is sized by the memory that is left differ from boot to
    boot. Sorted, because the command's own output comes when it comes."""
    return sorted(re.sub(r"^( .*) = .*$", r"\1", outcome.stdout, flags=re.MULTILINE).splitlines())


class SavedPrograms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Each program, compiled against a boot of 6.1."""
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.saved = {}
        texts = {name: text for name, (text, _) in LACKING.items()}
        for name, text in {"reads": READS, "all": ALL, **texts}.items():
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
        outcome = self.run_saved("reads", image="debian-6.12", command=WORKLOAD)

        self.assertEqual(outcome.status, 0, outcome)
        self.assertGreaterEqual(outcome.counts()["read"], 40, outcome)

    def check_all(self, image):
        """Two boots of the saved program say what the script says that is compiled there."""
        here = ringside.run(ALL, image=image, options=("-q",), command=WORKLOAD)
        self.assertEqual(here.status, 0, here)
        for line in ("cpus 1", "first task swapper/0", "bits 1 1", "ids 1 1", f"info {WORKLOAD} 1",
                     "args 1", "copy 1"):
            self.assertIn(line, here.stdout.splitlines(), here)
        self.assertIn("struct file {", here.stdout, here)
        self.assertIn("struct rlimit [16] [", here.stdout, here)
        files = "rlim_cur = 0x400\n        __kernel_ulong_t rlim_max = 0x1000\n"
        for _ in range(2):
            saved = self.run_saved("all", image=image, command=WORKLOAD)
            self.assertEqual(saved.status, 0, saved)
            self.assertEqual(told(saved), told(here))
            self.assertIn(files, saved.stdout, saved)
        return dict(re.findall(r"^(sizes|enumerators|step) (.*)$", here.stdout, re.MULTILINE))

    def test_one_file_runs_on_both_kernels_and_on_every_boot(self):
        old, new = self.check_all("debian-6.1"), self.check_all("debian-6.12")

        for what in ("sizes", "enumerators", "step"):  # or nothing was late
            self.assertNotEqual(old[what], new[what])

    def test_what_a_kernel_lacks_is_named(self):
        for name, (_, what) in LACKING.items():
            with self.subTest(name):
                self.assertRegex(self.refusal(name, image="debian-6.12"),
                                 rf"cannot run on Linux 6\.12\.\S+: {what}$")

    def test_what_was_compiled_there_runs_there(self):
        """The programs that 6.12 refuses are good ones."""
        self.assertEqual(self.run_saved("symbol").status, 0)
        self.assertEqual(self.run_saved("size").status, 0)

    def test_one_with_names_is_refused_without_a_guest(self):
        self.assertIn("but there is no guest", self.refusal("symbol", machine=False))


if __name__ == "__main__":
    unittest.main()
