// Datagrams over loopback whose bytes are known: number n has (n + 7 k + k / 256) mod 256 as byte k.
//   packets PORT COUNT BYTES        to a port that nobody has
//   packets PORT COUNT BYTES here   to one of its own, and receives each
// Any failure is status 1 and a line on stderr.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "steps.h"

int main(int argc, char** argv) {
  static unsigned char bytes[65536], received[65536];
  need(argc == 4 || argc == 5, "arguments");
  const int port = atoi(argv[1]), count = atoi(argv[2]), size = atoi(argv[3]);
  const struct sockaddr_in to = {.sin_family = AF_INET,
                                 .sin_port = htons((unsigned short)port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const struct sockaddr* const address = (const struct sockaddr*)&to;
  const int out = socket(AF_INET, SOCK_DGRAM, 0), in = socket(AF_INET, SOCK_DGRAM, 0);
  need(size >= 0 && size <= (int)sizeof bytes, "size");
  need(argc == 4 || bind(in, address, sizeof to) == 0, "bind");
  for (int n = 0; n < count; n++) {
    for (int k = 0; k < size; k++) bytes[k] = (unsigned char)(n + 7 * k + k / 256);
    need(sendto(out, bytes, (size_t)size, 0, address, sizeof to) == size, "sendto");
    need(argc == 4 || recv(in, received, sizeof received, 0) == size, "recv");
  }
  return 0;
}
