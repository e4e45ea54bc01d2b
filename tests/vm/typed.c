/* Calls functions with typed arguments a known number of times, when it is told to: `typed NUMBER` goes
 * to the background, says its process number, and waits until /tmp/go exists; /tmp/said says that it is
 * through. Compiled with -g. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "told.h"

enum kind { PLAIN, URGENT };
struct address {
  char host[12];
  unsigned port;
};
struct request {
  int id;
  enum kind kind;
  unsigned tries : 3, size : 13;
  struct address from;
  const char *path;
  long times[3];
  struct request *next;
};

long total;

__attribute__((noinline, noclone)) struct request *handle(struct request *request, signed char weight,
                                                          const char *name) {
  total += request->id * weight + name[0];
  return request->next;
}
__attribute__((noinline, noclone)) double share(int part, double of, int rest) {
  return part / of + rest;
}

int main(int count, char **arguments) {
  const long number = count > 1 ? atol(arguments[1]) : 1;
  go_to_background();
  wait_for_word();
  struct request last = {.id = -2, .path = "/last", .kind = PLAIN};
  struct request first = {.id = 41,
                          .kind = URGENT,
                          .tries = 5,
                          .size = 4097,
                          .from = {"example", 8080},
                          .path = "/index.html",
                          .times = {1, -20, 300},
                          .next = &last};
  for (long n = 0; n < number; ++n) {
    if (handle(&first, -3, "name") != &last || share(1, 2, 3) != 3.5) abort();
  }
  FILE *said = begin_saying();
  fprintf(said, "handled %ld\n", number);
  end_saying(said);
  pause();
}
