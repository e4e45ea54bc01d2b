#!/usr/bin/env -S ringside -s
/*
 * worktime.d - work that the kernel's worker threads do, by function.
 *
 * USAGE: ringside --attach TARGET -s worktime.d
 *
 * TIME is in microseconds, all together, waits among it.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

fbt::process_one_work:entry
{
	self->work = (uintptr_t)args[1]->func;
	self->since = timestamp;
}

fbt::process_one_work:return
/self->since/
{
	@often[self->work] = count();
	@time[self->work] = sum((timestamp - self->since) / 1000);
	self->since = 0;
	self->work = 0;
}

dtrace:::END
{
	printf("%-40s %8s %12s\n", "FUNCTION", "COUNT", "TIME");
	printa("%-40a %@8d %@12d\n", @often, @time);
}
