/* Calls a function, which passes a static probe, and times it: `user_calls NUMBER` prints how often it
 * has, and how long one call took. `user_calls 0` stays, so that its file is mapped. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline, noclone)) long called(long n) {
  STAP_PROBE1(bench, passed, n);
  return 2 * n;
}

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ll + time.tv_nsec;
}

int main(int count, char **arguments) {
  const long number = count > 1 ? atol(arguments[1]) : 1;
  if (number == 0) pause();
  const long long start = now();
  for (long n = 0; n < number; ++n) {
    if (called(n) != 2 * n) abort();
  }
  printf("call %ld\nns_per_call %lld\n", number, (now() - start) / number);
}
