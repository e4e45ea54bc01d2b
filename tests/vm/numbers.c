// A known number of one thing, for the tests of the scripts in examples/. Any failure is status 1
// and a line on stderr.
//   numbers sleeps TIMES       sleeps so often
//   numbers faults PAGES DISK  touches so many new pages of memory, and 5 that only a disk has;
//                              what the kernel counted meanwhile is printed
//   numbers spins              runs its own code alone, for a second of a processor
//   numbers chroots TIMES      asks so often as root, and once as somebody who may not
// While pages are touched the program's name is "faulting".
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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
}

static void chroots(int times) {
  for (int n = 0; n < times; n++) need(chroot("/") == 0, "chroot");
  need(setuid(1000) == 0 && chroot("/") != 0 && errno == EPERM, "refused");
}

int main(int count, char** words) {
  if (count == 3 && strcmp(words[1], "sleeps") == 0) return sleeps(atoi(words[2])), 0;
  if (count == 4 && strcmp(words[1], "faults") == 0) return faults(atoi(words[2]), words[3]), 0;
  if (count == 2 && strcmp(words[1], "spins") == 0) return spins(), 0;
  if (count == 3 && strcmp(words[1], "chroots") == 0) return chroots(atoi(words[2])), 0;
  fprintf(stderr, "numbers: what?\n");
  return 1;
}
