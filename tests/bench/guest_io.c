// The measurements of tests/bench/nested from inside its guest; runs as its first program.
//   guest_io ports N           ns for one read of a port of the first serial line, which every VMM
//                              answers itself
//   guest_io disk PATH MIB     MiB/s in blocks of 1 MiB and requests/s in blocks of 4 KiB, read and
//                              written, past the page cache
// Prints lines "NAME VALUE". A program's own `in` and `out` are no way to measure here: once a VMM
// has written a vCPU's segments back, QEMU 7.2's translated SVM faults on them.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { kBlock = 1 << 20, kSmall = 4096, kSmallCount = 300 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int fail(const char* what) {
  perror(what);
  return 1;
}

// The driver reads the modem status register once per request; the call itself is noise beside it.
static int measure_ports(long count) {
  const int line = open("/dev/ttyS0", O_RDWR | O_NOCTTY);
  if (line < 0) return fail("/dev/ttyS0");
  const double start = now();
  for (long i = 0; i < count; i++) {
    int bits;
    if (ioctl(line, TIOCMGET, &bits) != 0) return fail("TIOCMGET");
  }
  printf("port_read_ns %.0f\n", (now() - start) * 1e9 / (double)count);
  return 0;
}

// One pass of `count` transfers of `size` bytes; small ones are scattered by a fixed rule.
static int transfer(int disk, int writing, char* buffer, size_t size, long count, long blocks) {
  for (long i = 0; i < count; i++) {
    const long block = size == kSmall ? (long)((uint64_t)i * 7919 % (uint64_t)blocks) : i;
    const off_t at = (off_t)block * (off_t)size;
    const ssize_t done = writing ? pwrite(disk, buffer, size, at) : pread(disk, buffer, size, at);
    if (done != (ssize_t)size) return 0;
  }
  return 1;
}

static int measure_disk(const char* path, long mib) {
  const int disk = open(path, O_RDWR | O_DIRECT);
  char* buffer;
  if (disk < 0) return fail(path);
  if (posix_memalign((void**)&buffer, kSmall, kBlock) != 0) return fail("memory");
  memset(buffer, 0x5a, kBlock);
  for (int writing = 0; writing < 2; writing++) {
    const char* verb = writing ? "write" : "read";
    double start = now();
    if (!transfer(disk, writing, buffer, kBlock, mib, mib)) return fail(verb);
    printf("disk_%s_mib_per_s %.1f\n", verb, (double)mib / (now() - start));
    start = now();
    if (!transfer(disk, writing, buffer, kSmall, kSmallCount, mib * (kBlock / kSmall))) {
      return fail(verb);
    }
    printf("disk_%s_4k_per_s %.0f\n", verb, kSmallCount / (now() - start));
  }
  return 0;
}

int main(int count, char** words) {
  if (count == 3 && strcmp(words[1], "ports") == 0) return measure_ports(atol(words[2]));
  if (count == 4 && strcmp(words[1], "disk") == 0) return measure_disk(words[2], atol(words[3]));
  fputs("Usage: guest_io ports N | guest_io disk PATH MIB\n", stderr);
  return 2;
}
