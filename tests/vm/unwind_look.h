// The part of unwind.c and unwind_cxx.cc that looks at its own stack: mark() by backtrace(), and by a
// call of close() with a negative number that no program passes, so that a tracer can look, too.
#pragma once

#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>

enum { kMost = 2000, kDeepest = 64, kFirst = 1000, kFirstTick = 2000 };

struct Look {
  int number, count;
  void* frames[kDeepest];
};
static struct Look looks[kMost];
static volatile sig_atomic_t looked, ticks;

static __attribute__((noinline)) void mark(int number) {
  const int n = looked;
  if (n == kMost) return;
  looked = n + 1;
  looks[n].number = number;
  looks[n].count = backtrace(looks[n].frames, kDeepest);
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "0"(SYS_close), "D"(-number) : "rcx", "r11", "memory");
}


static void tick(int number) {
  (void)number;
  const int saved = errno;
  ticks = ticks + 1;
  mark(kFirstTick + ticks);
  errno = saved;
}

/// Calls work() again and again until a timer has interrupted it so often, each at a random moment.
static void look_at_ticks(int count, void (*work)(void)) {
  signal(SIGALRM, tick);
  srand(1);
  while (ticks < count && looked < kMost) {
    const int before = ticks;
    const struct itimerval soon = {{0, 0}, {0, 100 + rand() % 5000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    while (ticks == before) work();
  }
}

/// A line of each look: the number without its sign, and the addresses of backtrace() but the first,
/// which lies in mark() itself.
static void print_looks(void) {
  for (int n = 0; n < looked; ++n) {
    printf("look %d", looks[n].number);
    for (int k = 1; k < looks[n].count; ++k) printf(" %lx", (unsigned long)looks[n].frames[k]);
    printf("\n");
  }
  fflush(stdout);
}
