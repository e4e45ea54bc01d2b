#!/usr/bin/env -S ringside -s
/*
 * modules.d - modules of the kernel that are loaded and unloaded.
 *
 * USAGE: ringside --attach TARGET -s modules.d
 *
 * Whoever asks for a module is often a helper that the kernel starts.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%-6s %-16s %-6s %s\n", "PID", "COMMAND", "WHAT", "MODULE");
}

fbt::do_init_module:entry
{
	printf("%-6d %-16s %-6s %s\n", pid, execname, "load", stringof(args[0]->name));
}

fbt::free_module:entry
{
	printf("%-6d %-16s %-6s %s\n", pid, execname, "unload", stringof(args[0]->name));
}
