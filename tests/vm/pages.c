/* Calls functions that stand in pages far from all else: `pages NUMBER` goes to the background, says
 * its process number, and then, each time that /tmp/go.PID appears, calls each function so often,
 * gives its pages back, and /tmp/said.PID gets the number of calls of each. So the kernel may give up
 * these pages while the process waits. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <unistd.h>

#include "told.h"

/* More than the kernel maps around a fault, and more than it reads ahead. */
#define FAR __asm__(".text\n.fill 262144, 1, 0xcc\n.p2align 12\n");
/* The function, with a static probe, one behind it that leaves room, and a symbol at the end of its page. */
#define ALONE(name)                                                                       \
  FAR __attribute__((noinline, noclone, aligned(4096))) long name(long a, long b) {       \
    STAP_PROBE1(pages, passed, a);                                                        \
    return a * 2 + b;                                                                     \
  }                                                                                       \
  __attribute__((noinline, noclone, used)) long name##_room(long a) {                     \
    __asm__ volatile("" : : : "memory");                                                  \
    return a - 1;                                                                         \
  }                                                                                       \
  __asm__(".text\n.p2align 12\n.type " #name "_end, @function\n" #name "_end: ret\n");

ALONE(first)
ALONE(second)
ALONE(third)
FAR

static long (*volatile const all[])(long, long) = {first, second, third};
enum { FUNCTIONS = sizeof all / sizeof *all };

int main(int count, char **arguments) {
  const long number = count > 1 ? atol(arguments[1]) : 1;
  go_to_background();
  char go[32], saying[32], said[32];
  snprintf(go, sizeof go, "/tmp/go.%d", getpid());
  snprintf(saying, sizeof saying, "/tmp/saying.%d", getpid());
  snprintf(said, sizeof said, "/tmp/said.%d", getpid());
  for (;;) {
    while (unlink(go) != 0) usleep(10000);
    for (long n = 0; n < number; ++n) {
      for (int f = 0; f < FUNCTIONS; ++f) {
        if (all[f](n, 1) != 2 * n + 1) abort();
      }
    }
    for (int f = 0; f < FUNCTIONS; ++f) madvise((void *)(uintptr_t)all[f], 4096, MADV_DONTNEED);
    FILE *file = fopen(saying, "w");
    fprintf(file, "first %ld\nsecond %ld\nthird %ld\n", number, number, number);
    fclose(file);
    rename(saying, said);
  }
}
