"""Several machines at once: one program, one output, exact counts of each."""

import collections
import json
import os
import re
import signal
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

    def test_aggregations_are_each_machines_own_and_globals_are_shared(self):
        outcome = run("BEGIN { reads = 0; }"
                      f" {CLAUSE} {{ reads++; each[vmname]++; self->own++; @ = count(); }}"
                      " syscall::exit_group:entry /self->own/"
                      ' { printf("thread of %s: %d\\n", vmname, self->own); }'
                      ' END { printf("%s: %d of %d\\n", vmname, each[vmname], reads);'
                      ' printa("sum %@d\\n", @); }',
                      "-q", command=READS)

        self.assertEqual(outcome.status, 0, outcome)
        ends = re.findall(r"^(\S+): (\d+) of (\d+)\nsum \2$", outcome.stdout, re.MULTILINE)
        self.assertEqual(sorted(ends), [("debian-6.12", "1300", "2000"), ("web", "700", "2000")],
                         outcome)
        self.assertEqual(sorted(re.findall(r"^thread of (\S+): (\d+)$", outcome.stdout,
                                           re.MULTILINE)),
                         [("debian-6.12", "1300"), ("web", "700")], outcome)

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

    def test_a_machine_field_chooses_the_machine(self):
        own = '/pid == $target && execname == "workload"/'
        outcome = run(f'web:{CLAUSE} {{ @a["web", vmid] = count(); }}'
                      f' debian*:syscall::read:entry {own} {{ @a["glob", vmid] = count(); }}'
                      f' :syscall::read:entry {own} {{ @a["every", vmid] = count(); }}'
                      ' web:dtrace:::BEGIN, *:dtrace:::END'
                      ' { printf("%s %s\\n", vmname, probename); }',
                      "-q", "-x", "aggmerge",
                      command=READS.replace("workload", "exec workload"))

        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual({key: value for key, value in outcome.counts().items() if " " in key},
                         {"web 0": 700, "glob 1": 1300, "every 0": 700, "every 1": 1300}, outcome)
        self.assertEqual(sorted(re.findall("^.* (?:BEGIN|END)$", outcome.stdout, re.MULTILINE)),
                         ["debian-6.12 END", "web BEGIN", "web END"], outcome)

    def test_a_kernel_needs_what_its_own_clauses_name(self):
        lacking = "fbt::vfs_read:entry { trace(args[0]->f_inode->i_atime.tv_sec); }"
        both = run(lacking, "-e")
        one = run(f"web:{lacking} web:fbt::generic_file_splice_read:entry,"
                  " debian*:fbt::mnt_idmap_get:entry { }", "-e")

        self.assertEqual((both.status, one.status), (1, 0), f"{both}{one}")
        self.assertRegex(both.stderr, r"ringside: debian-6\.12: the program cannot run on Linux "
                         r"6\.12\S*: line 1: struct inode has no member i_atime\.tv_sec")

    def test_a_type_without_a_name_is_one_kernels(self):
        program = ("BEGIN { this->p = &curthread->restart_block.nanosleep;"
                   " trace(this->p->expires); exit(0); }")
        here = ringside.run(program)
        both = run(program, "-e")

        self.assertEqual((here.status, both.status), (0, 1), f"{here}{both}")
        self.assertRegex(both.stderr, r"debian-6\.12: the program was compiled for Linux 6\.1\.\S+ "
                         r"\(build \w+\) and contains struct .*, which has no name")

    def test_what_is_not_there_is_told_with_the_machine(self):
        for description, word in (
                ("web9:syscall::read:entry",
                 "there is no machine web9; there are web and debian-6.12"),
                ("fbt::mnt_idmap_get:entry", "web has none"),
                ("debian*:fbt::generic_file_splice_read:entry", "debian-6.12 has none")):
            outcome = run(description, "-e")
            self.assertEqual(outcome.status, 1, outcome)
            self.assertIn(f"probe description {description} does not match any probes: {word}",
                          outcome.stderr)

    def test_a_listing_is_of_the_machines_that_are_asked_for(self):
        outcome = run("debian*:fbt:vmlinux:vfs_read:", "-l")
        nowhere = run("web9:fbt:vmlinux:vfs_read:", "-l")

        self.assertEqual((outcome.status, nowhere.status), (0, 1), f"{outcome}{nowhere}")
        header, *rows = (line.split() for line in outcome.stdout.splitlines())
        self.assertEqual(header, ["MACHINE", "ID", "PROVIDER", "MODULE", "FUNCTION", "NAME"])
        self.assertEqual([[row[0], *row[2:]] for row in rows],
                         [["debian-6.12", "fbt", "vmlinux", "vfs_read", name]
                          for name in ("entry", "return")], outcome)
        self.assertIn("there is no machine web9; there are web and debian-6.12", nowhere.stderr)

    def test_a_machine_where_nothing_matches_is_named(self):
        outcome = run("fbt::mnt_idmap_get:entry", "-l")

        self.assertEqual((outcome.status, outcome.stdout.count("mnt_idmap_get")), (1, 1), outcome)
        self.assertIn("ringside: web: failed to match fbt::mnt_idmap_get:entry: No probe matches",
                      outcome.stderr)

    def test_machines_have_the_processes_of_the_host_that_run_them(self):
        with ringside.Run('tick-1s { printf("vm %s %d %d\\n", vmname, vmid, vmpid); }',
                          machine=False, options=(*TWO, "-q")) as running:
            text = running.read_until(lambda text: "vm web " in text and "vm debian" in text)
            pids = {name: int(pid) for name, pid in re.findall(r"^vm (\S+) \d (\d+)$", text,
                                                               re.MULTILINE)}
            self.assertEqual(sorted(pids.values()), sorted(running.qemu()))
            running.process.send_signal(signal.SIGINT)
            outcome = running.finish()
        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual(set(re.findall(r"^vm (\S+ \d) ", text + outcome.stdout, re.MULTILINE)),
                         {"web 0", "debian-6.12 1"})


class OneOfSeveral(unittest.TestCase):
    """The fate of one machine is not the others' business."""

    def test_one_dies_one_stands_still_and_the_third_goes_on(self):
        machines = [word for name in ("dying", "still", "well")
                    for word in ("--image", "debian-6.1,name=" + name)]
        program = (f"{CLAUSE} {{ n[vmname]++; }}"
                   ' syscall::getppid:entry /execname == "workload"/'
                   ' { printf("round %s %d %d\\n", vmname, n[vmname], vmpid); }'
                   ' END { printf("end %s\\n", vmname); }')
        with ringside.Run(program, machine=False, options=(*machines, "-q"),
                          command="while :; do workload --reads 100 --getppid 1 >/dev/null; done"
                          ) as running:
            def rounds(text):
                return collections.Counter(re.findall(r"^round (\w+) ", text, re.MULTILINE))

            def more(name, since, count=5):
                return lambda text: rounds(text)[name] >= rounds(since)[name] + count

            text = running.read_until(lambda text: len(rounds(text)) == 3)
            pids = dict(re.findall(r"^round (\w+) \d+ (\d+)$", text, re.MULTILINE))
            os.kill(int(pids["still"]), signal.SIGSTOP)
            text = running.read_until(more("well", text))
            os.kill(int(pids["dying"]), signal.SIGKILL)
            text = running.read_until(lambda text: "end dying\n" in text)
            text = running.read_until(more("well", text))
            self.assertNotIn("end still", text)
            os.kill(int(pids["still"]), signal.SIGCONT)
            text = running.read_until(more("still", text))
            running.process.send_signal(signal.SIGINT)
            outcome = running.finish()

        self.assertEqual(outcome.status, 1, outcome)
        self.assertRegex(outcome.stderr, r"ringside: dying: tracing ended: qemu \(.*\) died")
        text += outcome.stdout
        for name in ("dying", "still", "well"):
            reads = [int(count)
                     for count in re.findall(rf"^round {name} (\d+) ", text, re.MULTILINE)]
            self.assertEqual(reads, [100 * (i + 1) for i in range(len(reads))], name)
        self.assertEqual(sorted(re.findall("^end (.*)$", text, re.MULTILINE)),
                         ["dying", "still", "well"])


if __name__ == "__main__":
    unittest.main()
