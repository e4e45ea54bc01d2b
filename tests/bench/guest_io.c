// What the guest of tests/bench/nested measures from inside; runs as its first program.
//   guest_io ports N           ns for one write to port 0x80, which every VMM answers itself
//   guest_io disk PATH MIB     MiB/s in blocks of 1 MiB and requests/s in blocks of 4 KiB, read and
//                              written, past the page cache
// Prints lines "NAME VALUE". Under a translated SVM a program's `out` now and then faults although
// the port is permitted; such a one is repeated.

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <time.h>
#include <unistd.h>

enum { kBlock = 1 << 20, kSmall = 4096, kSmallCount = 300, kMostFaults = 1000 };

static volatile sig_atomic_t faults;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int fail(const char* what) {
  perror(what);
  return 1;
}

// Returning makes the `out` happen again.
static void on_fault(int signal) {
  static const char kTooMany[] = "guest_io: port 0x80 cannot be written\n";
  (void)signal;
  if (++faults < kMostFaults) return;
  (void)!write(2, kTooMany, sizeof kTooMany - 1);
  _exit(1);
}

static int measure_ports(long count) {
  if (ioperm(0x80, 1, 1) != 0) return fail("ioperm");
  signal(SIGSEGV, on_fault);
  const double start = now();
  for (long i = 0; i < count; i++) outb((unsigned char)i, 0x80);
  printf("port_write_ns %.0f\n", (now() - start) * 1e9 / (double)count);
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
