// A known number of what the stable providers count, over loopback and in one process: the test of
// them (test_stable.py) says how many. Any failure is status 1 and a line on stderr.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "steps.h"

union Address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
};

static union Address loopback(int family, int port) {
  union Address address;
  memset(&address, 0, sizeof address);
  address.any.sa_family = (sa_family_t)family;
  if (family == AF_INET) {
    address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.v4.sin_port = htons((uint16_t)port);
  } else {
    address.v6.sin6_addr = in6addr_loopback;
    address.v6.sin6_port = htons((uint16_t)port);
  }
  return address;
}

static socklen_t size_of(const union Address* address) {
  return address->any.sa_family == AF_INET ? sizeof address->v4 : sizeof address->v6;
}

static void datagrams(int family, int count, size_t bytes) {
  char buffer[4096] = {0};
  const union Address to = loopback(family, 7777);
  const int in = socket(family, SOCK_DGRAM, 0), out = socket(family, SOCK_DGRAM, 0);
  need(bind(in, &to.any, size_of(&to)) == 0, "bind");
  for (int i = 0; i < count; i++) {
    need(sendto(out, buffer, bytes, 0, &to.any, size_of(&to)) == (ssize_t)bytes, "sendto");
    need(recv(in, buffer, sizeof buffer, 0) == (ssize_t)bytes, "recv");
  }
  close(in), close(out);
}

static void connections(int family, int count) {
  char buffer[4096] = {0};
  const union Address to = loopback(family, 7778);
  const int listener = socket(family, SOCK_STREAM, 0), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  need(bind(listener, &to.any, size_of(&to)) == 0 && listen(listener, 8) == 0, "listen");
  for (int i = 0; i < count; i++) {
    const int client = socket(family, SOCK_STREAM, 0);
    need(connect(client, &to.any, size_of(&to)) == 0, "connect");
    const int server = accept(listener, NULL, NULL);
    need(write(client, buffer, 1000) == 1000 && read(server, buffer, sizeof buffer) == 1000,
         "data");
    close(client);
    need(read(server, buffer, sizeof buffer) == 0, "end");
    close(server);
  }
  close(listener);
}

static void refused(int family, int count) {
  const union Address to = loopback(family, 9);
  for (int i = 0; i < count; i++) {
    const int client = socket(family, SOCK_STREAM, 0);
    need(connect(client, &to.any, size_of(&to)) != 0 && errno == ECONNREFUSED, "refused");
    close(client);
  }
}

// A simultaneous open: both ends are the socket that asks.
static void with_itself(int count) {
  for (int i = 0; i < count; i++) {
    const union Address own = loopback(AF_INET, 7779 + i);
    const int both = socket(AF_INET, SOCK_STREAM, 0);
    need(bind(both, &own.any, size_of(&own)) == 0, "bind");
    need(connect(both, &own.any, size_of(&own)) == 0, "connect to itself");
    close(both);
  }
}

static void signals(int count) {
  sigset_t wanted;
  siginfo_t what;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGUSR2);
  sigprocmask(SIG_BLOCK, &wanted, NULL);
  for (int i = 0; i < count; i++) {
    kill(getpid(), SIGUSR2);
    need(sigwaitinfo(&wanted, &what) == SIGUSR2, "sigwaitinfo");
  }
}

// Of a protocol that nobody has; the kernel fills in the checksum.
static void of_no_protocol(int count) {
  struct {
    unsigned char header[20], data[8];
  } packet = {{0x45, 0, 0, 28, 0, 0, 0, 0, 64, 200}, {0}};
  const unsigned char both[8] = {127, 0, 0, 1, 127, 0, 0, 1};
  const union Address to = loopback(AF_INET, 0);
  const int raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
  memcpy(packet.header + 12, both, 8);
  for (int i = 0; i < count; i++) {
    need(sendto(raw, &packet, 28, 0, &to.any, size_of(&to)) == 28, "raw");
  }
  close(raw);
}

static volatile sig_atomic_t handled;
static void handle(int signal) {
  handled += signal == SIGUSR1;
}

static void handlers(int count) {
  struct sigaction action = {.sa_handler = handle};
  sigaction(SIGUSR1, &action, NULL);
  for (int i = 0; i < count; i++) raise(SIGUSR1);
  need(handled == count, "handlers");
}

static void fault(int how) {
  static const int fixed = 1;
  volatile int zero = 0;
  if (how == 0) *(volatile int*)16 = 1;
  if (how == 1) *(volatile int*)&fixed = 1;
  if (how == 2) __asm__ volatile("idivl %0" : : "m"(zero), "a"(1), "d"(0));
  if (how == 3) __asm__ volatile("ud2");
  if (how == 4) __asm__ volatile("int3");
}

static void faults(void) {
  for (int how = 0; how < 5; how++) {
    const pid_t child = fork();
    if (child == 0) fault(how), _exit(0);
    int status = 0;
    need(waitpid(child, &status, 0) == child && WIFSIGNALED(status), "fault");
  }
}

int main(void) {
  datagrams(AF_INET, 20, 100);
  datagrams(AF_INET6, 15, 50);
  connections(AF_INET, 6);
  connections(AF_INET6, 4);
  refused(AF_INET, 3);
  refused(AF_INET6, 2);
  of_no_protocol(8);
  with_itself(2);
  signals(5);
  handlers(6);
  faults();
  for (int i = 0; i < 7; i++) sched_yield();
  for (int nice = 1; nice <= 4; nice++) need(setpriority(PRIO_PROCESS, 0, nice) == 0, "nice");
  return setpriority(PRIO_PROCESS, 0, 4);  // changes nothing
}
