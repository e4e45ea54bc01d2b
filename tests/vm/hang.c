/* Hangs a guest, or a part of it: test_why.py's program in the guest.
 *   hang realtime CPU   a SCHED_FIFO task that never leaves that CPU
 *   hang spin CPU       a task that never sleeps there
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char** words) {
  if (count != 3) return 2;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(atoi(words[2]), &cpus);
  if (sched_setaffinity(0, sizeof cpus, &cpus) != 0) return 1;
  const struct sched_param priority = {.sched_priority = 50};
  if (strcmp(words[1], "realtime") == 0 && sched_setscheduler(0, SCHED_FIFO, &priority) != 0) {
    return 1;
  }
  puts("spins");
  fflush(stdout);
  for (volatile unsigned long turns = 0;; ++turns) continue;
}
