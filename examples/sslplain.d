#!/usr/bin/env -S ringside -s
/*
 * sslplain.d - the plain text that processes send and receive by TLS, through OpenSSL 3.
 *
 * USAGE: ringside --attach TARGET -s sslplain.d
 *
 * Calls of SSL_read and SSL_write that move bytes, and of their forms with _ex. A text ends at its
 * first NUL, or after strsize bytes (-x strsize=4k for more); its end is shown as \0. It may hold
 * passwords. A process has to use the library when tracing begins; others may come later. Programs
 * with a TLS library of their own are not seen.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%6s %-16s %-16s %-12s %8s %s\n", "PID", "COMMAND", "CONNECTION",
	    "CALL", "BYTES", "TEXT");
}

pid*:libssl.so.3:SSL_read:entry,
pid*:libssl.so.3:SSL_write:entry,
pid*:libssl.so.3:SSL_read_ex:entry,
pid*:libssl.so.3:SSL_write_ex:entry
{
	self->connection = arg0;
	self->text = arg1;
	self->length = arg3;	/* where the two of _ex put it */
}

pid*:libssl.so.3:SSL_read:return,
pid*:libssl.so.3:SSL_write:return
/self->connection/
{
	this->bytes = (int)arg1 > 0 ? (int)arg1 : 0;
}

pid*:libssl.so.3:SSL_read_ex:return,
pid*:libssl.so.3:SSL_write_ex:return
/self->connection/
{
	this->bytes = (int)arg1 == 1 ?
	    *(size_t *)copyin(self->length, sizeof (size_t)) : 0;
}

pid*:libssl.so.3:SSL_read:return,
pid*:libssl.so.3:SSL_write:return,
pid*:libssl.so.3:SSL_read_ex:return,
pid*:libssl.so.3:SSL_write_ex:return
/self->connection && this->bytes > 0/
{
	printf("%6d %-16s %-16x %-12s %8d %S\n", pid, execname, self->connection,
	    probefunc, this->bytes, copyinstr(self->text, this->bytes));
}

pid*:libssl.so.3:SSL_read:return,
pid*:libssl.so.3:SSL_write:return,
pid*:libssl.so.3:SSL_read_ex:return,
pid*:libssl.so.3:SSL_write_ex:return
{
	self->connection = 0;
	self->text = 0;
	self->length = 0;
}
