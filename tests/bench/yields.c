// Yields the processor as often as it is told and prints how long one takes, in ns, for
// tests/bench/stable.
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int count, char** words) {
  const long yields = count > 1 ? atol(words[1]) : 1;
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (long i = 0; i < yields; i++) sched_yield();
  clock_gettime(CLOCK_MONOTONIC, &end);
  const double ns = 1e9 * (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec);
  printf("ns_per_yield %ld\n", (long)(ns / (double)yields));
  return 0;
}
