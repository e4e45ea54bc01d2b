"""Several machines at once: one program, one output, exact counts of each."""

import json
import re
import unittest

import ringside

TWO = ("--image", "debian-6.1,name=web", "--image", "debian-6.12,cpus=2")
# A guest knows which of the two it is by its kernel.
READS = ("case $(uname -r) in 6.1.*) workload --reads 700;; *) workload --reads 1300;; esac"
         " >/dev/null")
CLAUSE = 'syscall::read:entry /execname == "workload"/'


def run(program, *options, command=None):
    """Runs a program on both machines to its end."""
    return ringside.run(program, machine=False, command=command, options=(*TWO, *options))


class Machines(unittest.TestCase):
    """Linux 6.1 and 6.12, with one and two vCPUs."""

    def test_counts_are_exact_on_each_and_keys_may_name_it(self):
        outcome = run(f'{CLAUSE} {{ @[vmname] = count(); @all["together"] = count(); }}',
                      "-q", "-x", "aggmerge", command=READS)

        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual(outcome.counts(), {"web": 700, "debian-6.12": 1300, "together": 2000},
                         outcome)

    def test_aggregations_and_variables_are_each_machines_own(self):
        outcome = run(f"BEGIN {{ reads = 0; }} {CLAUSE} {{ reads++; @ = count(); }}"
                      ' END { printf("%s: %d\\n", vmname, reads); printa("sum %@d\\n", @); }',
                      "-q", command=READS)

        self.assertEqual(outcome.status, 0, outcome)
        found = dict(re.findall(r"^(\S+): (\d+)\nsum \2$", outcome.stdout, re.MULTILINE))
        self.assertEqual(found, {"web": "700", "debian-6.12": "1300"}, outcome)

    def test_records_name_their_machine_and_come_by_time(self):
        outcome = run(f"{CLAUSE} {{ trace(vmname); }}", "-x", "oformat=jsonl", command=READS)

        records = [json.loads(line) for line in outcome.stdout.splitlines()]
        self.assertEqual(len(records), 2000, outcome.stderr)
        for record in records:
            self.assertEqual(record["machine"], record["output"][0]["value"])
        names = [record["machine"] for record in records]
        self.assertEqual((names.count("web"), names.count("debian-6.12")), (700, 1300))
        for name in set(names):
            times = [each["timestamp"] for each in records if each["machine"] == name]
            self.assertEqual(times, sorted(times), name)

    def test_exit_on_one_ends_all(self):
        outcome = run('syscall::read:entry /execname == "workload" && vmname == "web" &&'
                      ' ++n == 100/ { exit(7); }'
                      ' END { printf("end %s\\n", vmname); }', "-q",
                      command="case $(uname -r) in 6.1.*) workload --reads 100;; *) sleep 1000;;"
                              " esac >/dev/null")

        self.assertEqual(outcome.status, 7, outcome)
        self.assertEqual(sorted(re.findall("^end (.*)$", outcome.stdout, re.MULTILINE)),
                         ["debian-6.12", "web"], outcome)

    def test_a_machine_that_ends_leaves_the_other_traced(self):
        outcome = run(f'{CLAUSE} {{ @[vmname] = count(); }}', "-q", "-x", "aggmerge",
                      command="case $(uname -r) in 6.1.*) poweroff -f;;"
                              " *) sleep 5; workload --reads 1300;; esac >/dev/null")

        self.assertEqual(outcome.status, 1, outcome)
        self.assertIn("ringside: web: tracing ended: the guest powered itself off", outcome.stderr)
        self.assertEqual(outcome.counts(), {"debian-6.12": 1300}, outcome)


if __name__ == "__main__":
    unittest.main()
