/* Calls static functions, which nobody names once it is stripped: `hidden NUMBER` goes to the
 * background, says its process number, and waits until /tmp/go exists. Then it calls them so often,
 * and /tmp/said gets the number of calls. With OTHER it is another build of the same program. With GAP
 * its unwind tables are far from all that it touches. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "told.h"

#ifdef GAP
const char gap[1 << 20] = {1}; /* between strings and tables */
#endif
#ifdef OTHER
enum { ADDED = 7 };
#else
enum { ADDED = 3 };
#endif

static __attribute__((noinline, noclone)) long inner(long a) {
  __asm__ volatile("" : : : "memory");
  return a + ADDED;
}

static __attribute__((noinline, noclone)) long outer(long a) {
  const long twice = 2 * inner(a);
  __asm__ volatile("" : : : "memory");
  return twice + 1;
}

int main(int count, char **arguments) {
  const long number = count > 1 ? atol(arguments[1]) : 1;
  go_to_background();
  wait_for_word();
  for (long n = 0; n < number; ++n) {
    if (outer(n) != 2 * (n + ADDED) + 1) abort();
  }
  FILE *said = begin_saying();
  fprintf(said, "inner %ld\n", number);
  end_saying(said);
  return 0;
}
