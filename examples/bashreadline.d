#!/usr/bin/env -S ringside -s
/*
 * bashreadline.d - lines that are typed into bash, by process and user.
 *
 * USAGE: ringside --attach TARGET -s bashreadline.d
 *
 * Interactive shells of all users, before bash expands the line. The lines may hold passwords. A
 * bash has to run when tracing begins; others may come later.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%-20s %6s %6s %s\n", "TIME", "PID", "UID", "LINE");
}

/* At the end of its input it returns NULL. */
pid*:bash:readline:return
/arg1 != 0/
{
	printf("%Y %6d %6d %s\n", walltimestamp, pid, uid, copyinstr(arg1));
}
