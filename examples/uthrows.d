#!/usr/bin/env -S ringside -s
/*
 * uthrows.d - exceptions that a C++ process throws, by stack.
 *
 * USAGE: ringside --attach TARGET -s uthrows.d -p PID
 *
 * It uses the static probes of libstdc++.so.6, so a program that is linked with the library's
 * static form is not seen. At the end: how many were thrown, caught and thrown again, and the
 * stacks that throw most.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

libstdcxx$target:libstdc++.so.6::throw
{
	@stacks[ustack(8)] = count();
}

libstdcxx$target:libstdc++.so.6::throw,
libstdcxx$target:libstdc++.so.6::catch,
libstdcxx$target:libstdc++.so.6::rethrow
{
	@[probename] = count();
}

dtrace:::END
{
	trunc(@stacks, 10);
	printa("%k%@8d\n", @stacks);
	printa("%-8s %@8d\n", @);
}
