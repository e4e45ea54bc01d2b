"""fbt on functions without an ftrace site: all at once under a workload, and exact where it is known."""

import re
import tempfile
import unittest

import ringside
import test_storm

TROUBLE = re.compile(test_storm.TROUBLE.pattern + "|Kernel panic")
LISTED = re.compile(r"^ *\d+ +fbt +(\S+) +(\S+) (entry|return)$", re.MULTILINE)
WORKLOAD = ("workload --reads 20 --read-sizes 16,512,4096 --writes 10 --opens 5 --getppid 50"
            " --processes 2 --threads 3 --seconds 5")
ROUND = {"read": 20, "getppid": 50}


def bare_functions(image):
    """The names of all probes that stand in functions without an ftrace site."""
    listing = ringside.run(image=image, options=("-l", "-v", "-n", "fbt:::")).stdout
    probes = re.split(r"^(?= *\d+ +fbt +)", listing, flags=re.MULTILINE)
    marked = [part for part in probes if "no ftrace site: at its" in part]
    return sorted({":".join(("fbt",) + LISTED.match(part).groups()) for part in marked})


class BareFunctions(unittest.TestCase):
    def check_storm(self, image, cpus, probes):
        program = (",\n".join(probes) + " { @seen = count(); }\n"
                   'syscall::read:entry, syscall::getppid:entry /execname == "workload"/'
                   ' { @[strjoin("call ", probefunc)] = count(); }\n'
                   'END { printa("seen %@d\\n", @seen); }')
        script = self.enterContext(tempfile.NamedTemporaryFile("w", suffix=".d"))
        script.write(program)  # too long for a command line
        script.flush()
        outcome = ringside.run(image=image, cpus=cpus,
                               options=["-q", "-x", "maxslow=100", "-s", script.name],
                               command=f"dmesg -c >/dev/null; {WORKLOAD}; dmesg")

        counts = outcome.counts()
        self.assertEqual(outcome.status, 0, outcome)
        self.assertIsNone(TROUBLE.search(outcome.stdout), outcome)
        self.assertNotRegex(outcome.stderr, r"(?i)drop|lost|error|gone|over budget")
        self.assertGreater(counts["seen"], counts["rounds"], outcome)
        for name, each in ROUND.items():
            self.assertEqual(counts[name], each * counts["rounds"], outcome)
            self.assertEqual(counts[f"call {name}"], counts[name], (name, outcome))

    def test_all_at_once_under_a_workload(self):
        for image in ringside.IMAGES:
            probes = bare_functions(image)
            self.assertGreater(len(probes), 5_000)
            for cpus in (1,) if ringside.QUICK else (1, 4):
                with self.subTest(image=image, cpus=cpus):
                    self.check_storm(image, cpus, probes)

    def test_the_way_that_calls_take_is_counted_exactly(self):
        """Each read() of a file copies once, by a function that ftrace does not know."""
        for image, cpus in ringside.GUESTS:
            with self.subTest(image=image, cpus=cpus):
                outcome = ringside.run(
                    'fbt::vfs_read:entry /execname == "workload"/ { self->in = 1; }'
                    ' fbt::_copy_to_iter:entry /self->in && arg1 == 700/ { @in = count(); }'
                    ' fbt::_copy_to_iter:return /self->in && arg1 == 700/ { @out = count(); }'
                    " fbt::vfs_read:return { self->in = 0; }"
                    ' END { printa("in %@d\\n", @in); printa("out %@d\\n", @out); }',
                    image=image, cpus=cpus, options=["-q"],
                    command="head -c 700 /bin/workload >/tmp/f;"
                            " workload --reads 25 --read-sizes 700 --file /tmp/f")

                counts = outcome.counts()
                self.assertEqual(counts["in"], 25, outcome)
                self.assertEqual(counts["out"], 25, outcome)

    def test_what_is_kept_from_probes_says_so(self):
        for name, reason in (("__switch_to_asm", "do not show it to be a function of C"),
                             ("memset", "has no ftrace site, and")):
            outcome = ringside.run(f"fbt::{name}:entry {{ @ = count(); }}")

            self.assertNotEqual(outcome.status, 0, outcome)
            self.assertIn(reason, outcome.stderr)


if __name__ == "__main__":
    unittest.main()
