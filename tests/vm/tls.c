/* Both ends of TLS connections in one process: `tls NUMBER` waits until /tmp/go exists. Then one end
 * sends so many messages, the other end one answer, and the addresses of the ends are printed. There
 * is no certificate and no network. The functions are declared here, since only OpenSSL's libraries
 * are needed, not its headers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct ssl SSL;
typedef struct context CONTEXT;
typedef struct bio BIO;
int BIO_new_bio_pair(BIO **one, size_t one_size, BIO **other, size_t other_size);
const void *TLS_method(void);
CONTEXT *SSL_CTX_new(const void *method);
long SSL_CTX_ctrl(CONTEXT *context, int command, long number, void *pointer);
int SSL_CTX_set_cipher_list(CONTEXT *context, const char *list);
SSL *SSL_new(CONTEXT *context);
void SSL_set_bio(SSL *ssl, BIO *in, BIO *out);
void SSL_set_connect_state(SSL *ssl);
void SSL_set_accept_state(SSL *ssl);
int SSL_do_handshake(SSL *ssl);
int SSL_write(SSL *ssl, const void *text, int length);
int SSL_read(SSL *ssl, void *text, int length);
int SSL_write_ex(SSL *ssl, const void *text, size_t length, size_t *written);
int SSL_read_ex(SSL *ssl, void *text, size_t length, size_t *got);

/* Of ssl.h: the last version that needs no certificate. */
enum { kSetMaxVersion = 124, kTls12 = 0x0303 };

static SSL *make_end(BIO *bio) {
  CONTEXT *const context = SSL_CTX_new(TLS_method());
  SSL_CTX_ctrl(context, kSetMaxVersion, kTls12, NULL);
  if (SSL_CTX_set_cipher_list(context, "aNULL:@SECLEVEL=0") != 1) abort();
  SSL *const ssl = SSL_new(context);
  SSL_set_bio(ssl, bio, bio);
  return ssl;
}

int main(int count, char **arguments) {
  const int number = count > 1 ? atoi(arguments[1]) : 1;
  BIO *bios[2];
  if (BIO_new_bio_pair(&bios[0], 0, &bios[1], 0) != 1) abort();
  SSL *const client = make_end(bios[0]), *const server = make_end(bios[1]);
  SSL_set_connect_state(client);
  SSL_set_accept_state(server);
  for (int done = 0, tries = 0; done != 2; ++tries) {
    if (tries == 10) abort();
    done = (SSL_do_handshake(client) == 1) + (SSL_do_handshake(server) == 1);
  }
  while (access("/tmp/go", F_OK) != 0) usleep(10000);
  char text[64], got[64];
  size_t length = 0;
  if (SSL_read(server, got, sizeof got) > 0) abort(); /* nothing is there yet */
  for (int n = 0; n < number; ++n) {
    const int size = snprintf(text, sizeof text, "message %d\n", n);
    if (SSL_write(client, text, size) != size) abort();
    if (SSL_read(server, got, sizeof got) != size || memcmp(got, text, size) != 0) abort();
  }
  if (SSL_write_ex(server, "answer", 6, &length) != 1 || length != 6) abort();
  if (SSL_read_ex(client, got, sizeof got, &length) != 1 || length != 6) abort();
  printf("client %lx server %lx\n", (unsigned long)client, (unsigned long)server);
  return 0;
}
