/* Calls functions a known number of times, when it is told to: `calls NUMBER [THREADS [PROCESSES]]`
 * goes to the background, says its process number, and waits until /tmp/go exists. Then each thread
 * calls each function so often, and /tmp/said gets the numbers of calls, of all processes. The first
 * instructions of the functions differ: they are what a probe displaces. */
#include <execinfo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "told.h"

static long number;
static atomic_long *called; /* shared by the processes */
long counter = 40, other = 2;

__attribute__((noinline, noclone)) long pushes(long a, long b) {
  __asm__ volatile("" : : : "rbx", "rbp", "memory");
  return a * 2 + b;
}
__attribute__((noinline, noclone)) long adds(long a, long b) {
  __asm__ volatile("" : : : "memory");
  return a + b;
}
/* Its first instruction names memory by its distance. */
__attribute__((noinline, noclone)) long loads(long a) {
  return counter + other * a;
}
/* Two ways out. */
__attribute__((noinline, noclone)) long either(long a) {
  __asm__ volatile("" : : : "memory");
  if ((a & 1) == 0) return 7;
  __asm__ volatile("" : : : "memory");
  return 8;
}
/* Ends with a jump to another function. */
__attribute__((noinline, noclone)) long jumps(long a) {
  return adds(a, 1);
}
__attribute__((noinline, noclone)) long recurses(long a) {
  if (a <= 0) return 0;
  long below = recurses(a - 1);
  __asm__ volatile("" : "+r"(below)); /* else it becomes a loop */
  return below + 1;
}
/* The last two arguments are on the stack. */
__attribute__((noinline, noclone)) long takes(long a, long b, long c, long d, long e, long f, long g, long h) {
  __asm__ volatile("" : : : "memory");
  return a + b + c + d + e + f + g + h;
}
/* Says where it returns to, and ends the program where unwinding from there does not find the caller. */
static __thread void *caller;
__attribute__((noinline, noclone)) void *back(void) {
  void *frames[3] = {0};
  if (backtrace(frames, 3) != 3 || frames[1] != __builtin_return_address(0) || frames[2] != caller) abort();
  return __builtin_return_address(0);
}
/* Calls, directly and through a register; its value tells where the two return to. In its page there
 * is room for all of its instructions. */
#define WITH_ROOM __attribute__((noinline, noclone, section(".text.with_room")))
WITH_ROOM __attribute__((aligned(4096))) long calls(void *(*through)(void)) {
  caller = __builtin_return_address(0);
  const long first = (long)back();
  return 3 * first + (long)through();
}
WITH_ROOM __attribute__((naked)) void room(void) {
  __asm__("ret; .skip 512, 0xcc");
}
static long returns;
static const char *const names[] = {"pushes", "adds", "loads", "either", "jumps", "recurses", "takes", "calls", "back"};
enum { FUNCTIONS = sizeof names / sizeof *names };

static void *work(void *unused) {
  (void)unused;
  for (long n = 0; n < number; ++n) {
    if (pushes(n, 1) != 2 * n + 1 || adds(n, 3) != n + 3 || loads(n) != 40 + 2 * n) abort();
    if (either(n) != 7 + (n & 1) || jumps(n) != n + 1 || recurses(3) != 3) abort();
    if (takes(n, 1, 2, 3, 4, 5, 6, -n) != 21 || calls(back) != returns) abort();
  }
  const long times[FUNCTIONS] = {1, 2, 1, 1, 1, 4, 1, 1, 2};
  for (int n = 0; n < FUNCTIONS; ++n) atomic_fetch_add(&called[n], times[n] * number);
  return NULL;
}

int main(int count, char **arguments) {
  number = count > 1 ? atol(arguments[1]) : 1;
  const int threads = count > 2 ? atoi(arguments[2]) : 1, processes = count > 3 ? atoi(arguments[3]) : 1;
  called = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  go_to_background();
  returns = calls(back); /* before anybody traces it */
  wait_for_word();
  for (int n = 1; n < processes; ++n) {
    if (fork() != 0) continue;
    work(NULL);
    _exit(0);
  }
  pthread_t all[64];
  for (int n = 0; n < threads; ++n) pthread_create(&all[n], NULL, work, NULL);
  for (int n = 0; n < threads; ++n) pthread_join(all[n], NULL);
  while (wait(NULL) > 0) continue;
  FILE *said = begin_saying();
  for (int n = 0; n < FUNCTIONS; ++n) fprintf(said, "%s %ld\n", names[n], (long)called[n]);
  end_saying(said);
  return 0;
}
