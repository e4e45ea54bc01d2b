#!/usr/bin/env -S ringside -s
/*
 * gethostlatency.d - names of hosts that processes look up, and how long that takes.
 *
 * USAGE: ringside --attach TARGET -s gethostlatency.d
 *
 * Microseconds of getaddrinfo, gethostbyname and gethostbyname2 in the C library. Static programs,
 * and those that ask name servers themselves, are not seen.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%6s %-16s %12s %-7s %s\n", "PID", "COMMAND", "MICROSECONDS",
	    "RESULT", "HOST");
}

pid*:libc.so.6:getaddrinfo:entry,
pid*:libc.so.6:gethostbyname:entry,
pid*:libc.so.6:gethostbyname2:entry
{
	self->host = arg0;	/* NULL: the addresses of this host */
	self->since = timestamp;
}

/* getaddrinfo returns an error, the others a pointer. */
pid*:libc.so.6:getaddrinfo:return,
pid*:libc.so.6:gethostbyname:return,
pid*:libc.so.6:gethostbyname2:return
/self->since/
{
	this->found = probefunc == "getaddrinfo" ? (int)arg1 == 0 : arg1 != 0;
	printf("%6d %-16s %12d %-7s %s\n", pid, execname,
	    (timestamp - self->since) / 1000, this->found ? "found" : "none",
	    self->host ? copyinstr(self->host) : "-");
	self->host = 0;
	self->since = 0;
}
