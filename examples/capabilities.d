#!/usr/bin/env -S ringside -s
/*
 * capabilities.d - what processes need privileges for.
 *
 * USAGE: ringside --attach TARGET -s capabilities.d
 *
 * CAPABILITY is a number of <linux/capability.h>: 1 is CAP_DAC_OVERRIDE, 21 CAP_SYS_ADMIN. A
 * denied one shows as error 1.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

fbt::cap_capable:entry
{
	self->capability = arg2;
	self->asked = 1;
}

fbt::cap_capable:return
/self->asked/
{
	@[execname, self->capability, -(int)arg1] = count();
	self->asked = 0;
}

dtrace:::END
{
	printf("%-16s %10s %5s %8s\n", "COMMAND", "CAPABILITY", "ERROR", "COUNT");
	printa("%-16s %10d %5d %@8d\n", @);
}
