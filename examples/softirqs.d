#!/usr/bin/env -S ringside -s
/*
 * softirqs.d - the kernel's soft interrupts: how often, and for how long.
 *
 * USAGE: ringside --attach TARGET -s softirqs.d
 *
 * TIME is in microseconds, all together. Packets that come in are NET_RX, timers TIMER.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
	name[0] = "HI";
	name[1] = "TIMER";
	name[2] = "NET_TX";
	name[3] = "NET_RX";
	name[4] = "BLOCK";
	name[5] = "IRQ_POLL";
	name[6] = "TASKLET";
	name[7] = "SCHED";
	name[8] = "HRTIMER";
	name[9] = "RCU";
}

sdt:irq::softirq_entry
{
	since[cpu] = timestamp;
}

sdt:irq::softirq_exit
/since[cpu]/
{
	@often[name[args[0]]] = count();
	@time[name[args[0]]] = sum((timestamp - since[cpu]) / 1000);
	since[cpu] = 0;
}

dtrace:::END
{
	printf("%-10s %8s %12s\n", "NAME", "COUNT", "TIME");
	printa("%-10s %@8d %@12d\n", @often, @time);
}
