#!/usr/bin/env -S ringside -s
/*
 * pgqueries.d - queries of PostgreSQL, with how long they took.
 *
 * USAGE: ringside --attach TARGET -s pgqueries.d
 *
 * A line for each query when it has ended; at the end a distribution for each database process. A
 * query's text ends after strsize bytes (-x strsize=1k for more). The server has to run when
 * tracing begins; its processes may come later. It needs PostgreSQL's own static probes, which
 * Debian's packages have (--enable-dtrace).
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%6s %10s %s\n", "PID", "US", "QUERY");
}

postgresql*:::query-start
{
	self->query = copyinstr(arg0);
	self->since = timestamp;
}

postgresql*:::query-done
/self->since/
{
	this->us = (timestamp - self->since) / 1000;
	printf("%6d %10d %s\n", pid, this->us, self->query);
	@[pid] = quantize(this->us);
	self->query = 0;
	self->since = 0;
}

dtrace:::END
{
	printa("\nPID %d, us%@d\n", @);
}
