"""Static tracepoints: every firing is one event, by the guest's own count, with its arguments.

The guest counts events with hist triggers of its tracefs, which switches the tracepoints on; ringside
counts the same ones from outside, on, off and while they are switched.
"""

import re
import unittest

import guest
import ringside
from guest import NO_NAMES
from test_attach_qmp import Machine

# "offload" works with everything off, "switched" while events are switched on and off, and what
# "workload" does the guest counts, too: all events but those of system calls, which have no static
# tracepoints of their own, and of what the guest has not got.
COUNT = NO_NAMES + r"""
cd /sys/kernel/tracing/events
run() { for options in "--reads 20 --processes 2 --threads 2 --tcp 3" "--file /dev/loop0 --direct --reads 10"
        do "$1" $options >/dev/null; done; }
cp /bin/workload /tmp/offload; cp /bin/workload /tmp/switched; PATH=$PATH:/tmp
run offload
run switched & work=$!
while kill -0 $work 2>/dev/null; do
  for event in %(switched)s; do echo 1 >$event/enable; done
  for event in %(switched)s; do echo 0 >$event/enable; done
done
wait
%(on)s
run workload
echo "<hits>"
%(counts)s
echo "</hits>"
dmesg
"""
# How the guest counts: the command that switches it on, and the one that prints "GROUP/NAME COUNT".
ELSEWHERE = "syscalls/*|raw_syscalls/*|ftrace/*|xen/*|ext4/*|jbd2/*|hyperv/*|nvme/*|fs_dax/*|xdp/*|rtc/*"
HISTS = {
    "on": f"""
for event in */*/hist; do
  case $event in {ELSEWHERE}) ;;
  *) echo 'hist:keys=common_pid:size=128 if COMM == "workload"' >${{event%hist}}trigger;; esac
done 2>/dev/null""",
    "counts": "grep -H 'Hits: [^0]' */*/hist | sed 's,/hist: *Hits:,,'"}
# Where the kernel has no hist triggers.
LINES = {
    "on": f"""
echo 16384 >../buffer_size_kb; echo >../trace
for event in */*/format; do
  case $event in {ELSEWHERE}) ;;
  *) echo 'COMM == "workload"' >${{event%format}}filter; echo 1 >${{event%format}}enable;; esac
done 2>/dev/null""",
    "counts": r"""
for event in */*/format; do echo ${event%/format}; done | awk -F/ '
  NR == FNR { group[$2] = $1; next }
  match($0, /[0-9]\.[0-9]+: [a-zA-Z0-9_]+:/) {
    name = substr($0, RSTART, RLENGTH - 1); sub(/.* /, "", name); count[name]++ }
  END { for (name in count) print group[name] "/" name, count[name] }' - ../trace"""}
# A program does these in the same way each time, however it is scheduled.
STEADY = ("sched/sched_process_exec", "sched/sched_process_fork", "sched/sched_process_exit",
          "task/task_newtask", "block/block_bio_queue")
PROGRAM = """
sdt::: /execname == "workload"/ { @[strjoin(probemod, strjoin("/", probename))] = count(); }
sdt::: /execname == "offload"/ { @off[strjoin(probemod, strjoin("/", probename))] = count(); }
sdt::: /execname == "switched"/ { @switched[strjoin(probemod, strjoin("/", probename))] = count(); }
END { printf("<ours>\\n"); printa("%s %@d\\n", @); printf("</ours>\\n<off>\\n");
      printa("%s %@d\\n", @off); printf("</off>\\n<switched>\\n");
      printa("%s %@d\\n", @switched); printf("</switched>\\n"); }
"""

# Of every tracepoint the fields of the guest's event, three at most, and what they are made of.
ARGUMENTS = r"""
block/block_bio_queue sector: args[0]->bi_iter.bi_sector; nr_sector: args[0]->bi_iter.bi_size >> 9
block/block_getrq sector: args[0]->bi_iter.bi_sector; nr_sector: args[0]->bi_iter.bi_size >> 9
block/block_rq_issue sector: args[0]->__sector; bytes: args[0]->__data_len
fib/fib_table_lookup tb_id: args[0]; oif: args[1]->__fl_common.flowic_oif; err: args[3]
filemap/mm_filemap_delete_from_page_cache index: args[0]->index; i_ino: args[0]->mapping->host->i_ino
irq/softirq_entry vec: args[0]
irq/softirq_exit vec: args[0]
irq/softirq_raise vec: args[0]
irq_vectors/local_timer_entry vector: args[0]
irq_vectors/local_timer_exit vector: args[0]
kmem/kfree call_site: args[0]
kmem/kmalloc bytes_req: args[2]; bytes_alloc: args[3]; gfp_flags: args[4]
kmem/kmem_cache_alloc bytes_req: args[2]->object_size; bytes_alloc: args[2]->size; gfp_flags: args[3]
kmem/kmem_cache_free call_site: args[0]; name: stringof(args[2]->name)
kmem/mm_page_alloc order: args[1]; gfp_flags: args[2]; migratetype: args[3]
kmem/mm_page_alloc_zone_locked order: args[1]; migratetype: args[2]; percpu_refill: args[3]
kmem/rss_stat member: args[1]; curr: args[0] == curthread->mm
lock/contention_begin flags: args[1]
lock/contention_end ret: args[1]
maple_tree/ma_op fn: args[0]; index: args[1]->index; last: args[1]->last
maple_tree/ma_read fn: args[0]; index: args[1]->index; last: args[1]->last
maple_tree/ma_write fn: args[0]; index: args[1]->index; piv: args[2]
mmap/exit_mmap mm: args[0]
mmap/vm_unmapped_area addr: args[0]; flags: args[1]->flags; length: args[1]->length
module/module_get name: stringof(args[0]->name); refcnt: args[0]->refcnt.counter
module/module_put name: stringof(args[0]->name); refcnt: args[0]->refcnt.counter
napi/napi_poll work: args[1]; budget: args[2]
neigh/neigh_create family: args[0]->family; created: args[3] != NULL; gc_exempt: args[4]
net/net_dev_queue name: stringof(args[0]->dev->name); len: args[0]->len
net/net_dev_start_xmit name: stringof(args[1]->name); len: args[0]->len; protocol: ntohs(args[0]->protocol)
net/net_dev_xmit name: stringof(args[2]->name); rc: args[1]; len: args[3]
net/netif_receive_skb name: stringof(args[0]->dev->name); len: args[0]->len
net/netif_rx_entry len: args[0]->len; truesize: args[0]->truesize; napi_id: args[0]->napi_id
net/netif_rx_exit ret: args[0]
oom/oom_score_adj_update pid: args[0]->pid; oom_score_adj: args[0]->signal->oom_score_adj
rcu/rcu_utilization s: args[0]
sched/sched_migrate_task pid: args[0]->pid; orig_cpu: args[0]->thread_info.cpu; dest_cpu: args[1]
sched/sched_process_exec filename: stringof(args[2]->filename); pid: args[0]->pid; old_pid: args[1]
sched/sched_process_exit pid: args[0]->pid; prio: args[0]->prio
sched/sched_process_fork parent_pid: args[0]->pid; child_pid: args[1]->pid
sched/sched_process_free comm: stringof(args[0]->comm); pid: args[0]->pid; prio: args[0]->prio
sched/sched_process_wait pid: args[0]->numbers[0].nr
sched/sched_stat_runtime pid: args[0]->pid; runtime: args[1]
sched/sched_switch prev_pid: args[1]->pid; next_pid: args[2]->pid; next_prio: args[2]->prio
sched/sched_wakeup pid: args[0]->pid; prio: args[0]->prio; target_cpu: args[0]->thread_info.cpu
sched/sched_wakeup_new pid: args[0]->pid; prio: args[0]->prio; target_cpu: args[0]->thread_info.cpu
sched/sched_waking comm: stringof(args[0]->comm); pid: args[0]->pid; prio: args[0]->prio
signal/signal_deliver sig: args[0]; sa_flags: args[2]->sa.sa_flags
signal/signal_generate sig: args[0]; group: args[3]; result: args[4]
skb/consume_skb skbaddr: args[0]
skb/kfree_skb protocol: ntohs(args[0]->protocol); location: args[1]; reason: args[2]
skb/skb_copy_datagram_iovec len: args[1]
sock/inet_sock_set_state oldstate: args[1]; newstate: args[2]; family: args[0]->__sk_common.skc_family
task/task_newtask clone_flags: args[1]; oom_score_adj: args[0]->signal->oom_score_adj
task/task_rename oldcomm: stringof(args[0]->comm); newcomm: stringof(args[1])
tcp/tcp_cong_state_set dport: ntohs(args[0]->__sk_common.skc_dport); cong_state: args[1]
tcp/tcp_destroy_sock sport: ntohs(((struct inet_sock *)args[0])->inet_sport); dport: ntohs(args[0]->__sk_common.skc_dport)
tcp/tcp_probe snd_cwnd: ((struct tcp_sock *)args[0])->snd_cwnd; family: args[0]->__sk_common.skc_family
timer/hrtimer_expire_entry hrtimer: args[0]; function: args[0]->function; now: *args[1]
timer/hrtimer_init clockid: args[1]; mode: args[2]
timer/hrtimer_start function: args[0]->function; mode: args[1]; softexpires: args[0]->_softexpires
timer/itimer_state which: args[0]; value_sec: args[1]->it_value.tv_sec
timer/timer_cancel timer: args[0]
timer/timer_expire_entry function: args[0]->function; baseclk: args[1]
timer/timer_init timer: args[0]
timer/timer_start function: args[0]->function; expires: args[0]->expires
tlb/tlb_flush reason: args[0]; pages: args[1]
workqueue/workqueue_activate_work work: args[0]
workqueue/workqueue_queue_work workqueue: stringof(args[1]->wq->name); req_cpu: args[0]; function: args[2]->func
writeback/writeback_dirty_inode_start ino: args[0]->i_ino; state: args[0]->i_state; flags: args[1]
writeback/writeback_mark_inode_dirty ino: args[0]->i_ino; state: args[0]->i_state; flags: args[1]
x86_fpu/x86_fpu_regs_activated fpu: args[0]
x86_fpu/x86_fpu_regs_deactivated fpu: args[0]
"""
# Those that one kernel has, or has with more.
ARGUMENTS_OF = {
    "debian-6.1": r"""
kmem/mm_page_free order: args[1]
kmem/rss_stat member: args[1]; curr: args[0] == curthread->mm; size: args[2] << 12
""",
    "debian-6.12": r"""
block/block_io_start sector: args[0]->__sector; bytes: args[0]->__data_len
filemap/mm_filemap_map_pages index: args[1]; last_index: args[2]; i_ino: args[0]->host->i_ino
skb/consume_skb skbaddr: args[0]; location: args[1]
skb/kfree_skb location: args[1]; reason: args[2]; rx_sk: args[3]
sock/sk_data_ready family: args[0]->__sk_common.skc_family; protocol: args[0]->sk_protocol
vmalloc/alloc_vmap_area addr: args[0]; size: args[1]; align: args[2]
"""}
# Of the process by whose name both sides choose: a shell that takes it, and ping under that name.
ACTS = r"""
workload --reads 20 --writes 20 --processes 2 --threads 2 --tcp 3 >/dev/null
workload --file /dev/loop0 --direct --reads 10 >/dev/null
sh -c 'echo workload >/proc/self/comm; trap : USR1; kill -USR1 $$; echo 7 >/proc/self/oom_score_adj
       (exit 0); echo more >/tmp/more; echo >/tmp/more'
cp /bin/busybox /tmp/workload
(exec -a ping /tmp/workload -c 1 127.0.0.1 >/dev/null)
"""
TROUBLE = re.compile(r"BUG|Oops|WARNING|Call Trace|int3")


def published(image):
    """Tracepoints with all of their sites, as "group/name", and how many have some."""
    listing = ringside.run(image=image, options=("-l", "-v", "-P", "sdt")).stdout
    whole, count = set(), 0
    for part in re.split(r"^ *\d+ +sdt +", listing, flags=re.MULTILINE)[1:]:
        words = part.splitlines()[0].split()
        count += 1
        if "not probed" not in part:
            whole.add(f"{words[0]}/{words[-1]}")
    return whole, count


class Counts:
    """The test; the classes below say on which guest."""

    image = ""
    cpus = 0
    counting = HISTS
    steady = STEADY
    least = 600  # tracepoints with all of their sites

    def test_are_the_guests_own(self):
        whole, some = published(self.image)
        outcome = ringside.run(
            PROGRAM, image=self.image, cpus=self.cpus, options=("-q", "-x", "aggsize=8m"),
            command=COUNT % {"switched": " ".join((*STEADY, "sched/sched_switch")), **self.counting},
            timeout=3 * ringside.TIMEOUT)

        self.assertEqual(outcome.status, 0, outcome)
        ours = outcome.section("ours").counts()
        theirs = outcome.section("hits").counts()
        self.assertIsNone(TROUBLE.search(outcome.stdout), outcome)
        checked = {name for name in theirs if name in whole}
        wrong = {name: (ours.get(name, 0), theirs[name])
                 for name in checked if ours.get(name, 0) != theirs[name]}
        self.assertEqual(wrong, {}, f"ours and the guest's of {len(checked)}")
        self.assertGreaterEqual(len(checked), 40, sorted(checked))
        self.assertGreaterEqual(len({name.split("/")[0] for name in checked}), 10, checked)
        self.assertGreater(len(whole), self.least, f"of {some}")
        for name in self.steady:
            self.assertEqual(outcome.section("off").counts()[name], theirs[name], name)
            self.assertEqual(outcome.section("switched").counts()[name], theirs[name], name)


globals().update(ringside.on_each(Counts, ringside.EVERY_GUEST))


@ringside.takes_long
class Older(guest.OfSuite, Counts, unittest.TestCase):
    """On the oldest kernel that is promised, Debian's 5.10."""

    suite = "bullseye"
    counting = LINES
    steady = STEADY[:-1]  # its modules are not in the guest, and with them the loop device
    least = 550


@ringside.takes_long
class Newest(guest.OfSuite, Counts, unittest.TestCase):
    """On Debian unstable's, which has other tracepoints every few months."""

    suite = "sid"
    steady = STEADY[:-1]


@ringside.takes_long
class RealTime(guest.OfSuite, unittest.TestCase):
    """On Debian's real-time kernel, which preempts itself wherever it leaves a section that must not be."""

    suite = "trixie-rt"

    def test_has_nearly_all_tracepoints_and_the_stable_probes_on_them(self):
        names = ("sched:::off-cpu", "sched:::sleep", "sched:::preempt", "sched:::wakeup", "sysinfo:::pswitch",
                 "lockstat:::adaptive-block", "proc:::signal-handle")
        listing = ringside.run(image=self.image, options=("-l", "-n", ",".join(("sdt:::", *names))))

        self.assertEqual(listing.status, 0, listing)
        self.assertGreater(len(re.findall(r"^ *\d+ +sdt ", listing.stdout, re.MULTILINE)), 600)

    def test_counts_are_the_guests_own(self):
        """Of few events: to switch all of them on takes such a guest an hour."""
        events = ("sched/sched_switch", "sched/sched_waking", "sched/sched_wakeup", "sched/sched_process_fork",
                  "sched/sched_process_exit", "task/task_newtask", "signal/signal_generate",
                  "lock/contention_begin", "lock/contention_end")
        program = "".join(f'sdt:{group}::{name} /execname == "workload"/ {{ @["{group}/{name}"] = count(); }}\n'
                          for group, name in (event.split("/") for event in events))
        command = (f"{NO_NAMES}; cd /sys/kernel/tracing/events; for event in {' '.join(events)}; do"
                   " echo 'hist:keys=common_pid:size=128 if COMM == \"workload\"' >$event/trigger; done;"
                   " workload --reads 5 --getppid 10 --processes 2 --threads 2 --tcp 1; echo '<hits>';"
                   " grep -H 'Hits: [^0]' */*/hist | sed 's,/hist: *Hits:,,'; echo '</hits>'")
        outcome = ringside.run(
            program + 'sched:::off-cpu /execname == "workload"/ { @off = count(); }'
            ' sched:::sleep, sched:::preempt /execname == "workload"/ { @how = count(); }'
            ' END { printf("<ours>\\n"); printa("%s %@d\\n", @); printf("</ours>\\n");'
            ' printa("off %@d\\n", @off); printa("how %@d\\n", @how); }',
            image=self.image, cpus=self.cpus, options=("-q",), command=command)

        self.assertEqual(outcome.status, 0, outcome)
        ours, theirs = outcome.section("ours").counts(), outcome.section("hits").counts()
        self.assertEqual(ours, theirs, outcome)
        self.assertGreaterEqual(len(theirs), 6, outcome)
        self.assertEqual(outcome.counts()["off"], theirs["sched/sched_switch"], outcome)
        self.assertEqual(outcome.counts()["how"], theirs["sched/sched_switch"], outcome)


class Arguments(unittest.TestCase):
    def table(self, image):
        """{"group/name": {field: expression}} of a kernel."""
        found = {}
        for line in re.findall("^.+$", ARGUMENTS + ARGUMENTS_OF[image], re.MULTILINE):
            name, _, fields = line.partition(" ")
            found[name] = dict(field.split(": ") for field in fields.split("; "))
        return found

    def test_are_those_of_the_guests_events(self):
        for image in ringside.IMAGES:
            with self.subTest(image):
                self.compare(image)

    def compare(self, image):
        program, prints, command = "", "", "cd /sys/kernel/tracing/events\n"
        table = self.table(image)
        for number, (event, fields) in enumerate(table.items()):
            group, name = event.split("/")
            text = [expression.startswith("stringof") for expression in fields.values()]
            keys = ", ".join(expression if is_text else f"(int64_t)({expression})"
                             for expression, is_text in zip(fields.values(), text))
            program += (f'sdt:{group}::{name} /execname == "workload"/'
                        f" {{ @a{number}[{keys}] = count(); }}\n")
            form = "|".join("%s" if is_text else "%d" for is_text in text)
            prints += f'printa("<ours> {event} {form}|%@d\\n", @a{number});\n'
            command += (f"echo 'hist:keys={','.join(fields)} if COMM == \"workload\"'"
                        f" >{event}/trigger\n")
        command += ACTS + f"for each in {' '.join(table)}; do echo \"<event> $each\"; cat $each/hist; done"
        outcome = ringside.run(f"{program} END {{ {prints} }}", image=image, cpus=2,
                               options=("-q", "-x", "aggsize=8m"), command=command)

        self.assertEqual(outcome.status, 0, outcome)
        ours, theirs, event = {name: {} for name in table}, {name: {} for name in table}, ""
        for line in outcome.stdout.splitlines():
            if match := re.match(r"<event> (\S+)$", line):
                event = match[1]
            elif match := re.match(r"\{ (.*) \} hitcount: +(\d+)", line):
                values = (value.split(":", 1)[1] for value in re.split(r", (?=\w+: )", match[1]))
                theirs[event][tuple(map(self.plain, values))] = int(match[2])
            elif match := re.match(r"<ours> (\S+) (.*)\|(\d+)$", line):
                ours[match[1]][tuple(map(self.plain, match[2].split("|")))] = int(match[3])
        for name in table:
            with self.subTest(name):
                self.assertEqual(ours[name], theirs[name])
        compared = {name for name in table if theirs[name]}
        self.assertGreaterEqual(len(compared), 40, sorted(compared))
        self.assertGreaterEqual(len({name.split("/")[0] for name in compared}), 10, sorted(compared))

    def plain(self, value):
        """A key as both sides print it: the guest has no minus."""
        value = value.strip()
        return int(value) % 2**64 if re.fullmatch(r"-?\d+", value) else value


class Refusals(unittest.TestCase):
    """A tracepoint that cannot be probed is refused in one line."""

    def test_say_why(self):
        machine = self.enterContext(Machine())
        for description, why in (
                ("sdt:raw_syscalls::sys_enter", "registered in the guest"),
                ("sdt:exceptions::page_fault_user", "registered in the guest"),
                ("sdt:sched::no_such_tracepoint", "")):
            with self.subTest(description):
                outcome = machine.run(f"{description} {{ }}")
                self.assertEqual(outcome.status, 1, outcome)
                lines = outcome.stderr.splitlines()
                self.assertTrue(any(description in line and why in line for line in lines), outcome)

    def test_sites_that_are_missing_are_told(self):
        machine = self.enterContext(Machine())
        for description, where in (("sdt:irq_vectors::reschedule_entry", "sysvec_reschedule_ipi"),
                                   ("sdt:sched::sched_switch", "")):
            with self.subTest(description):
                outcome = machine.run(f"{description} {{ }} tick-10ms {{ exit(0); }}")
                self.assertEqual(outcome.status, 0, outcome)
                told = [line for line in outcome.stderr.splitlines() if "does not see all" in line]
                self.assertEqual(len(told), 1 if where else 0, outcome)
                self.assertTrue(all(description in line and where in line for line in told), outcome)


if __name__ == "__main__":
    unittest.main()
