/*
 * Plain text of TLS connections, as programs of the guest read and write it: OpenSSL 1.1 and 3, and
 * GnuTLS since 3.6.3, whose gnutls_record_send() ends in a jump to gnutls_record_send2(). A probe fires once the library's function has returned and has taken or given bytes. The
 * connection is the library's own object (SSL *, gnutls_session_t). docs/processes.md.
 */
#pragma D depends_on module vmlinux

provider ssl {
	probe read(uintptr_t connection, uintptr_t data, long bytes)
	    = pid*:libssl.so*:SSL_read:entry { self->connection = arg0; self->data = arg1; }
	    -> pid*:libssl.so*:SSL_read:return /bytes > 0/ {
		connection = self->connection;
		data = self->data;
		bytes = (int)arg1;
	    };
	probe read(uintptr_t connection, uintptr_t data, long bytes)
	    = pid*:libssl.so*:SSL_read_ex:entry {
		self->connection = arg0;
		self->data = arg1;
		self->bytes = arg3;
	    }
	    -> pid*:libssl.so*:SSL_read_ex:return /(int)arg1 == 1 && bytes > 0/ {
		connection = self->connection;
		data = self->data;
		bytes = *(long *)copyin(self->bytes, sizeof (long));
	    };
	probe write(uintptr_t connection, uintptr_t data, long bytes)
	    = pid*:libssl.so*:SSL_write:entry { self->connection = arg0; self->data = arg1; }
	    -> pid*:libssl.so*:SSL_write:return /bytes > 0/ {
		connection = self->connection;
		data = self->data;
		bytes = (int)arg1;
	    };
	probe write(uintptr_t connection, uintptr_t data, long bytes)
	    = pid*:libssl.so*:SSL_write_ex:entry {
		self->connection = arg0;
		self->data = arg1;
		self->bytes = arg3;
	    }
	    -> pid*:libssl.so*:SSL_write_ex:return /(int)arg1 == 1 && bytes > 0/ {
		connection = self->connection;
		data = self->data;
		bytes = *(long *)copyin(self->bytes, sizeof (long));
	    };
	probe read(uintptr_t connection, uintptr_t data, long bytes)
	    = pid*:libgnutls.so*:gnutls_record_recv:entry { self->connection = arg0; self->data = arg1; }
	    -> pid*:libgnutls.so*:gnutls_record_recv:return /bytes > 0/ {
		connection = self->connection;
		data = self->data;
		bytes = arg1;
	    };
	probe write(uintptr_t connection, uintptr_t data, long bytes)
	    = pid*:libgnutls.so*:gnutls_record_send2:entry { self->connection = arg0; self->data = arg1; }
	    -> pid*:libgnutls.so*:gnutls_record_send2:return /bytes > 0/ {
		connection = self->connection;
		data = self->data;
		bytes = arg1;
	    };
};
