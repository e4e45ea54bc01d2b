/* Passes static probes a known number of times, when it is told to: `static_probes NUMBER` goes to
 * the background, says its process number, and waits until /tmp/go exists. /tmp/said gets how often
 * it has passed which probe, and how often it found each semaphore raised. `static_probes` alone
 * says whether they are raised, at once. */
#define _SDT_HAS_SEMAPHORES 1
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SEMAPHORE(name) \
  unsigned short name##_semaphore __attribute__((unused, section(".probes"), visibility("hidden")))
SEMAPHORE(sample_asked);
SEMAPHORE(sample_counted);
SEMAPHORE(sample_twice__passed);
#include <sys/sdt.h>

#include "told.h"

volatile long asked, total;

__attribute__((noinline, noclone)) void pass(long n, const char *name) {
  static struct {
    int small;
    unsigned char byte;
  } at;
  at.small = (int)-n;
  at.byte = (unsigned char)n;
  if (sample_asked_semaphore) {
    asked = asked + 1;
    STAP_PROBE2(sample, asked, n, name);
  }
  STAP_PROBE5(sample, counted, (short)-n, (unsigned char)n, name, at.small, 7);
}

/* Two places, one probe. */
__attribute__((noinline, noclone)) void twice(long n) {
  volatile long here = n * 3;
  STAP_PROBE1(sample, twice__passed, here);
  total = total + here;
  STAP_PROBE1(sample, twice__passed, total);
}

int main(int count, char **arguments) {
  if (count < 2) {
    printf("asked %d\ncounted %d\n", sample_asked_semaphore, sample_counted_semaphore);
    return 0;
  }
  const long number = atol(arguments[1]);
  go_to_background();
  wait_for_word();
  for (long n = 0; n < number; ++n) {
    pass(n, n % 2 == 0 ? "even" : "odd");
    twice(n);
  }
  FILE *said = begin_saying();
  fprintf(said, "asked %ld\ncounted %ld\ntwice %ld\nsemaphore %d\n", asked, number, 2 * number,
          sample_asked_semaphore);
  end_saying(said);
  pause();
}
