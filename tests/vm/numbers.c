// A known number of one thing, for the tests of the scripts in examples/. Any failure is status 1
// and a line on stderr.
//   numbers sleeps TIMES       sleeps so often
//   numbers faults PAGES DISK  touches so many new pages of memory, and 5 that only a disk has;
//                              what the kernel counted meanwhile is printed
//   numbers spins              runs its own code alone, for a second of a processor, and prints its
//                              time on processors in microseconds
//   numbers chroots TIMES      asks so often as root, and once as somebody who may not
//   numbers pair TIMES         "ping" and "pong", on two processors if there are two, wake each
//                              other so often by pipes; printed is how often each of them slept
//   numbers connections TIMES  over loopback so many that are refused, so many that do not block,
//                              and so many of IPv6 that it accepts
// While pages are touched the program's name is "faulting".
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "steps.h"

enum { kPage = 4096, kOnDisk = 5, kApart = 8 };

static void sleeps(int times) {
  const struct timespec while_nothing = {.tv_nsec = 100000};
  for (int n = 0; n < times; n++) need(nanosleep(&while_nothing, NULL) == 0, "nanosleep");
}

static char* mapped(size_t pages, int flags, int file, int advice) {
  char* const memory = mmap(NULL, pages * kPage, PROT_READ | PROT_WRITE, flags, file, 0);
  need(memory != MAP_FAILED && madvise(memory, pages * kPage, advice) == 0, "mmap");
  return memory;
}

static void faults(int pages, const char* path) {
  static struct rusage before, after;  // static, and written once, so that they take no fault later
  const int disk = open(path, O_RDWR);
  volatile char* const fresh =
      mapped((size_t)pages, MAP_PRIVATE | MAP_ANONYMOUS, -1, MADV_NOHUGEPAGE);
  volatile char* const stored = mapped(kOnDisk * kApart, MAP_SHARED, disk, MADV_RANDOM);
  need(posix_fadvise(disk, 0, 0, POSIX_FADV_DONTNEED) == 0, "fadvise");
  need(getrusage(RUSAGE_SELF, &before) == 0 && getrusage(RUSAGE_SELF, &after) == 0, "getrusage");

  prctl(PR_SET_NAME, "faulting");
  getrusage(RUSAGE_SELF, &before);
  for (int n = 0; n < pages; n++) fresh[n * kPage] = 1;
  for (int n = 0; n < kOnDisk; n++) (void)stored[n * kApart * kPage];
  getrusage(RUSAGE_SELF, &after);
  prctl(PR_SET_NAME, "numbers");

  const long minor = after.ru_minflt - before.ru_minflt, major = after.ru_majflt - before.ru_majflt;
  need(minor >= pages && major == kOnDisk, "faults");
  printf("faults %ld\nmajor %ld\n", minor + major, major);
}

static void spins(void) {
  while (clock() < CLOCKS_PER_SEC) {
    for (volatile int n = 0; n < 1000000; n++) continue;
  }
  printf("spun %ld\n", clock());
}

// Every byte that one end reads is answered by the other; returns how often this one slept.
static long rally(const char* name, int processor, int in, int out, int times) {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(processor, &here);
  need(sched_setaffinity(0, sizeof here, &here) == 0, "sched_setaffinity");
  char byte = 0;
  need(write(out, &byte, 1) == 1 && read(in, &byte, 1) == 1, "meet");
  prctl(PR_SET_NAME, name);
  need(write(out, &byte, 1) == 1 && read(in, &byte, 1) == 1, "named");
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  for (int n = 0; n < times; n++) {
    need(write(out, &byte, 1) == 1 && read(in, &byte, 1) == 1, "rally");
  }
  getrusage(RUSAGE_SELF, &after);
  return after.ru_nvcsw - before.ru_nvcsw;
}

static void pair(int times) {
  int there[2], back[2];
  long ping = 0, pong = 0;
  need(pipe(there) == 0 && pipe(back) == 0, "pipe");
  prctl(PR_SET_NAME, "meeting");
  const pid_t child = fork();
  if (child == 0) {
    pong = rally("pong", sysconf(_SC_NPROCESSORS_ONLN) > 1, there[0], back[1], times);
    _exit(write(back[1], &pong, sizeof pong) != sizeof pong);
  }
  ping = rally("ping", 0, back[0], there[1], times);
  need(read(back[0], &pong, sizeof pong) == sizeof pong, "pong");
  int status = 1;
  need(waitpid(child, &status, 0) == child && status == 0, "waitpid");
  prctl(PR_SET_NAME, "numbers");
  printf("ping %ld\npong %ld\n", ping, pong);
}

static int listener(const struct sockaddr* address, socklen_t size) {
  const int made = socket(address->sa_family, SOCK_STREAM, 0);
  need(bind(made, address, size) == 0 && listen(made, 64) == 0, "listen");
  return made;
}

static void connections(int times) {
  struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(9)};
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(7778)};
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  v6.sin6_addr = in6addr_loopback;
  const struct sockaddr *const to4 = (struct sockaddr*)&v4, *const to6 = (struct sockaddr*)&v6;
  for (int n = 0; n < times; n++) {
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    need(connect(client, to4, sizeof v4) != 0 && errno == ECONNREFUSED, "refused");
    close(client);
  }
  v4.sin_port = htons(7777);
  const int first = listener(to4, sizeof v4), second = listener(to6, sizeof v6);
  for (int n = 0; n < times; n++) {
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    need(connect(client, to4, sizeof v4) != 0 && errno == EINPROGRESS, "in progress");
    close(client);
  }
  for (int n = 0; n < times; n++) {
    const int client = socket(AF_INET6, SOCK_STREAM, 0);
    need(connect(client, to6, sizeof v6) == 0, "connect");
    const int accepted = accept(second, NULL, NULL);
    need(accepted >= 0, "accept");
    close(client), close(accepted);
  }
  close(first), close(second);
}

static void chroots(int times) {
  for (int n = 0; n < times; n++) need(chroot("/") == 0, "chroot");
  need(setuid(1000) == 0 && chroot("/") != 0 && errno == EPERM, "refused");
}

int main(int count, char** words) {
  if (count == 3 && strcmp(words[1], "sleeps") == 0) return sleeps(atoi(words[2])), 0;
  if (count == 4 && strcmp(words[1], "faults") == 0) return faults(atoi(words[2]), words[3]), 0;
  if (count == 2 && strcmp(words[1], "spins") == 0) return spins(), 0;
  if (count == 3 && strcmp(words[1], "pair") == 0) return pair(atoi(words[2])), 0;
  if (count == 3 && strcmp(words[1], "connections") == 0) return connections(atoi(words[2])), 0;
  if (count == 3 && strcmp(words[1], "chroots") == 0) return chroots(atoi(words[2])), 0;
  fprintf(stderr, "numbers: what?\n");
  return 1;
}
