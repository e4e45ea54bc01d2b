// Brings about paging, ICMP and timers of TCP, as far as a program can bring it about on a loopback: the
// test of it (test_counters.py) compares with the kernel's own counters. Any failure is status 1 and a
// line on stderr.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/swap.h>
#include <unistd.h>

#include "steps.h"

enum { kPage = 4096, kPaged = 64, kClosed = 9, kRefused = 6 };

/// Pages go to a swap device, and come back. The layout is that of union swap_header
/// (include/linux/swap.h).
static void paging(const char* disk) {
  static char first[kPage];
  const int device = open(disk, O_RDWR);
  need(device >= 0, "open");
  const uint32_t version = 1, last = (uint32_t)(lseek(device, 0, SEEK_END) / kPage - 1);
  memcpy(first + 1024, &version, 4);
  memcpy(first + 1028, &last, 4);
  memcpy(first + kPage - 10, "SWAPSPACE2", 10);
  need(pwrite(device, first, kPage, 0) == kPage && fsync(device) == 0, "pwrite");
  close(device);
  need(swapon(disk, 0) == 0, "swapon");
  char* const memory =
      mmap(NULL, kPaged * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  need(memory != MAP_FAILED && madvise(memory, kPaged * kPage, MADV_NOHUGEPAGE) == 0, "mmap");
  for (int i = 0; i < kPaged; i++) memory[i * kPage] = (char)(i + 1);
  // The first time a page is written out and stays in memory until somebody wants that. The second
  // time it is the same as on the disk, and goes at once.
  for (int times = 0; times < 3; times++) {
    need(madvise(memory, kPaged * kPage, MADV_PAGEOUT) == 0, "madvise");
    usleep(300000);
    for (int i = 0; i < kPaged; i++) need(memory[i * kPage] == (char)(i + 1), "another page came back");
  }
  need(swapoff(disk) == 0, "swapoff");
}

static struct sockaddr_in local(unsigned port) {
  const struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  return address;
}

/// Each datagram to a port that nobody has is answered by ICMP.
static void refused_datagrams(void) {
  const struct sockaddr_in nobody = local(kClosed);
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  need(connect(fd, (const void*)&nobody, sizeof nobody) == 0, "connect");
  for (int i = 0; i < kRefused; i++) {
    char byte;
    need(send(fd, "x", 1, 0) == 1, "send");
    need(recv(fd, &byte, 1, 0) < 0, "recv");
  }
  close(fd);
}

static void set(int fd, int level, int option, int value) {
  need(setsockopt(fd, level, option, &value, sizeof value) == 0, "setsockopt");
}

/// Both ends of a connection.
static void connected(int ends[2]) {
  struct sockaddr_in here = local(0);
  socklen_t size = sizeof here;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  need(bind(listener, (void*)&here, size) == 0 && listen(listener, 1) == 0, "listen");
  need(getsockname(listener, (void*)&here, &size) == 0, "getsockname");
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  need(connect(ends[0], (void*)&here, size) == 0, "connect");
  ends[1] = accept(listener, NULL, NULL);
  need(ends[1] >= 0, "accept");
  close(listener);
}

/// A connection that nobody uses is asked for once a second.
static void keepalive(void) {
  int ends[2];
  connected(ends);
  set(ends[0], IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(ends[0], IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(ends[0], SOL_SOCKET, SO_KEEPALIVE, 1);
  usleep(2600000);
  close(ends[0]);
  close(ends[1]);
}

/// The other end throws away all that comes: it is sent again, until the sender gives up.
static void retransmission(void) {
  struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  const struct sock_fprog filter = {1, &nothing};
  int ends[2];
  char byte;
  connected(ends);
  need(setsockopt(ends[1], SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0, "filter");
  set(ends[0], IPPROTO_TCP, TCP_USER_TIMEOUT, 2000);
  need(send(ends[0], "x", 1, 0) == 1, "send");
  need(recv(ends[0], &byte, 1, 0) < 0, "recv");  // ETIMEDOUT
  // Or it would send its own end again, later.
  set(ends[1], SOL_SOCKET, SO_DETACH_FILTER, 0);
  close(ends[0]);
  close(ends[1]);
}

// The word after its name is a disk that may be overwritten; without it nothing is paged.
int main(int count, char** words) {
  if (count > 1) paging(words[1]);
  refused_datagrams();
  keepalive();
  retransmission();
  return 0;
}
