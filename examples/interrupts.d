#!/usr/bin/env -S ringside -s
/*
 * interrupts.d - interrupts by handler: how often, and for how long.
 *
 * USAGE: ringside --attach TARGET -s interrupts.d
 *
 * TIME is in microseconds, all together. Interrupts that the processor sends itself (its timer,
 * calls between processors) have no handler of a device.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

fbt::__handle_irq_event_percpu:entry
{
	self->name = stringof(args[0]->action->name);
	self->since = timestamp;
}

fbt::__handle_irq_event_percpu:return
/self->since/
{
	@often[self->name] = count();
	@time[self->name] = sum((timestamp - self->since) / 1000);
	self->since = 0;
	self->name = 0;
}

dtrace:::END
{
	printf("%-24s %8s %12s\n", "HANDLER", "COUNT", "TIME");
	printa("%-24s %@8d %@12d\n", @often, @time);
}
