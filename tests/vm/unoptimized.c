/* Functions for a compiler that does not optimize (-O0): it leaves no unused bytes between them.
 * `unoptimized NUMBER` goes to the background, says its process number, and waits until /tmp/go
 * exists. Then two threads call each function so often, and /tmp/said gets the numbers. */
#include <pthread.h>
#include <stdlib.h>

#include "told.h"

static long number;

long either(long a) {
  if ((a & 1) == 0) return 7;
  return 8;
}
long recurses(long a) {
  return a <= 0 ? 0 : recurses(a - 1) + 1;
}
/* The last two arguments are on the stack. */
long takes(long a, long b, long c, long d, long e, long f, long g, long h) {
  return a + b + c + d + e + f + g + h;
}
long outer(long a) {
  return takes(a, 1, 2, 3, 4, 5, 6, -a);
}

static void *work(void *unused) {
  for (long n = 0; n < number; ++n) {
    if (either(n) != 7 + (n & 1) || recurses(3) != 3 || outer(n) != 21) abort();
  }
  return unused;
}

int main(int count, char **arguments) {
  number = count > 1 ? atol(arguments[1]) : 1;
  go_to_background();
  wait_for_word();
  pthread_t other;
  if (pthread_create(&other, NULL, work, NULL) != 0) abort();
  work(NULL);
  pthread_join(other, NULL);
  FILE *const said = begin_saying();
  fprintf(said, "either %ld\nrecurses %ld\ntakes %ld\nouter %ld\n", 2 * number, 8 * number, 2 * number, 2 * number);
  end_saying(said);
  return 0;
}
