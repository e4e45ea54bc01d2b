"""D against a guest's kernel and processes: stacks, types, symbols, loops, what -w does; exact."""

import json
import re
import unittest

import ringside

# One firing of one process, whose read is told apart by its size.
READ = 'fbt::vfs_read:entry /execname == "workload" && arg2 == 777/'


class Language:
    """The tests; the classes at the end say on which guest. One boot each."""

    image = ""

    def trace(self, program, command, *options, cpus=1):
        """Runs a program to the command's end, which has to be a good one, without a complaint."""
        outcome = ringside.run(program, image=self.image, cpus=cpus, command=command,
                               options=("-q", *options))
        self.assertEqual(outcome.status, 0, outcome)
        self.assertNotIn("error on enabled probe", outcome.stderr, outcome)
        return outcome

    def values(self, *expressions, clause=READ, prelude="", command="workload --reads 3 "
               "--read-size 777", options=()):
        """The value of each expression in the first firing of `clause`, as printf("%s") has it."""
        prints = "".join(f' printf("<v>\\n%{letter}\\n</v>\\n", {text});'
                         for letter, text in expressions)
        outcome = self.trace(prelude + f"{clause} {{{prints} exit(0); }}", command, *options)
        found = re.findall(r"^<v>\n(.*?)\n</v>$", outcome.stdout, re.DOTALL | re.MULTILINE)
        self.assertEqual(len(found), len(expressions), outcome)
        return found

    def test_stacks_are_those_of_the_kernels_source(self):
        outcome = self.trace(
            READ + ' { @s[stack()] = count(); @two[stack(2)] = sum(1); @d[stackdepth] = count();'
            ' @c[caller] = count(); @u[ustack(1)] = count(); }'
            ' END { printa("<s>%k%@d\\n</s>\\n", @s); printa("<two>%k%@d\\n</two>\\n", @two);'
            ' printa("depth %d %@d\\n", @d); printa("caller %a %@d\\n", @c);'
            ' printa("<u>%k%@d\\n</u>\\n", @u); }',
            "workload --reads 50 --read-size 777")

        def frames(tag):
            rows = re.findall(rf"<{tag}>\n(.*?)</{tag}>", outcome.stdout, re.DOTALL)
            self.assertEqual(len(rows), 1, outcome)
            *found, count = [row.strip() for row in rows[0].splitlines() if row.strip()]
            self.assertEqual(count, "50", outcome)
            return found

        whole = frames("s")
        names = [re.sub(r"\+0x[0-9a-f]+$", "", frame) for frame in whole]
        # 6.12's x64_sys_call() is between them, but only as a jump: it leaves no frame.
        self.assertEqual([names[0], *names[-2:]], [
            "vmlinux`ksys_read", "vmlinux`do_syscall_64",
            "vmlinux`entry_SYSCALL_64_after_hwframe"], outcome)
        self.assertLessEqual(len(names), 4, outcome)
        self.assertEqual(frames("two"), whole[:2])
        self.assertEqual(outcome.counts()[f"depth {len(whole)}"], 50, outcome)
        self.assertIn(f"caller {whole[0]} 50\n", outcome.stdout)
        self.assertEqual(len(frames("u")), 1, outcome)
        self.assertNotIn("drop", outcome.stderr)

    def test_a_stack_is_printed_where_it_was_taken(self):
        outcome = self.trace(READ + ' { printf("<k>"); stack(); printf("</k>\\n"); printf("<u>");'
                             ' ustack(); printf("</u>\\n"); printf("%x\\n", uregs[R_RIP]); exit(0); }',
                             "workload --reads 1 --read-size 777")

        self.assertRegex(outcome.stdout, r"<k>\n {14}vmlinux`ksys_read\+0x[0-9a-f]+\n"
                         r"( {14}vmlinux`\w+\+0x[0-9a-f]+\n)+</k>\n")
        # The program's name is known if it lived until somebody looked.
        user = re.search(r"<u>\n {14}(?:workload`)?0x([0-9a-f]+)\n</u>\n([0-9a-f]+)$",
                         outcome.stdout, re.MULTILINE)
        self.assertTrue(user, outcome)
        self.assertEqual(user[1], user[2], outcome)

    def test_identity_and_registers(self):
        found = self.values(
            ("s", "execname"), ("d", "pid == tid && pid == $target"), ("d", "uid"), ("d", "gid"),
            ("d", "ppid == curthread->real_parent->tgid"), ("d", "curcpu->cpu_id == cpu"),
            ("s", "curpsinfo->pr_fname"), ("s", "curpsinfo->pr_psargs"),
            ("d", "curpsinfo->pr_pid == pid"), ("d", "curlwpsinfo->pr_lwpid == tid"),
            ("c", "curlwpsinfo->pr_sname"), ("d", "progenyof($target)"), ("d", "progenyof(1)"),
            ("d", "progenyof(2)"),
            ("d", "uregs[R_RIP] >= curthread->mm->start_code &&"
             " uregs[R_RIP] < curthread->mm->end_code"),
            ("d", "uregs[R_RSP] < curthread->mm->start_stack"),
            ("d", "uregs[R_RDX]"), ("d", "regs[R_RDX]"))

        self.assertEqual(found, ["workload", "1", "0", "0", "1", "1", "workload",
                                 "workload --reads 3 --read-size 777", "1",
                                 "1", "O", "1", "1", "0", "1", "1", "777", "777"])

    def test_a_thread_inherits_nothing_from_one_that_had_its_id(self):
        outcome = self.trace(
            'syscall::newuname:entry /execname == "uname"/ { self->x++;'
            " @[tid, ((struct task_struct *)curthread)->start_time] = max(self->x); }"
            ' END { printa("<%d at %d> %@d\\n", @); }',
            "for i in 1 2 3 4 5 6; do echo 2999 >/proc/sys/kernel/ns_last_pid; (uname >/dev/null); done; true")

        seen = [(name.split()[0], calls) for name, calls in outcome.counts().items() if " at " in name]
        tids = [tid for tid, _ in seen]
        self.assertGreaterEqual(max(tids.count(tid) for tid in tids), 3, outcome)
        self.assertEqual(len({calls for _, calls in seen}), 1, outcome)

    def test_what_the_host_fires_has_the_kernels_first_thread(self):
        prints = (' printf("<v>\\n%s %d %s %d %s %s %s\\n</v>\\n",'
                  " ((struct task_struct *)curthread)->comm, curpsinfo->pr_pid,"
                  " curpsinfo->pr_psargs, curlwpsinfo->pr_pri, cwd, fds[0].fi_name, execname);")
        outcome = self.trace("BEGIN {" + prints + "} tick-100ms {" + prints + " exit(0); }"
                             " END {" + prints + "}", None)

        found = re.findall(r"^<v>\n(.*?)\n</v>$", outcome.stdout, re.DOTALL | re.MULTILINE)
        self.assertEqual(found, ["swapper/0 0 swapper/0 120 / <none> ringside"] * 3, outcome)

    def test_time_on_a_cpu_goes_on_between_ticks(self):
        """A call of some microseconds has run for what it took less the time for its probes."""
        outcome = self.trace(
            'syscall::read:entry /execname == "workload"/ { self->ran = vtimestamp; self->at = timestamp; }'
            " syscall::read:return /self->at/ { this->ran = vtimestamp - self->ran;"
            ' @["calls"] = sum(1); @["did not run"] = sum(this->ran == 0); @["ran"] = sum(this->ran);'
            ' @["ran longer than it took"] = sum(this->ran > timestamp - self->at);'
            ' @["took"] = sum(timestamp - self->at); self->at = 0; }'
            ' END { printa("<%s> %@d\\n", @); }', "workload --reads 2000", cpus=2)

        found = {name: int(number) for name, number in re.findall(r"^<(.*)> (\d+)$", outcome.stdout, re.M)}
        self.assertEqual(found["calls"], 2000, outcome)
        self.assertLess(found["did not run"], 20, outcome)
        self.assertLess(found["ran"], found["took"], outcome)
        self.assertEqual(found["ran longer than it took"], 0, outcome)

    def test_samples_beside_probes_are_of_the_guests_own_code(self):
        """A vCPU that is in the stub, or in a displaced instruction, is sampled where it came from."""
        for options in (("-x", "jumpprobes=no"), ()):
            outcome = self.trace(
                'profile-997 /arg0/ { @[func(arg0)] = count(); } fbt::vfs_*:, syscall:::entry { @n = count(); }'
                ' END { printa("sampled %a\\n", @); }', "workload --reads 60000", *options, cpus=2)

            sampled = re.findall(r"^sampled (.*)$", outcome.stdout, re.MULTILINE)
            self.assertIn("vmlinux`vfs_read", sampled, outcome)
            self.assertEqual([name for name in sampled if "`" not in name], [], outcome)

    def test_types_of_the_kernel(self):
        found = self.values(
            ("s", "stringof(args[0]->f_path.dentry->d_name.name)"),
            ("d", "args[0]->f_path.dentry->d_name.len"), ("d", "args[2]"),
            ("s", "stringof(args[0]->f_path.mnt->mnt_sb->s_type->name)"),
            ("s", "stringof(curthread->comm)"), ("d", "curthread->in_execve"),
            ("d", "curthread->mm->mm_users.counter"), ("d", "args[0]->f_inode->i_size"),
            ("d", "(args[0]->f_inode->i_mode & 0170000) == 0100000"),
            ("d", "sizeof(struct list_head)"), ("d", "offsetof(struct list_head, prev)"),
            ("s", "xlate <mine_t *> (curthread)->who"), ("d", "xlate <mine_t *> (curthread)->prio"),
            prelude="typedef struct mine { string who; int prio; } mine_t;"
            " translator mine_t < struct task_struct *T > { who = stringof(T->comm);"
            " prio = T->prio; };")

        size = found.pop(7)
        self.assertGreater(int(size), 777)
        self.assertEqual(found, ["input", "5", "777", "rootfs", "workload", "0", "1", "1", "16",
                                 "8", "workload", "120"])

    def test_return_values_and_descriptors(self):
        outcome = self.trace(
            'fbt::vfs_read:return /execname == "workload"/ { @r[args[1]] = count(); }'
            ' syscall::read:entry /execname == "workload"/ { @f[fds[arg0].fi_name,'
            " fds[arg0].fi_fs, fds[arg0].fi_oflags & 3, args[2]] = count();"
            " @o[fds[arg0].fi_offset] = count(); }"
            ' END { printa("value %d %@d\\n", @r); printa("file %s %s %d %d %@d\\n", @f);'
            ' printa("at %d %@d\\n", @o); }', "workload --reads 3 --read-size 777")

        counts = outcome.counts()
        self.assertEqual(counts["value 777"], 3, outcome)
        self.assertEqual(counts["file input rootfs 0 777"], 3, outcome)
        self.assertEqual([counts[f"at {777 * n}"] for n in range(3)], [1, 1, 1], outcome)

    def test_returns_by_a_jump_come_with_the_value_of_what_was_jumped_to(self):
        # __x64_sys_read() ends in a jump to ksys_read(). vfs_statx() returns an int.
        outcome = self.trace(
            'fbt::__x64_sys_read:entry /execname == "workload"/ { @entries = count(); }'
            ' fbt::ksys_read:return /execname == "workload"/ { self->value = arg1; }'
            ' fbt::__x64_sys_read:return /execname == "workload"/ { @returns = count();'
            ' @r[arg1, args[1], self->value] = count(); self->value = 0; }'
            ' fbt::vfs_statx:return /arg1 < 0/ { @absent[arg1, args[1]] = count(); }'
            ' END { printa("entries %@d\\n", @entries); printa("returns %@d\\n", @returns);'
            ' printa("read %d %d %d %@d\\n", @r); printa("statx %d %d %@d\\n", @absent); }',
            "workload --reads 30 --read-size 100; [ ! -e /absent ]", cpus=2)

        counts = outcome.counts()
        self.assertEqual(counts["read 100 100 100"], 30, outcome)
        self.assertEqual(counts["entries"], counts["returns"], outcome)
        self.assertGreaterEqual(counts["statx -2 -2"], 1, outcome)

    def test_print_shows_kernel_structures(self):
        outcome = self.trace(READ + " { print(args[0]->f_path.dentry->d_name); print(*curthread);"
                             " print(args[0]->f_path); print(curthread->comm); exit(0); }",
                             "workload --reads 1 --read-size 777")

        # The workload's report may come before it or after it.
        self.assertRegex(outcome.stdout, r"(?m)^struct qstr \{\n    union \{\.\.\.\} \{\n")
        self.assertRegex(outcome.stdout, r"\n            u32 len = 0x5\n")
        self.assertRegex(outcome.stdout, r"\nstruct task_struct \{\n    struct thread_info ")
        self.assertRegex(outcome.stdout, r"\n    pid_t tgid = 0x[0-9a-f]+\n")
        self.assertRegex(outcome.stdout, r"\nstruct path \{\n    struct vfsmount \*mnt = 0xf")
        self.assertIn('\nchar [16] [ "workload" ]\n', outcome.stdout)

    def test_symbols_of_the_kernel(self):
        found = self.values(
            ("s", "stringof(&`linux_banner)"), ("d", "(int)`jiffies != 0"),
            ("d", "*(unsigned long *)&`jiffies == `jiffies_64"), ("a", "(uintptr_t)&`vfs_read"),
            ("a", "(uintptr_t)&vmlinux`vfs_read + 1"), ("a", "(uintptr_t)&loop`loop_queue_rq"),
            ("a", "caller - caller"), ("s", "`linux_banner"), ("s", "`init_task.comm"),
            ("d", "`jiffies == `jiffies_64"), prelude="extern uint64_t jiffies_64;")

        self.assertTrue(found[0].startswith("Linux version 6."), found)
        self.assertEqual([found.pop(), found.pop(), found.pop()], ["1", "swapper/0", found[0]])
        self.assertEqual(found[1:], ["1", "1", "vmlinux`vfs_read", "vmlinux`vfs_read+0x1",
                                     "loop`loop_queue_rq", "0x0"])

    def test_variables_that_illumos_has(self):
        found = self.values(
            ("s", "`utsname.sysname"), ("d", "genunix`ncpus_online == `max_cpuid + 1"),
            ("d", "`hp_avenrun[2] == `avenrun[2] * 32"), ("d", "(int)`ncpus_online"),
            ("d", "`freemem > 0 && `freemem < *(long *)&`_totalram_pages"),
            ("d", "strstr(stringof(`saved_command_line), \"console=\") != NULL"))

        self.assertEqual(found[0], "Linux")
        self.assertEqual(found[3], "1")
        self.assertEqual(found[1:3] + found[4:], ["1", "1", "1", "1"])

    def test_symbols_as_keys(self):
        outcome = self.trace(READ + " { @[func(caller), mod(caller), sym((uintptr_t)&`vfs_read)] ="
                             ' count(); } END { printa("<%A|%A|%A> %@d\\n", @); }',
                             "workload --reads 20 --read-size 777")

        self.assertRegex(outcome.stdout,
                         r"<vmlinux`ksys_read *\|vmlinux *\|vmlinux`vfs_read *> 20\n")

    def test_a_loop_walks_a_list_of_the_kernel(self):
        outcome = self.trace(
            READ + " { this->head = &((struct task_struct *)&`init_task)->children;"
            " for (this->at = this->head->next; this->at != this->head;"
            " this->at = this->at->next; 50) {"
            " this->task = (struct task_struct *)((uintptr_t)this->at -"
            ' offsetof(struct task_struct, sibling)); printf("child %s %d\\n",'
            " stringof(this->task->comm), this->task->pid); } exit(0); }",
            "workload --reads 1 --read-size 777")

        self.assertEqual(re.findall(r"^child .*", outcome.stdout, re.MULTILINE),
                         ["child console 1", "child kthreadd 2"], outcome)

    def test_speculations_show_the_call_that_failed(self):
        outcome = self.trace(
            'syscall::openat:entry /progenyof($target)/ { self->s = speculation();'
            " speculate(self->s); printf(\"tried %s\\n\", copyinstr(arg1)); }"
            " syscall::openat:return /self->s && errno != 0/ { speculate(self->s);"
            ' printf("errno %d\\n", errno); }'
            " syscall::openat:return /self->s && errno != 0/ { commit(self->s); self->s = 0; }"
            " syscall::openat:return /self->s/ { discard(self->s); self->s = 0; }",
            "workload --opens 20; cat /data/missing; true", "-x", "nspec=64")

        self.assertEqual(re.findall(r"^(?:tried|errno) .*", outcome.stdout, re.MULTILINE),
                         ["tried /data/missing", "errno 2"], outcome)

    def test_what_is_written_into_a_process_is_seen_there(self):
        outcome = self.trace(
            'syscall::openat:entry /copyinstr(arg1) == "/data/missing"/'
            ' { copyoutstr("/data/input", arg1, 12); }'
            ' syscall::write:entry /arg2 == 6 && copyinstr(arg1, 6) == "hello\\n"/'
            " { this->text = (char *)alloca(2); this->text[0] = 'J'; this->text[1] = 'E';"
            " copyout(this->text, arg1, 2); }",
            "workload --opens 3 --open-path /data/missing && echo hello", "-w")

        self.assertIn("\nJEllo\n", "\n" + outcome.stdout)
        self.assertIn("rounds 1\n", outcome.stdout)

    def test_user_memory_in_three_ways(self):
        outcome = self.trace(
            'syscall::openat:entry /execname == "workload"/ { this->b = alloca(11);'
            ' copyinto(arg1, 11, this->b); printf("%s|%s|%s|%s\\n", stringof(this->b),'
            " copyinstr(arg1), copyinstr(arg1, 6), stringof(copyin(arg1, 6))); }",
            "workload --opens 2 --open-path /data/disk")

        self.assertEqual(outcome.stdout.count("/data/disk|/data/disk|/data/|/data/\n"), 2, outcome)

    def numbers(self, outcome):
        return [int(word) for word in re.findall(r"^n (\d+)$", outcome.stdout, re.MULTILINE)]

    def test_a_ring_keeps_the_last_records_and_fill_the_first(self):
        for policy in ("ring", "fill"):
            outcome = self.trace(READ + ' { printf("n %d\\n", n++); }',
                                 "workload --reads 3000 --read-size 777", "-x",
                                 f"bufpolicy={policy}", "-b", "8k")

            found = self.numbers(outcome)
            self.assertIn(len(found), range(300, 1000), outcome)
            first = 0 if policy == "fill" else 3000 - len(found)
            self.assertEqual(found, list(range(first, first + len(found))), policy)

    def test_drops_are_counted_truly(self):
        outcome = self.trace(READ + ' { printf("n %d\\n", n++); }',
                             "workload --reads 3000 --read-size 777", "-b", "1k", "-x",
                             "switchrate=5s", "-x", "statusrate=100ms")

        dropped = sum(int(word) for word in re.findall(r"(\d+) drops? on CPU 0", outcome.stderr))
        self.assertGreater(dropped, 0, outcome)
        self.assertEqual(len(self.numbers(outcome)) + dropped, 3000, outcome)

    def test_chill_loses_no_firing(self):
        outcome = self.trace(
            'syscall::getppid:entry { self->t = timestamp; chill(300000); }'
            " syscall::getppid:return /self->t/ { @n = count();"
            " @slow = sum(timestamp - self->t >= 300000); self->t = 0; }"
            ' END { printa("fired %@d\\nslow %@d\\n", @n, @slow); }',
            "workload --getppid 40 --processes 2", "-w", cpus=2)

        counts = outcome.counts()
        self.assertEqual((counts["fired"], counts["slow"]), (80, 80), outcome)

    def test_latencies_by_llquantize(self):
        outcome = self.trace(
            'fbt::vfs_read:entry /execname == "workload"/ { self->t = timestamp; }'
            " fbt::vfs_read:return /self->t/ { @ = llquantize(timestamp - self->t, 10, 0, 12, 10);"
            " self->t = 0; }", "workload --reads 200 --processes 2", cpus=2)

        self.assertEqual(sum(outcome.buckets().values()), 400, outcome)

    def test_predicates_and_sums_beyond_32_bits(self):
        outcome = self.trace(
            'fbt::vfs_read:entry /execname == "workload" && arg1 != NULL && !self->first/'
            " { self->first = timestamp; this->n = (int)arg2;"
            ' @["bytes"] = sum(this->n * 65536 * 65536); }'
            " fbt::vfs_read:return /self->first && timestamp - self->first < 600 * 1000000000/"
            ' { @soon["soon"] = count(); }',
            "workload --reads 3 --read-size 777 --processes 2")

        counts = outcome.counts()
        self.assertEqual(counts["bytes"], 2 * 777 << 32, outcome)
        self.assertEqual(counts["soon"], 6, outcome)

    def test_records_name_machine_and_vcpu(self):
        outcome = self.trace('syscall::getppid:entry { trace(pid); stack(1); }',
                             "workload --getppid 5 --processes 2", "-x", "oformat=jsonl", cpus=2)

        records = [json.loads(line) for line in outcome.stdout.splitlines() if line[:1] == "{"]
        fired = [record for record in records if record["function"] == "getppid"]
        self.assertEqual(len(fired), 10, outcome)
        self.assertLessEqual({record["cpu"] for record in fired}, {0, 1}, outcome)
        self.assertEqual({record["machine"] for record in fired}, {self.image}, outcome)
        for record in fired:
            self.assertEqual(record["output"][0]["type"], "int", record)
            self.assertEqual(record["output"][1]["stack-frames"][0]["symbol"], "do_syscall_64",
                             record)
        times = [record["timestamp"] for record in fired]
        self.assertEqual(times, sorted(times), outcome)

    def test_each_cpus_own_variables(self):
        outcome = self.trace(
            "profile-97 { @[cpu, (*(struct rq *)((uintptr_t)&`runqueues + `__per_cpu_offset[cpu]))"
            '.cpu] = count(); } END { printa("cpu %d %d %@d\\n", @); }',
            "workload --seconds 2 --processes 2 --reads 100", cpus=2)

        pairs = {name for name in outcome.counts() if name.startswith("cpu ")}
        self.assertEqual(pairs, {"cpu 0 0", "cpu 1 1"}, outcome)

        refused = ringside.run("BEGIN { trace(`runqueues.cpu); }", image=self.image)
        self.assertIn("each CPU has its own `runqueues: the one of the CPU that fires is "
                      "*(struct rq *)((uintptr_t)&`runqueues + `__per_cpu_offset[cpu])",
                      refused.stderr)

    def test_structured_output_has_types_and_frames_at_every_kind_of_probe(self):
        outcome = self.trace(
            'fbt::do_filp_open:return /execname == "workload"/'
            " { print(args[1]->f_path.dentry->d_name.len); print((enum pid_type)1); stack(2); }"
            ' sdt:sched::sched_process_exit /execname == "workload"/ { stack(2); }',
            "workload --reads 1 --opens 1", "-x", "oformat=jsonl")

        records = [json.loads(line) for line in outcome.stdout.splitlines() if line[:1] == "{"]
        by_probe = {record.get("name"): record["output"] for record in records}
        length, kind, stack = by_probe["return"]
        self.assertGreater(length["value"], 0, outcome)
        self.assertEqual(kind, {"type": "enum pid_type", "value": "PIDTYPE_TGID"})
        for frames, function in ((stack["stack-frames"], "do_sys_openat2"),
                                 (by_probe["sched_process_exit"][0]["stack-frames"], "do_exit")):
            self.assertEqual(frames[0]["module"], "vmlinux", outcome)
            self.assertEqual(frames[0]["symbol"], function, outcome)
            self.assertGreater(frames[0]["offset"], 0, outcome)

    def test_what_cannot_be_done_to_a_guest_is_refused_with_its_reason(self):
        for action, reason in (("panic()", "panic"), ("raise(9)", "signals"),
                               ("stop()", "signals"), ("breakpoint()", "debug")):
            outcome = ringside.run(READ + f" {{ {action}; }}", image=self.image,
                                   command="workload --reads 1", options=("-w",))

            self.assertEqual(outcome.status, 1, outcome)
            self.assertIn("could not enable tracing: ", outcome.stderr)
            self.assertIn(reason, outcome.stderr)
            self.assertNotIn("rounds", outcome.stdout, outcome)


globals().update(ringside.on_each(Language))

if __name__ == "__main__":
    unittest.main()
