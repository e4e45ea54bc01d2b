// unwind: a program without frame pointers whose stack is walked twice (unwind_look.h).
// `unwind TICKS`: at known places, then at TICKS random moments of work in the C library.

#include "unwind_look.h"

#include <search.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int next = kFirst;
static volatile sig_atomic_t quiet;
static void mark_next(void) {
  if (!quiet) mark(next++);
}

static int wanted;
static int compare(const void* a, const void* b) {
  if (wanted) {
    wanted = 0;
    mark_next();
  }
  return *(const int*)a - *(const int*)b;
}

static void visit(const void* node, VISIT which, int depth) {
  (void)node;
  if (which == postorder && depth == 0) mark_next();
}

static __attribute__((noinline)) int recurse(int depth, int value) {
  volatile char room[100];
  room[value % 100] = (char)depth;
  if (depth == 0) {
    mark_next();
    return room[value % 100];
  }
  return recurse(depth - 1, value + 1) + room[value % 100];
}

/// The stack is aligned to 64 bytes, for which the compiler needs a register for the frame.
static __attribute__((noinline)) int aligned(int value) {
  _Alignas(64) volatile char room[64];
  char moving[value + 1];
  memset(moving, value, sizeof moving);
  room[0] = moving[value];
  mark_next();
  return room[0];
}

static void in_signal(int number) {
  (void)number;
  mark_next();
}

static void sort(int* numbers, int count) {
  for (int n = 0; n < count; ++n) numbers[n] = n * 7919 % count;
  qsort(numbers, (size_t)count, sizeof *numbers, compare);
}

static volatile double sink;
static void work(void) {
  static int numbers[500];
  char text[200];
  sort(numbers, 500);
  snprintf(text, sizeof text, "%d %s %.10g", numbers[3], "text", 1.0 / (1 + numbers[5]));
  sink = strtod("3.14159e10", NULL) + strlen(text);
  struct timespec now;
  for (int n = 0; n < 50; ++n) clock_gettime(CLOCK_MONOTONIC, &now);
  for (int n = 0; n < 50; ++n) getppid();
  char* const copy = strdup(text);
  free(copy);
  sink += recurse(3, 3) + aligned(20);
}

static void at_known_places(void) {
  static int numbers[100];
  static char alternate[1 << 16];
  mark_next();
  (void)recurse(20, 1);
  (void)aligned(30);
  wanted = 1;
  sort(numbers, 100);
  void* tree = NULL;
  tsearch(&numbers[1], &tree, compare);
  twalk(tree, visit);
  wanted = 1;
  (void)bsearch(&numbers[7], numbers, 100, sizeof *numbers, compare);
  signal(SIGUSR1, in_signal);
  raise(SIGUSR1);
  const stack_t stack = {alternate, 0, sizeof alternate};
  sigaltstack(&stack, NULL);
  const struct sigaction action = {.sa_handler = in_signal, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR2, &action, NULL);
  raise(SIGUSR2);
}

int main(int argc, char** argv) {
  mark(1);  // backtrace() loads what it needs when it is first called
  at_known_places();
  quiet = 1;
  look_at_ticks(argc > 1 ? atoi(argv[1]) : 0, work);
  print_looks();
  return 0;
}
