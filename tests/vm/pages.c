/* Calls functions that stand in pages far from all else: `pages NUMBER [WAY]` goes to the background,
 * says its process number, and then, each time that /tmp/go.PID appears, calls each function so often,
 * and /tmp/said.PID gets the number of calls of each. The ways:
 *
 *   given     after the calls it gives its pages back, so that the kernel may give them up; the default
 *   swapped   its pages are copies of its own, which are swapped out when it waits
 *   later     they are not before the first calls
 *   moved     before the first calls it moves the pages to memory that is no file's, as programs do
 *             that want large pages
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static void *page_of(int function) {
  return (void *)(uintptr_t)all[function];
}

static void copy(void *page) {
  if (mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) abort();
  *(volatile char *)page = *(volatile char *)page;
  if (mprotect(page, 4096, PROT_READ | PROT_EXEC) != 0) abort();
}

/* The kernel may keep one for a reason of its own. */
static void swap_out(void *page) {
  unsigned char resident = 1;
  for (int n = 0; n < 50 && (resident & 1); ++n) {
    if (madvise(page, 4096, MADV_PAGEOUT) != 0 || mincore(page, 4096, &resident) != 0) abort();
    usleep(10000);
  }
}

static void move(void *page) {
  void *to = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (to == MAP_FAILED) abort();
  memcpy(to, page, 4096);
  if (mprotect(to, 4096, PROT_READ | PROT_EXEC) != 0) abort();
  if (mremap(to, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, page) != page) abort();
}

static void with_each(void (*what)(void *page)) {
  for (int f = 0; f < FUNCTIONS; ++f) what(page_of(f));
}

static void give_back(void *page) {
  madvise(page, 4096, MADV_DONTNEED);
}

int main(int count, char **arguments) {
  const long number = count > 1 ? atol(arguments[1]) : 1;
  const char *const way = count > 2 ? arguments[2] : "given";
  const int is_swapped = strcmp(way, "swapped") == 0, is_later = strcmp(way, "later") == 0;
  int is_to_move = strcmp(way, "moved") == 0;
  go_to_background();
  if (is_swapped || is_later) with_each(copy);
  if (is_swapped) with_each(swap_out);
  char go[32], saying[32], said[32];
  snprintf(go, sizeof go, "/tmp/go.%d", getpid());
  snprintf(saying, sizeof saying, "/tmp/saying.%d", getpid());
  snprintf(said, sizeof said, "/tmp/said.%d", getpid());
  for (;;) {
    while (unlink(go) != 0) usleep(10000);
    if (is_to_move) with_each(move);
    is_to_move = 0;
    for (long n = 0; n < number; ++n) {
      for (int f = 0; f < FUNCTIONS; ++f) {
        if (all[f](n, 1) != 2 * n + 1) abort();
      }
    }
    if (is_swapped || is_later) with_each(swap_out);
    if (strcmp(way, "given") == 0) with_each(give_back);
    FILE *file = fopen(saying, "w");
    fprintf(file, "first %ld\nsecond %ld\nthird %ld\n", number, number, number);
    fclose(file);
    rename(saying, said);
  }
}
