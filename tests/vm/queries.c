/* A server of queries, with the static probes of PostgreSQL's: `postgres NUMBER` goes to the
 * background, says its process number, and waits until /tmp/go exists. Then so many children answer
 * two queries each: one of a millisecond and one of 40. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <unistd.h>

#include "told.h"

/* The text is in memory that the process has written, as a query that came over a connection. */
__attribute__((noinline)) static void answer(const char *text, int ms) {
  char query[64];
  snprintf(query, sizeof query, "%s", text);
  STAP_PROBE1(postgresql, query__start, query);
  poll(NULL, 0, ms);
  STAP_PROBE1(postgresql, query__done, query);
}

int main(int count, char **arguments) {
  const int number = count > 1 ? atoi(arguments[1]) : 1;
  go_to_background();
  wait_for_word();
  for (int n = 0; n < number; ++n) {
    if (fork() != 0) continue;
    answer("select 1", 1);
    answer("select sum(n) from numbers", 40);
    _exit(0);
  }
  while (wait(NULL) > 0) continue;
  rename("/tmp/go", "/tmp/done");
  return 0;
}
