// A guest with something to list, for test_look.py: sockets in known states with known bytes unread,
// files of each kind, names that try to control a terminal, a second thread. Prints "ready", then
// stays until it is killed. Any failure is status 1 and a line on stderr.
//   listed               all of it
//   listed tasks COUNT   so many processes that sleep
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "steps.h"

static int opened(int fd, const char* what) {
  need(fd >= 0, what);
  return fd;
}

static void write_all(int fd, size_t bytes) {
  char buffer[1000] = {0};
  need(write(fd, buffer, bytes) == (ssize_t)bytes, "write");
}

/// A TCP connection of this family over lo, with 111 bytes unread at its second end.
static void connect_stream(int family, int port) {
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  six.sin6_addr = in6addr_loopback;
  const struct sockaddr* at = family == AF_INET ? (struct sockaddr*)&four : (struct sockaddr*)&six;
  const socklen_t size = family == AF_INET ? sizeof four : sizeof six;
  const int listener = opened(socket(family, SOCK_STREAM, 0), "socket");
  need(bind(listener, at, size) == 0 && listen(listener, 5) == 0, "listen");
  const int caller = opened(socket(family, SOCK_STREAM, 0), "socket");
  need(connect(caller, at, size) == 0, "connect");
  opened(accept(listener, NULL, NULL), "accept");
  write_all(caller, 111);
  // This one waits to be accepted.
  need(connect(opened(socket(family, SOCK_STREAM, 0), "socket"), at, size) == 0, "connect");
}

/// A connection whose first end was closed first, so that it is in TIME_WAIT.
static void leave_time_wait(int port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int listener = opened(socket(AF_INET, SOCK_STREAM, 0), "socket");
  need(bind(listener, (struct sockaddr*)&at, sizeof at) == 0 && listen(listener, 5) == 0, "listen");
  const int caller = opened(socket(AF_INET, SOCK_STREAM, 0), "socket");
  need(connect(caller, (struct sockaddr*)&at, sizeof at) == 0, "connect");
  const int taken = opened(accept(listener, NULL, NULL), "accept");
  close(caller);
  char end;
  need(read(taken, &end, 1) == 0, "end");
  close(taken);
  close(listener);
}

static void make_datagrams(int port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int served = opened(socket(AF_INET, SOCK_DGRAM, 0), "socket");
  need(bind(served, (struct sockaddr*)&at, sizeof at) == 0, "bind");
  const int caller = opened(socket(AF_INET, SOCK_DGRAM, 0), "socket");
  need(connect(caller, (struct sockaddr*)&at, sizeof at) == 0, "connect");
  write_all(caller, 222);
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)(port + 1))};
  need(bind(opened(socket(AF_INET6, SOCK_DGRAM, 0), "socket"), (struct sockaddr*)&six, sizeof six) == 0,
       "bind");
}

static void make_unix(const char* name, size_t length, int kind) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  memcpy(at.sun_path, name, length);
  const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
  const int listener = opened(socket(AF_UNIX, kind, 0), "socket");
  need(bind(listener, (struct sockaddr*)&at, size) == 0 && listen(listener, 5) == 0, name);
  const int caller = opened(socket(AF_UNIX, kind, 0), "socket");
  need(connect(caller, (struct sockaddr*)&at, size) == 0, "connect");
  opened(accept(listener, NULL, NULL), "accept");
}

static void open_files(void) {
  int ends[2];
  need(pipe(ends) == 0, "pipe");
  opened(eventfd(0, 0), "eventfd");
  opened(epoll_create1(0), "epoll");
  opened(memfd_create("remembered", 0), "memfd");
  opened(open("/data/input", O_RDONLY), "input");
  const int gone = opened(open("/tmp/gone", O_RDWR | O_CREAT, 0600), "gone");
  write_all(gone, 333);
  need(unlink("/tmp/gone") == 0, "unlink");
  opened(open("/tmp/\033[31mred\nPID  ROW", O_WRONLY | O_CREAT, 0600), "hostile");
  opened(open("/tmp/w\303\244hl mich", O_WRONLY | O_CREAT, 0600), "utf-8");
  need(mkdir("/tmp/folder", 0700) == 0 && chdir("/tmp/folder") == 0, "folder");
  opened(open("/dev/null", O_RDWR), "null");
}

static _Noreturn void* stay(void* name) {
  prctl(PR_SET_NAME, name);
  for (;;) pause();
}

static void make_tasks(long count) {
  for (long i = 0; i < count; i++) {
    const pid_t child = fork();
    need(child >= 0, "fork");
    if (child == 0) stay("asleep");
  }
}

int main(int count, char** words) {
  if (count == 3 && strcmp(words[1], "tasks") == 0) {
    make_tasks(atol(words[2]));
  } else {
    connect_stream(AF_INET, 7000);
    connect_stream(AF_INET6, 7001);
    leave_time_wait(7002);
    make_datagrams(7003);
    make_unix("/tmp/socket", 12, SOCK_STREAM);
    make_unix("\0hidden", 7, SOCK_SEQPACKET);
    open_files();
    const pid_t child = fork();
    need(child >= 0, "fork");
    if (child == 0) _exit(0);  // a zombie
    pthread_t thread;
    need(pthread_create(&thread, NULL, stay, "second") == 0, "thread");
    prctl(PR_SET_NAME, "\033[2Jx\n9 9 9");
    need(setresuid(1234, 1234, 0) == 0, "uid");
  }
  printf("ready\n");
  fflush(stdout);
  stay(NULL);
}
