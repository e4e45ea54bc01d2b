// Two guests that talk to each other, a known number of times: the test of their packets
// (test_peers.py) says how often. Any failure is status 1 and a line on stderr.
//   peers serve TIMES            takes so many connections and datagrams, and answers each
//   peers call ADDRESS TIMES     makes them
//   peers unanswered ADDRESS     asks for a connection thrice, where nobody is
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "steps.h"

enum { STREAM_PORT = 7000, DATAGRAM_PORT = 7001, ASKED = 3000, ANSWERED = 5000, DATAGRAM = 200 };

static char buffer[ANSWERED];

static struct sockaddr_in at(const char* address, int port) {
  struct sockaddr_in made = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  need(inet_pton(AF_INET, address, &made.sin_addr) == 1, address);
  return made;
}

static void take(int from, size_t bytes) {
  while (bytes > 0) {
    const ssize_t taken = read(from, buffer, bytes);
    need(taken > 0, "read");
    bytes -= (size_t)taken;
  }
}

static int bound(int kind, int port) {
  const struct sockaddr_in any = at("0.0.0.0", port);
  const int made = socket(AF_INET, kind, 0), on = 1;
  setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  need(bind(made, (const struct sockaddr*)&any, sizeof any) == 0, "bind");
  return made;
}

static void serve(int times) {
  const int listener = bound(SOCK_STREAM, STREAM_PORT);
  const int datagrams = bound(SOCK_DGRAM, DATAGRAM_PORT);
  need(listen(listener, 8) == 0, "listen");
  printf("serving\n");
  fflush(stdout);
  for (int n = 0; n < times; n++) {
    const int peer = accept(listener, NULL, NULL);
    need(peer >= 0, "accept");
    take(peer, ASKED);
    need(write(peer, buffer, ANSWERED) == ANSWERED, "write");
    need(read(peer, buffer, 1) == 0, "end");
    close(peer);
  }
  for (int n = 0; n < times; n++) {
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    need(recvfrom(datagrams, buffer, sizeof buffer, 0, (struct sockaddr*)&from, &size) == DATAGRAM,
         "recvfrom");
    need(sendto(datagrams, buffer, DATAGRAM / 2, 0, (struct sockaddr*)&from, size) == DATAGRAM / 2,
         "sendto");
  }
}

static void call(const char* address, int times) {
  const struct sockaddr_in stream = at(address, STREAM_PORT), datagram = at(address, DATAGRAM_PORT);
  for (int n = 0; n < times; n++) {
    const int peer = socket(AF_INET, SOCK_STREAM, 0);
    need(connect(peer, (const struct sockaddr*)&stream, sizeof stream) == 0, "connect");
    need(write(peer, buffer, ASKED) == ASKED, "write");
    take(peer, ANSWERED);
    close(peer);
  }
  const int datagrams = socket(AF_INET, SOCK_DGRAM, 0);
  need(connect(datagrams, (const struct sockaddr*)&datagram, sizeof datagram) == 0, "connect");
  for (int n = 0; n < times; n++) {
    need(write(datagrams, buffer, DATAGRAM) == DATAGRAM, "send");
    need(read(datagrams, buffer, sizeof buffer) == DATAGRAM / 2, "receive");
  }
}

static void unanswered(const char* address) {
  const struct sockaddr_in nobody = at(address, STREAM_PORT);
  const int again = 2, made = socket(AF_INET, SOCK_STREAM, 0);
  need(setsockopt(made, IPPROTO_TCP, TCP_SYNCNT, &again, sizeof again) == 0, "TCP_SYNCNT");
  need(connect(made, (const struct sockaddr*)&nobody, sizeof nobody) != 0 && errno == ETIMEDOUT,
       "nobody answers");
}

int main(int count, char** words) {
  if (count == 3 && strcmp(words[1], "serve") == 0) return serve(atoi(words[2])), 0;
  if (count == 4 && strcmp(words[1], "call") == 0) return call(words[2], atoi(words[3])), 0;
  if (count == 3 && strcmp(words[1], "unanswered") == 0) return unanswered(words[2]), 0;
  fprintf(stderr, "peers: what?\n");
  return 1;
}
