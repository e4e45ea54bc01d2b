/* Hangs a guest, or a part of it: test_why.py's program in the guest.
 *   hang realtime CPU   a SCHED_FIFO task that never leaves that CPU
 *   hang spin CPU       a task that never sleeps there
 *   hang crowd N        N processes that sleep, and itself
 *   hang bomb N         N processes that never sleep, all of them at once
 *   hang vfork 0        a parent that waits for a child that never ends
 *   hang eat 0          memory, until it is killed for it, again and again
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void spin(void) {
  for (volatile unsigned long turns = 0;; ++turns) continue;
}

static void say(const char* what) {
  puts(what);
  fflush(stdout);
}

static int spin_on(int cpu, int realtime) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  if (sched_setaffinity(0, sizeof cpus, &cpus) != 0) return 1;
  const struct sched_param priority = {.sched_priority = 50};
  if (realtime && sched_setscheduler(0, SCHED_FIFO, &priority) != 0) return 1;
  say("spins");
  spin();
  return 0;
}

static int many(int count, int busy) {
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child > 0) continue;
    if (busy) spin();
    for (;;) pause();
  }
  say("all are there");
  for (;;) pause();
}

static int wait_for_child(void) {
  say("waits");
  if (vfork() == 0) {
    for (;;) pause();
  }
  return 1;
}

static void eat(void) {
  const size_t piece = 1 << 20;
  for (;;) {
    char* bytes = mmap(NULL, piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes != MAP_FAILED) memset(bytes, 1, piece);
  }
}

static void eat_for_ever(void) {
  for (;;) {
    const pid_t child = fork();
    if (child == 0) eat();
    int status;
    waitpid(child, &status, 0);
  }
}

int main(int count, char** words) {
  if (count != 3) return 2;
  const char* how = words[1];
  const int number = atoi(words[2]);
  if (strcmp(how, "realtime") == 0) return spin_on(number, 1);
  if (strcmp(how, "spin") == 0) return spin_on(number, 0);
  if (strcmp(how, "crowd") == 0) return many(number, 0);
  if (strcmp(how, "bomb") == 0) return many(number, 1);
  if (strcmp(how, "vfork") == 0) return wait_for_child();
  if (strcmp(how, "eat") == 0) eat_for_ever();
  return 2;
}
