/* Both ends of a TLS connection of GnuTLS in one process: `gnutls NUMBER` waits until /tmp/go
 * exists. Then one end sends so many messages, and the addresses of the ends are printed. There is
 * no certificate and no network. The functions are declared here, since only the library is needed,
 * not its headers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

typedef struct session *SESSION;
typedef ssize_t (*TRANSFER)(void *, void *, size_t);
int gnutls_init(SESSION *session, unsigned flags);
int gnutls_priority_set_direct(SESSION session, const char *priorities, const char **bad);
int gnutls_anon_allocate_client_credentials(void **credentials);
int gnutls_anon_allocate_server_credentials(void **credentials);
int gnutls_credentials_set(SESSION session, int kind, void *credentials);
void gnutls_transport_set_ptr(SESSION session, void *pointer);
void gnutls_transport_set_push_function(SESSION session, TRANSFER function);
void gnutls_transport_set_pull_function(SESSION session, TRANSFER function);
void gnutls_transport_set_pull_timeout_function(SESSION session, int (*function)(void *, unsigned));
void gnutls_transport_set_errno(SESSION session, int number);
int gnutls_handshake(SESSION session);
ssize_t gnutls_record_send(SESSION session, const void *data, size_t bytes);
ssize_t gnutls_record_recv(SESSION session, void *data, size_t bytes);

enum { kServer = 1, kClient = 2, kNonBlocking = 8, kAnonymous = 2 };

/* Bytes on their way from one end to the other. */
struct pipe {
  char bytes[1 << 16];
  size_t begin, end;
};
static struct pipe pipes[2];
static SESSION ends[2];

static ssize_t push(void *own, void *data, size_t bytes) {
  struct pipe *const to = &pipes[(long)own];
  memcpy(to->bytes + to->end, data, bytes);
  to->end += bytes;
  return (ssize_t)bytes;
}

static ssize_t pull(void *own, void *data, size_t bytes) {
  struct pipe *const from = &pipes[1 - (long)own];
  const size_t there = from->end - from->begin, taken = bytes < there ? bytes : there;
  if (taken == 0) {
    gnutls_transport_set_errno(ends[(long)own], EAGAIN);
    return -1;
  }
  memcpy(data, from->bytes + from->begin, taken);
  from->begin += taken;
  if (from->begin == from->end) from->begin = from->end = 0;
  return (ssize_t)taken;
}

static int has_more(void *own, unsigned unused) {
  (void)unused;
  return pipes[1 - (long)own].end != pipes[1 - (long)own].begin;
}

static void set_up(long own, unsigned kind, void *credentials) {
  if (gnutls_init(&ends[own], kind | kNonBlocking) != 0) abort();
  if (gnutls_priority_set_direct(ends[own], "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+ANON-ECDH", NULL)) abort();
  gnutls_credentials_set(ends[own], kAnonymous, credentials);
  gnutls_transport_set_ptr(ends[own], (void *)own);
  gnutls_transport_set_push_function(ends[own], push);
  gnutls_transport_set_pull_function(ends[own], pull);
  gnutls_transport_set_pull_timeout_function(ends[own], has_more);
}

int main(int count, char **arguments) {
  const int number = count > 1 ? atoi(arguments[1]) : 1;
  void *client, *server;
  gnutls_anon_allocate_client_credentials(&client);
  gnutls_anon_allocate_server_credentials(&server);
  set_up(0, kClient, client);
  set_up(1, kServer, server);
  int is_ready[2] = {0, 0};
  for (int tries = 0; !is_ready[0] || !is_ready[1]; ++tries) {
    if (tries == 100) abort();
    for (int own = 0; own < 2; ++own) {
      if (!is_ready[own]) is_ready[own] = gnutls_handshake(ends[own]) == 0;
    }
  }
  while (access("/tmp/go", F_OK) != 0) usleep(10000);
  char text[64], got[64];
  if (gnutls_record_recv(ends[1], got, sizeof got) > 0) abort(); /* nothing is there yet */
  for (int n = 0; n < number; ++n) {
    const int size = snprintf(text, sizeof text, "message %d\n", n);
    if (gnutls_record_send(ends[0], text, (size_t)size) != size) abort();
    if (gnutls_record_recv(ends[1], got, sizeof got) != size || memcmp(got, text, (size_t)size) != 0) abort();
  }
  printf("client %lx server %lx\n", (unsigned long)ends[0], (unsigned long)ends[1]);
  return 0;
}
