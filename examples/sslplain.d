#!/usr/bin/env -S ringside -s
/*
 * sslplain.d - the plain text that processes send and receive by TLS, through OpenSSL or GnuTLS.
 *
 * USAGE: ringside --attach TARGET -s sslplain.d
 *
 * Calls that move bytes (SSL_read, SSL_write, their forms with _ex, gnutls_record_recv and
 * gnutls_record_send2). A text ends at its first NUL, or after strsize bytes (-x strsize=4k for more);
 * its end is shown as \0. It may hold passwords. A process has to use the library when tracing
 * begins; others may come later. Programs with a TLS library of their own are not seen.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%6s %-16s %-16s %-19s %8s %s\n", "PID", "COMMAND", "CONNECTION",
	    "CALL", "BYTES", "TEXT");
}

ssl:::read,
ssl:::write
{
	printf("%6d %-16s %-16x %-19s %8d %S\n", pid, execname, arg0, probefunc,
	    arg2, copyinstr(arg1, arg2));
}
