#!/usr/bin/env -S ringside -s
/*
 * connects.d - TCP connections that processes ask for by connect().
 *
 * USAGE: ringside --attach TARGET -s connects.d
 *
 * IPv4. ERR is the call's error: 111 (ECONNREFUSED) when nobody listens there; 115 (EINPROGRESS)
 * says that it goes on meanwhile.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%-6s %-16s %-20s %5s %3s\n", "PID", "COMMAND", "ADDRESS", "PORT", "ERR");
}

syscall::connect:entry
{
	self->asks = 1;
}

fbt::tcp_v4_connect:entry
/self->asks/
{
	self->to = (struct sockaddr_in *)arg1;
	self->address = inet_ntoa(&self->to->sin_addr.s_addr);
	self->port = ntohs(self->to->sin_port);
}

syscall::connect:return
/self->to != NULL/
{
	printf("%-6d %-16s %-20s %5d %3d\n", pid, execname, self->address, self->port, errno);
}

syscall::connect:return
{
	self->asks = 0;
	self->to = 0;
	self->address = 0;
	self->port = 0;
}
