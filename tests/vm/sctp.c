// Associations of SCTP over lo, a known number of them: test_sctp.py says how many. Any failure is status 1
// and a line on stderr.
//   sctp talk TIMES MESSAGES   so many associations, one after another, each with so many messages
//   sctp refused               asks for an association where nobody listens
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "steps.h"

enum { PORT = 7100, BYTES = 1000 };

static char buffer[BYTES];

static struct sockaddr_in lo(int port) {
  return (struct sockaddr_in){.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int stream(void) {
  const int made = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
  need(made >= 0, "socket");
  return made;
}

static void take(int listener, int times) {
  for (int n = 0; n < times; n++) {
    const int peer = accept(listener, NULL, NULL);
    need(peer >= 0, "accept");
    ssize_t taken;
    while ((taken = read(peer, buffer, BYTES)) > 0) {
    }
    need(taken == 0 || errno == ENOTCONN, "end");  // the association may be gone already
    close(peer);
  }
}

static void talk(int times, int messages) {
  const struct sockaddr_in address = lo(PORT);
  const int listener = stream();
  need(bind(listener, (const struct sockaddr*)&address, sizeof address) == 0, "bind");
  need(listen(listener, 8) == 0, "listen");
  const pid_t child = fork();
  need(child >= 0, "fork");
  if (child == 0) {
    take(listener, times);
    exit(0);
  }
  close(listener);
  for (int n = 0; n < times; n++) {
    const int peer = stream();
    need(connect(peer, (const struct sockaddr*)&address, sizeof address) == 0, "connect");
    for (int m = 0; m < messages; m++) need(write(peer, buffer, BYTES) == BYTES, "write");
    close(peer);
  }
  int status;
  need(waitpid(child, &status, 0) == child && status == 0, "the other side");
}

static void refused(void) {
  const struct sockaddr_in address = lo(PORT + 1);
  const int peer = stream();
  need(connect(peer, (const struct sockaddr*)&address, sizeof address) != 0 && errno == ECONNREFUSED,
       "an association with nobody");
  close(peer);
}

int main(int count, char** words) {
  if (count == 4 && strcmp(words[1], "talk") == 0) {
    talk(atoi(words[2]), atoi(words[3]));
  } else if (count == 2 && strcmp(words[1], "refused") == 0) {
    refused();
  } else {
    fprintf(stderr, "usage: sctp talk TIMES MESSAGES | refused\n");
    return 2;
  }
  return 0;
}
