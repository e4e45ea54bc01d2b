"""fbt on functions that a kernel has only in a form of the compiler's: under both names, exactly."""

import re
import unittest

import ringside
from made_images import image_with_programs

EXECS = 7
# A function of each kernel that is there as .isra alone, and is passed once by each execve().
PROGRAM = """
fbt::do_execveat_common:entry { @source = count(); }
fbt::do_execveat_common:return { @back = count(); }
fbt::do_execveat_common.isra.0:entry { @form = count(); }
fbt::do_execveat_common*:entry { @pattern = count(); }
syscall::execve:entry, syscall::execveat:entry { @calls = count(); }
END { printa("source %@d\\n", @source); printa("back %@d\\n", @back); printa("form %@d\\n", @form);
      printa("pattern %@d\\n", @pattern); printa("calls %@d\\n", @calls); }
"""


# Those that both kernels have in such a form alone, and how often forms.c comes by each.
FORMS = {"do_sysinfo.isra.0": 11, "do_sigaltstack.constprop.0": 13, "ksys_msgctl.constprop.0": 9 + 1,
         "do_pselect.constprop.0": 5, "process_vm_rw_core.constprop.0": 4, "__do_pipe_flags.part.0": 7}
# A form beside its function, which has the source's name for itself, and which statfs() does not come by.
BESIDE = {"vfs_statfs.part.0.isra.0": 6}
COLD = "drop_caches_sysctl_handler"


class FormsOfFunctions(unittest.TestCase):
    def test_both_names_count_each_call(self):
        for image, cpus in ringside.GUESTS:
            with self.subTest(image=image, cpus=cpus):
                outcome = ringside.run(
                    PROGRAM, image=image, cpus=cpus, options=["-q"],
                    command=f"for i in $(seq {EXECS}); do workload --getppid 1 >/dev/null; done")

                counts = outcome.counts()
                self.assertEqual(outcome.status, 0, outcome)
                self.assertGreaterEqual(counts["calls"], EXECS, outcome)
                for name in ("source", "back", "form", "pattern"):
                    self.assertEqual(counts[name], counts["calls"], (name, outcome))

    def test_each_kind_of_form_counts_known_calls_under_both_names(self):
        names = [name for form in FORMS | BESIDE for name in (form, form.split(".")[0])]
        clauses = [f'fbt::{name}:{way} /execname == "forms"/ {{ @["{name}", probename] = count(); }}'
                   for name in names for way in ("entry", "return")]
        for image, cpus in ringside.GUESTS:
            with self.subTest(image=image, cpus=cpus), image_with_programs(image, "forms") as environment:
                outcome = ringside.run(
                    " ".join(clauses) + ' END { printa("%s %s %@d\\n", @); }', image=image, cpus=cpus,
                    options=["-q"], command="forms; echo status $?", environment=environment)

                expected = {f"{name} {way}": FORMS[form] for form in FORMS
                            for name in (form, form.split(".")[0]) for way in ("entry", "return")}
                expected |= {f"{form} {way}": count for form, count in BESIDE.items()
                             for way in ("entry", "return")}
                self.assertEqual(outcome.counts(), expected | {"status": 0}, outcome)

    def test_a_cold_part_is_no_function_but_its_instructions_are_probes(self):
        """The kernel writes a line each time that it drops its caches, which is what is cold there."""
        for cpus in (1, 2):
            with self.subTest(cpus=cpus):
                outcome = ringside.run(
                    f"instr:vmlinux:{COLD}.cold:*-0 {{ @cold = count(); }}"
                    f" fbt::{COLD}:entry {{ @all = count(); }}"
                    ' END { printa("cold %@d\\n", @cold); printa("all %@d\\n", @all); }',
                    cpus=cpus, options=["-q"],
                    command="for n in 1 2 3; do echo 1 >/proc/sys/vm/drop_caches; done;"
                            " cat /proc/sys/vm/drop_caches >/dev/null;"
                            " echo told $(dmesg | grep -c drop_caches:)")

                counts = outcome.counts()
                self.assertEqual(counts, {"told": 3, "cold": 3, "all": 3}, outcome)

    def test_a_cold_part_is_refused_by_fbt_with_its_reason(self):
        outcome = ringside.run(f"fbt::{COLD}.cold:entry")
        listed = ringside.run(options=["-l", "-n", f"fbt::{COLD}*:"])

        self.assertNotEqual(outcome.status, 0, outcome)
        self.assertIn("is no function of its own: its function jumps to it", outcome.stderr)
        self.assertEqual(re.findall(rf"({COLD}\S*) (\w+)$", listed.stdout, re.MULTILINE),
                         [(COLD, "entry"), (COLD, "return")], listed)

    def test_a_form_has_no_types_and_says_why(self):
        outcome = ringside.run("fbt::do_execveat_common:entry { trace(args[1]); }")

        self.assertNotEqual(outcome.status, 0, outcome)
        self.assertIn("do_execveat_common.isra.0 is what the compiler made of do_execveat_common, "
                      "with other parameters, use arg0 to arg9", outcome.stderr)


if __name__ == "__main__":
    unittest.main()
