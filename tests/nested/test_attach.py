"""VMs that somebody else started, attached to by their processes: QEMU without a monitor and our own
VMM, each a stranger's process beside ringside, under a genuine KVM."""

import json
import re
import unittest

import nested

RINGSIDE = "/ringside/ringside"
# Shell functions in level 1. A guest reads lines from its console: a number, N, is answered with N
# reads of 7 bytes, which nobody else makes, and "done N", and "u" with "up".
LIBRARY = r"""
cd /tmp
R=/ringside/ringside
qemu() {  # NAME IMAGE PROGRAM ARGUMENTS...: a QEMU with a guest
    name=$1 image=/ringside/images/$2 program=/ringside/qemu/$3
    shift 3
    rm -f $name.in $name.out $name.txt
    mkfifo $name.in $name.out
    : >$name.txt
    setsid cat $name.out >>$name.txt &
    setsid sh -c "exec 3>$name.in; exec sleep 100000" &
    echo $! >$name.feeder
    loop='while read n; do case $n in [1-9]*) dd if=/dev/zero of=/dev/null bs=7 count=$n 2>/dev/null; echo done $n;;'
    loop="$loop u) echo up;; +*) mount -t sysfs s /sys; until echo 1 >/sys/devices/system/\${n#+}/online; do sleep 0.2; done; echo done \$n;;"
    loop="$loop s) mount -t sysfs s /sys; echo mem >/sys/power/state; echo done s;; esac; done"
    setsid $program -L /ringside/qemu -name $name -accel kvm -nodefaults -no-user-config -display none \
        -chardev pipe,id=c,path=/tmp/$name -serial chardev:c -kernel $image/vmlinuz \
        -initrd $image/initrd -append "console=ttyS0 quiet panic=-1 no_timer_check ${append:-} rdinit=/bin/sh -- -c \"mount -t devtmpfs d /dev; exec </dev/ttyS0 >/dev/ttyS0 2>&1; stty -echo -icrnl; echo up; $loop\"" \
        "$@" >$name.log 2>&1 </dev/null &
    echo $! >$name.pid
    until grep -q up $name.txt; do
        kill -0 $(cat $name.pid) || { cat $name.log; exit 9; }
        sleep 0.5
        # Asks one that has been up before, until it answers: a load takes away what came too early. One that
        # boots says so by itself: where characters came while it booted, its console was deaf from then on in
        # many boots. (Its CPUs were halted then. That the UART's interrupt had no edge any more is a guess.)
        [ -z "${is_loaded:-}" ] || echo u >$name.in &
    done
}
own() {  # NAME IMAGE CPUS: our own VMM with a guest
    name=$1
    rm -f $name.in $name.txt
    mkfifo $name.in
    : >$name.txt
    setsid sh -c "exec 3>$name.in; exec sleep 100000" &
    echo $! >$name.feeder
    loop='while read n <&4; do case $n in [1-9]*) dd if=/dev/zero of=/dev/null bs=7 count=$n 2>/dev/null; echo done $n >/dev/hvc0;; esac; done'
    setsid $R --machine kvm --image $2 --cpus $3 --console -x bootargs=console=hvc0 -qn 'BEGIN { }' \
        -c "exec 4</dev/hvc0; stty -echo -icrnl <&4; echo up >/dev/hvc0; $loop" <$name.in >$name.log 2>>$name.txt &
    echo $! >$name.pid
    until grep -q up $name.txt; do kill -0 $(cat $name.pid) || { cat $name.log $name.txt; exit 9; }; sleep 0.5; done
}
attach() {  # TRACE PROGRAM TARGETS...: a ringside that has armed its probes
    trace=$1 program=$2
    shift 2
    rm -f $trace.out $trace.err
    : >$trace.err
    $R "$@" -x debug -qn "$program" >$trace.out 2>>$trace.err &
    echo $! >$trace.pid
    until grep -q armed $trace.err; do kill -0 $(cat $trace.pid) || { cat $trace.err; exit 8; }; sleep 0.2; done
}
work() {  # NAME N: N reads of the guest's, to their end
    before=$(grep -c "done $2" $1.txt)
    echo $2 >$1.in
    until [ $(grep -c "done $2" $1.txt) -gt $before ]; do kill -0 $(cat $1.pid) || exit 7; sleep 0.2; done
}
detach() {  # TRACE: its end and its output
    kill -INT $(cat $1.pid)
    wait $(cat $1.pid) || { cat $1.err; exit 6; }
    cat $1.out
}
gone() {  # NAME: ends a VM
    kill -9 $(cat $1.pid) $(cat $1.feeder)
    while kill -0 $(cat $1.pid) 2>/dev/null && ! grep -q '^State:.Z' /proc/$(cat $1.pid)/status; do sleep 0.2; done
}
"""
COUNT = ('fbt::vfs_read:entry /arg2 == 7/ { self->in = 1; @in = count(); }'
         ' fbt::vfs_read:return /self->in/ { self->in = 0; @out = count(); }'
         ' END { printa("<reads %@d>\\n", @in); printa("<returns %@d>\\n", @out); }')
# Prints the bytes in the text of vfs_read and in the kernel's gate for breakpoints.
BYTES = ('BEGIN { printf("<%x %x %x>\\n", *(uint64_t *)&`vfs_read, *((uint64_t *)&`vfs_read + 1),'
         ' *((uint64_t *)&`idt_table + 6)); exit(0); }')
PC = "qemu-system-x86_64 -M pc"
MICROVM = "qemu-system-x86_64-microvm -M microvm"


# Pipes for the monitor of a guest, which takes what is written into mon.in.
MONITOR = """rm -f mon.in mon.out
            mkfifo mon.in mon.out
            setsid cat mon.out >/dev/null &
            setsid sh -c 'exec 3>mon.in; exec sleep 100000' &
            echo $! >mon.feeder"""


class Attached(nested.TestCase):
    def shell(self, script, status=0):
        """The outcome of a script with the functions above."""
        return self.run_in_level1(f"{LIBRARY}\n{script}", status=status)

    def tearDown(self):
        if not nested.level1().lost:
            self.shell("for f in *.pid *.feeder; do [ -e $f ] && kill -9 $(cat $f) 2>/dev/null; done;"
                       " rm -f *.pid *.feeder; true")

    def check_exact(self, start, target="pid:$(cat vm.pid)"):
        """Twice in a row every read is recorded and counted, and in between nothing is left in text and gate."""
        outcome = self.shell(f"""
            {start}
            t={target}
            $R --attach $t -qn '{BYTES}' >before
            for n in 3000 500; do
                attach trace '{COUNT}' -v -x record=yes --attach $t
                work vm $n
                detach trace
                grep -o '[0-9]* recorded' trace.err
                $R --attach $t -qn '{BYTES}' >after
                cmp before after || exit 5
            done
            cat before
            work vm 9
            $R vms -O json""")

        self.assertEqual(re.findall(r"<(\w+) (\d+)>", outcome.stdout),
                         [("reads", "3000"), ("returns", "3000"), ("reads", "500"),
                          ("returns", "500")], outcome)
        # Some wait where a ring was full.
        records = [int(count) for count in re.findall(r"^(\d+) recorded$", outcome.stdout, re.MULTILINE)]
        self.assertGreater(records[0], 3000, outcome)
        self.assertGreater(records[1], 500, outcome)
        self.assertRegex(outcome.stdout, r"<[0-9a-f]+ [0-9a-f]+ [0-9a-f]+>", outcome)
        self.assertIn('"ours": null', outcome.stdout, outcome)

    def test_qemu_with_a_pc(self):
        self.check_exact(f"qemu vm debian-6.1 {PC} -m 512")

    def test_qemu_with_a_pc_whose_memory_reaches_above_4_gib(self):
        self.check_exact("echo 1 >/proc/sys/vm/overcommit_memory;"
                         f" qemu vm debian-6.12 {PC} -m 5120")

    def test_qemu_with_a_microvm_of_two_cpus(self):
        self.check_exact(f"qemu vm debian-6.12 {MICROVM} -smp 2 -m 400")

    def test_qemu_whose_guest_isolates_its_page_tables(self):
        self.check_exact(f"append=pti=on; qemu vm debian-6.12 {PC} -smp 2 -m 384")

    def test_qemu_whose_memory_is_a_file(self):
        self.check_exact(f"qemu vm debian-6.1 {PC} -smp 2 -m 384"
                         " -object memory-backend-memfd,id=m,size=384M -machine memory-backend=m")

    def test_qemu_whose_microvm_comes_from_a_snapshot(self):
        machine = f"qemu vm debian-6.1 {MICROVM} -smp 2 -m 384"
        self.check_exact(f"""
            rm -f monitor.*; mkfifo monitor.in monitor.out; setsid cat monitor.out >monitor.txt &
            {machine} -chardev pipe,id=m,path=/tmp/monitor -mon m
            work vm 5
            echo 'migrate "exec:cat >/tmp/vm.state"' >monitor.in
            echo quit >monitor.in
            wait $(cat vm.pid)
            kill $(cat vm.feeder)
            is_loaded=yes; {machine} -incoming "exec:cat /tmp/vm.state"
            rm vm.state""")

    def test_qemu_by_its_monitor(self):
        self.check_exact(f"qemu vm debian-6.12 {PC} -smp 2 -m 384"
                         " -qmp unix:/tmp/vm.qmp,server=on,wait=off", "qmp:/tmp/vm.qmp")

    def test_qemu_by_its_monitor_with_a_card(self):
        self.check_exact(f"qemu vm debian-6.1 {PC} -smp 2 -m 384"
                         " -qmp unix:/tmp/vm.qmp,server=on,wait=off", "qmp:/tmp/vm.qmp,ivshmem")

    def test_our_own_vmm_with_two_cpus(self):
        self.check_exact("own vm debian-6.1 2")

    def test_two_machines_under_one_program(self):
        outcome = self.shell(f"""
            qemu one debian-6.1 {PC} -m 384
            qemu two debian-6.12 {PC} -m 384
            $R vms -O json
            attach trace 'fbt::vfs_read:entry /arg2 == 7/ {{ @[vmname] = count(); }}
                END {{ printa("<%s %@d>\\n", @); }}' \\
                --attach pid:$(cat one.pid) --attach pid:$(cat two.pid),name=second
            work one 300
            work two 400
            detach trace""")

        vms = json.JSONDecoder().raw_decode(outcome.stdout[outcome.stdout.index("["):])[0]
        self.assertEqual([(vm["name"], vm["vmm"], vm["accelerator"], vm["state"], vm["vcpus"],
                           vm["ours"], vm["attach"]) for vm in vms],
                         [(name, "qemu", "kvm", "running", 1, None, f"pid:{vm['pid']}")
                          for name, vm in zip(("one", "two"), vms)], outcome)
        self.assertRegex(vms[0]["kernel"], r"^6\.1\.")
        self.assertRegex(vms[1]["kernel"], r"^6\.12\.")
        self.assertEqual(sorted(set(re.findall(r"<(\w+) (\d+)>", outcome.stdout))),
                         [("one", "300"), ("second", "400")], outcome)

    def test_what_is_plugged_in_meanwhile_is_noticed(self):
        """A CPU: its reads are counted, its vCPU is paused like the others. Memory: it is told."""
        outcome = self.shell(f"""
            {MONITOR}
            qemu vm debian-6.1 {PC} -smp 1,maxcpus=2,sockets=2 -m 384,slots=2,maxmem=1G \\
                -chardev pipe,id=m,path=/tmp/mon -mon chardev=m,mode=readline
            $R --attach pid:$(cat vm.pid) -qn '{BYTES}' >before
            attach trace '{COUNT} profile-1 {{ @[cpu] = count(); }} END {{ printa("<cpu %d %@d>\\n", @); }}' \\
                --attach pid:$(cat vm.pid)
            work vm 100
            echo "device_add qemu64-x86_64-cpu,id=c1,socket-id=1,core-id=0,thread-id=0" >mon.in
            sleep 3
            work vm +cpu/cpu1
            until grep -q 'vCPUs by now' trace.err; do sleep 0.2; done
            echo "object_add memory-backend-ram,id=m1,size=128M" >mon.in
            echo "device_add pc-dimm,id=d1,memdev=m1" >mon.in
            sleep 3
            work vm +memory/memory32
            until grep -q 'memory was plugged' trace.err; do sleep 0.2; done
            for n in 201 202 203 204; do work vm $n; done
            detach trace
            grep 'by now\\|plugged' trace.err
            $R --attach pid:$(cat vm.pid) -qn '{BYTES}' >after 2>again
            cat again
            work vm 9""")

        self.assertEqual(re.findall(r"<(reads|returns) (\d+)>", outcome.stdout),
                         [("reads", "910"), ("returns", "910")], outcome)
        self.assertEqual(re.findall(r"<cpu (\d+) ", outcome.stdout), ["0"], outcome)
        self.assertIn("it has 2 vCPUs by now: the new ones are traced, and not sampled", outcome.stdout)
        self.assertIn("memory was plugged into it", outcome.stdout)

    def test_what_is_unplugged_meanwhile_is_left_alone(self):
        """A CPU goes, comes again and goes while the guest is traced: counts are exact, and all of ours is
        taken out each time. QEMU keeps the descriptor of its vCPU."""
        outcome = self.shell(f"""
            {MONITOR}
            cpu() {{ echo "qemu64-x86_64-cpu,id=c$1,socket-id=$1,core-id=0,thread-id=0"; }}
            qemu vm debian-6.1 {PC} -smp 1,maxcpus=3,sockets=3 -m 384 -device $(cpu 1) -device $(cpu 2) \\
                -chardev pipe,id=m,path=/tmp/mon -mon chardev=m,mode=readline
            t=pid:$(cat vm.pid)
            vcpus() {{ grep -c kvm-vcpu: /proc/$(cat vm.pid)/maps; }}
            unplug() {{
                until [ $(vcpus) = $2 ]; do echo "device_del c$1" >mon.in; sleep 2; done
            }}
            [ $(vcpus) = 3 ] || exit 4
            $R --attach $t -qn '{BYTES}' >before
            attach trace '{COUNT}' --attach $t
            work vm 101
            unplug 1 2
            work vm 102
            echo "device_add $(cpu 1)" >mon.in
            work vm +cpu/cpu1
            work vm 103
            unplug 2 2
            work vm 104
            detach trace
            cat trace.err >again
            $R --attach $t -qn '{BYTES}' >after 2>>again
            cmp before after || exit 5
            grep -v armed again
            attach trace '{COUNT}' --attach $t
            work vm 50
            detach trace
            $R why $t -O jsonl
            $R vms -O json
            $R clean $t 2>&1
            work vm 9""")

        self.assertEqual(re.findall(r"<(reads|returns) (\d+)>", outcome.stdout),
                         [("reads", "410"), ("returns", "410"), ("reads", "50"), ("returns", "50")], outcome)
        self.assertNotIn("stay", outcome.stdout, outcome)
        why = json.loads(re.search(r"^\{\"why\".*\}$", outcome.stdout, re.MULTILINE)[0])["why"]
        self.assertEqual(len(why["vcpus"]), 2, outcome)
        self.assertIn('"vcpus": 2', outcome.stdout, outcome)
        self.assertIn("nothing of an earlier ringside", outcome.stdout, outcome)

    def test_a_guest_that_sleeps_records_before_and_after(self):
        """Its TSCs begin anew when it wakes up."""
        outcome = self.shell(f"""
            {MONITOR}
            qemu vm debian-6.1 {PC} -smp 2 -m 384 -chardev pipe,id=m,path=/tmp/mon -mon chardev=m,mode=readline
            $R --attach pid:$(cat vm.pid) -qn '{BYTES}' >before
            attach trace '{COUNT} tick-1s {{ printa("<now %@d>\\n", @in); }}' -v -x record=yes --attach pid:$(cat vm.pid)
            work vm 300
            echo s >vm.in
            until grep -q "done s" vm.txt; do echo system_wakeup >mon.in; sleep 1; done
            work vm 400
            work vm 500
            until grep -q 'now 1200' trace.out; do sleep 0.2; done
            detach trace
            cat trace.err
            $R --attach pid:$(cat vm.pid) -qn '{BYTES}' >after 2>&1
            cmp before after || exit 5
            work vm 9""")

        self.assertEqual(re.findall(r"<(reads|returns) (\d+)>", outcome.stdout),
                         [("reads", "1200"), ("returns", "1200")], outcome)

    def test_registers_are_read_in_pauses(self):
        outcome = self.shell(f"""
            qemu vm debian-6.1 {PC} -smp 2 -m 384
            attach trace 'profile-97 {{ @[cpu, execname] = count(); }}
                END {{ printa("<%d %s %@d>\\n", @); }}' --attach pid:$(cat vm.pid)
            echo 3000000 >vm.in
            sleep 3
            detach trace""")

        samples = re.findall(r"<(\d) (\S+) (\d+)>", outcome.stdout)
        self.assertEqual({cpu for cpu, _, _ in samples}, {"0", "1"}, outcome)
        self.assertIn("dd", {name for _, name, _ in samples}, outcome)

    def check_snapshot(self, start, release):
        """A file is the guest of a firing, with the registers of all vCPUs; the guest goes on."""
        outcome = self.shell(f"""
            {start}
            attach trace 'fbt::vfs_read:entry /arg2 == 7/ {{ @ = count(); ++n; }}
                fbt::vfs_read:entry /arg2 == 7 && n == 100/ {{
                    printf("<at %x %d %s %d>\\n", (uint64_t)curthread, pid, execname, cpu);
                    snapshot("/tmp/vm.core"); }}
                END {{ printa("<reads %@d>\\n", @); }}' -w --attach pid:$(cat vm.pid)
            work vm 300
            detach trace
            task=$(sed -n 's/^<at \\([0-9a-f]*\\) .*/\\1/p' trace.out)
            $R --core vm.core -qn 'BEGIN {{ t = (struct task_struct *)0x'$task';
                printf("<core %x %d %s>\\n", (uint64_t)t, t->tgid, stringof(t->comm)); exit(0); }}'
            echo '<why>'
            $R why --core vm.core -O jsonl
            rm vm.core
            work vm 9""")

        task, pid, name, cpu = re.search(r"<at (\w+) (\d+) (\S+) (\d+)>", outcome.stdout).groups()
        self.assertEqual(name, "dd", outcome)
        self.assertIn("<reads 300>", outcome.stdout, outcome)
        self.assertIn(f"<core {task} {pid} {name}>", outcome.stdout, outcome)
        tree = json.loads(re.search(r"^<why>\n(\{.*\})$", outcome.stdout, re.MULTILINE)[1])["why"]
        self.assertTrue(tree["release"].startswith(release), outcome)
        self.assertEqual(sorted(vcpu["cpu"] for vcpu in tree["vcpus"]),
                         [cpu["cpu"] for cpu in tree["cpus"]], outcome)
        self.assertEqual(tree["cpus"][int(cpu)]["running"]["pid"], int(pid), outcome)

    def test_snapshot_of_a_qemu(self):
        self.check_snapshot(f"qemu vm debian-6.12 {PC} -smp 2 -m 384", "6.12.")

    def test_snapshot_of_our_own_vmm(self):
        self.check_snapshot("own vm debian-6.1 2", "6.1.")

    def test_snapshot_of_a_guest_that_ringside_starts(self):
        outcome = self.shell("""
            $R --machine kvm --image debian-6.1 --cpus 2 -qwn 'syscall::read:entry
                /execname == "workload" && ++n == 100/ { printf("<at %d %d>\\n", pid, cpu);
                snapshot("/tmp/vm.core"); }' -c 'workload --reads 500'
            echo '<why>'
            $R why --core vm.core -O jsonl
            rm vm.core""")

        pid, cpu = map(int, re.search(r"<at (\d+) (\d+)>", outcome.stdout).groups())
        self.assertIn("read 500\n", outcome.stdout, outcome)
        tree = json.loads(re.search(r"^<why>\n(\{.*\})$", outcome.stdout, re.MULTILINE)[1])["why"]
        self.assertEqual(sorted(vcpu["cpu"] for vcpu in tree["vcpus"]), [0, 1], outcome)
        self.assertEqual(tree["cpus"][cpu]["running"]["pid"], pid, outcome)

    def check_why(self, start):
        """A guest that spins is looked at by its process, also when it is stopped and beside a tracer."""
        outcome = self.shell(f"""
            {start}
            echo 99999999 >vm.in
            sleep 2
            say() {{ echo "<$1>"; $R why pid:$(cat vm.pid) -O jsonl || exit 4; }}
            say alone
            kill -STOP $(cat vm.pid)
            say stopped
            kill -CONT $(cat vm.pid)
            attach trace 'tick-10hz {{ }}' --attach pid:$(cat vm.pid)
            say traced
            detach trace""")

        said = re.findall(r"^<(\w+)>\n(\{.*\})$", outcome.stdout, re.MULTILINE)
        trees = {name: json.loads(tree)["why"] for name, tree in said}
        self.assertEqual(set(trees), {"alone", "stopped", "traced"}, outcome)
        for name, tree in trees.items():
            running = [cpu["running"]["name"] for cpu in tree["cpus"]]
            self.assertIn("dd", running, (name, outcome))
        alone = trees["alone"]
        self.assertEqual(alone["not_known"], [], outcome)
        self.assertEqual(sorted(vcpu["cpu"] for vcpu in alone["vcpus"]),
                         [cpu["cpu"] for cpu in alone["cpus"]], outcome)
        self.assertEqual(trees["stopped"]["causes"][0]["kind"], "stopped", outcome)
        self.assertIn("one at a time", " ".join(trees["traced"]["not_known"]), outcome)

    def test_why_of_a_qemu(self):
        self.check_why(f"qemu vm debian-6.12 {PC} -smp 2 -m 384")

    def test_why_of_our_own_vmm(self):
        self.check_why("own vm debian-6.1 1")

    def test_a_guest_goes_on_when_ringside_is_killed(self):
        outcome = self.shell(f"""
            qemu vm debian-6.1 {PC} -smp 2 -m 384
            t=pid:$(cat vm.pid)
            for by in clean attach; do
                attach trace '{COUNT} profile-997 {{ }}' --attach $t
                work vm 100
                kill -9 $(cat trace.pid)
                wait $(cat trace.pid)
                work vm 2000
                [ $by = attach ] || $R clean $t 2>&1
            done
            attach again '{COUNT}' --attach $t
            work vm 300
            detach again
            cat again.err
            $R clean $t 2>&1""")

        left = re.findall(r"did not end well: \d+ breakpoints and \d+ pages of it were taken out", outcome.stdout)
        self.assertEqual(len(left), 2, outcome)
        self.assertEqual(re.findall(r"<(\w+) (\d+)>", outcome.stdout),
                         [("reads", "300"), ("returns", "300")], outcome)
        self.assertIn("nothing of an earlier ringside", outcome.stdout.splitlines()[-1], outcome)

    def test_the_end_of_a_machine_ends_tracing(self):
        outcome = self.shell(f"""
            qemu vm debian-6.1 {PC} -m 384
            attach trace '{COUNT}' --attach pid:$(cat vm.pid)
            work vm 100
            gone vm
            wait $(cat trace.pid)
            echo "<status $?>"
            cat trace.out trace.err""")

        self.assertEqual(re.findall(r"<(\w+) (\d+)>", outcome.stdout),
                         [("status", "1"), ("reads", "100"), ("returns", "100")], outcome)
        self.assertIn("tracing ended: its process has ended", outcome.stdout, outcome)

    def test_what_is_not_fit_is_refused_in_one_line(self):
        outcome = self.shell(f"""
            qemu vm debian-6.1 {PC} -m 384
            p=$(cat vm.pid)
            refused() {{ $R --attach $1 -n 'BEGIN {{ exit(0); }}' 2>&1 && exit 4; }}
            refused pid:999999
            refused pid:1
            attach first 'tick-1s {{ }}' --attach pid:$p
            refused pid:$p
            detach first
            kill -STOP $p
            refused pid:$p
            kill -CONT $p
            mkdir -p /etc
            echo other:x:1234:1234::/:/bin/sh >/etc/passwd
            su other -s /bin/sh -c "$R --attach pid:$p -n 'BEGIN {{ exit(0); }}'" 2>&1
            work vm 9""")

        for words in ("there is no process 999999", r"process 1 \(.*\) runs no virtual machine",
                      r"is already attached to by process \d+ \(ringside\)", "is stopped",
                      "it is user .*; be that user or root"):
            self.assertRegex(outcome.stdout, words, outcome)


if __name__ == "__main__":
    unittest.main()
