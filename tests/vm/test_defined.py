"""Probes that D libraries define: a user's own of -L, and those of fsinfo and lsm."""

import pathlib
import re
import tempfile
import unittest

import ringside

ROOT = pathlib.Path(__file__).resolve().parents[2]
COUNTED = re.compile(r"^<(.*)>$", re.MULTILINE)


def documented_library():
    """The example of docs/providers-in-d.md."""
    text = (ROOT / "docs/providers-in-d.md").read_text()
    return re.search(r"^```\n(/\* mylib.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]


class Defined:
    """The tests, on each guest."""

    image = ""

    def run_with(self, library, program, command, **settings):
        """The lines between < and > that it printed, with the library in a folder of -L."""
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "own.d").write_text(library)
            outcome = ringside.run(program, image=self.image, options=["-q", "-L", folder],
                                   command=command, **settings)
        return outcome, COUNTED.findall(outcome.stdout)

    def test_a_library_defines_probes_on_others(self):
        library = "#pragma D depends_on library procfs.d\n" + documented_library() + """
provider proc {
	probe own(struct task_struct *task) : (psinfo_t *task)
	    = fbt::do_exit:entry /this->pid > 1/ { task = curthread; this->pid = task->pid; };
};
"""
        outcome, printed = self.run_with(
            library,
            'files:::read-slow /execname == "cat"/ { printf("<%s %s %d %d %s>\\n", probefunc, '
            'probename, args[1], args[2] > 1000000, args[0]->fi_fs); }'
            'proc:::own /execname == "cat"/ { printf("<%s %d>\\n", args[0]->pr_fname, '
            'args[0]->pr_pid == pid); }',
            "sh -c '(sleep 0.3; echo x) | cat'")

        self.assertEqual(outcome.status, 0, outcome.stderr)
        self.assertIn("vfs_read read-slow 2 1 pipefs", printed)
        self.assertIn("cat 1", printed)

    def test_what_the_kernel_lacks_is_told_with_its_place(self):
        outcome, _ = self.run_with(
            "#pragma D depends_on module vmlinux\n"
            "provider own {\n\tprobe a(int colour) = fbt::do_exit:entry {\n"
            "\t\tcolour = curthread->colour;\n\t    };\n};\n",
            "own:::a { }", "true")

        self.assertNotEqual(outcome.status, 0)
        self.assertIn("colour is not a member of struct task_struct", outcome.stderr)
        self.assertIn("(own.d, line 4)", outcome.stderr)

    def test_files(self):
        _, printed = self.run_with(
            "", 'fsinfo:::open, fsinfo:::read, fsinfo:::write, fsinfo:::mkdir, fsinfo:::rmdir,'
                'fsinfo:::create, fsinfo:::remove, fsinfo:::rename'
                ' /strstr(args[0]->fi_name, "own") == args[0]->fi_name/'
                '{ printf("<%s %s %d>\\n", probename, args[0]->fi_name, args[1]); }',
            "sh -c 'cd /tmp; echo 12345 > own1; read x < own1; mkdir own2; rmdir own2;"
            " mv own1 own3; rm own3'")

        for line in ("create own1 0", "open own1 0", "write own1 6", "mkdir own2 0",
                     "rmdir own2 0", "rename own1 0", "remove own3 0"):
            self.assertIn(line, printed)

    def test_security_hooks(self):
        verdict = 'lsm::security_inode_mkdir:check-ok { printf("<ok %d %s>\\n", args[0], ' \
                  'stringof(args[2]->d_name.name)); }' if self.image == "debian-6.1" else ""
        outcome, printed = self.run_with(
            "", 'lsm::security_inode_mkdir:check { printf("<%s %d %s>\\n", probefunc, '
                'args[0]->pid == tid, stringof(args[2]->d_name.name)); }'
                + verdict,
            "mkdir /tmp/own")

        self.assertEqual(outcome.status, 0, outcome.stderr)
        self.assertEqual(printed, ["security_inode_mkdir 1 own"] + ["ok 0 own"] * bool(verdict))

    def test_hooks_whose_names_are_like_those_of_selinux_are_listed(self):
        outcome = ringside.run("lsm:::check", image=self.image, options=["-l"])

        self.assertEqual(outcome.status, 0, outcome.stderr)
        for hook in ("security_fs_context_dup", "security_fs_context_parse_param",
                     "security_ib_pkey_access"):
            self.assertIn(f" {hook} check\n", outcome.stdout)
        for other in ("security_fs_use", "security_ib_pkey_sid", "security_genfs_sid"):
            self.assertNotIn(f" {other} check\n", outcome.stdout)


globals().update(ringside.on_each(Defined, ringside.GUESTS))


if __name__ == "__main__":
    unittest.main()
