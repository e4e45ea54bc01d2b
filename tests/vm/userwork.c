/* Does a known number of things that the examples on processes look at: `userwork WORK` goes to the
 * background, says its process number, waits until /tmp/go exists, works, and ends. WORK is one of
 * calls, allocations, locks, threads and names. test_user_examples.py knows the numbers. */
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "told.h"

enum { kTimes = 20, kNap = 10000 };

#define CALLED __attribute__((noinline, noclone))
/* After a call: so it does not become a jump. */
#define RETURNS __asm__ volatile("" : : : "memory")

CALLED long inner(long a) {
  RETURNS;
  return a + 1;
}
/* Ends with a jump to inner(). It keeps a register, so its first instruction is no call. */
CALLED long outer(long a) {
  __asm__ volatile("" : : : "rbx");
  const long first = inner(a);
  return inner(first);
}
CALLED void naps(void) {
  usleep(kNap);
  RETURNS;
}
static void calls(void) {
  for (long n = 0; n < kTimes; ++n) {
    if (outer(n) != n + 2) abort();
    naps();
  }
}

static void *volatile kept;
CALLED void *takes(size_t size) {
  void *const taken = malloc(size);
  RETURNS;
  return taken;
}
CALLED void *clears(size_t number, size_t size) {
  void *const taken = calloc(number, size);
  RETURNS;
  return taken;
}
CALLED void *resizes(void *old, size_t size) {
  void *const taken = realloc(old, size);
  RETURNS;
  return taken;
}
CALLED void keeps(size_t size) {
  kept = malloc(size);
  RETURNS;
}
static void allocations(void) {
  for (int n = 0; n < kTimes; ++n) {
    keeps(1000);
    free(takes(3000));
    kept = clears(7, 100); /* of what was freed: the library has to clear it */
    free(clears(9, 100));
    kept = clears(3, 10);
    kept = resizes(NULL, 500);
    kept = resizes(takes(600), 40);
    free(resizes(takes(200), 100000));
  }
}

static pthread_mutex_t wanted = PTHREAD_MUTEX_INITIALIZER, unwanted = PTHREAD_MUTEX_INITIALIZER;
static atomic_int turn;
static atomic_long waiter;
CALLED void waits(void) {
  pthread_mutex_lock(&wanted);
  RETURNS;
}
static void *wait_each_turn(void *unused) {
  atomic_store(&waiter, syscall(SYS_gettid));
  for (int n = 1; n <= kTimes; ++n) {
    while (atomic_load(&turn) < n) usleep(100);
    waits();
    pthread_mutex_unlock(&wanted);
  }
  return unused;
}
/* Whether the other thread sleeps in the call futex. */
static int is_waiting(void) {
  char path[64], said[16] = "";
  snprintf(path, sizeof path, "/proc/self/task/%ld/syscall", atomic_load(&waiter));
  const int file = open(path, O_RDONLY);
  const ssize_t length = read(file, said, sizeof said - 1);
  close(file);
  return length > 0 && strtol(said, NULL, 10) == SYS_futex;
}
static void locks(void) {
  pthread_t other;
  pthread_create(&other, NULL, wait_each_turn, NULL);
  for (int n = 1; n <= kTimes; ++n) {
    pthread_mutex_lock(&unwanted);
    pthread_mutex_lock(&wanted);
    atomic_store(&turn, n);
    while (!is_waiting()) usleep(100);
    usleep(kNap);
    pthread_mutex_unlock(&wanted);
    pthread_mutex_unlock(&unwanted);
    while (is_waiting()) usleep(100);
  }
  pthread_join(other, NULL);
}

void *runs(void *unused) {
  return unused;
}
void *sleeps(void *unused) {
  usleep(kNap);
  return unused;
}
static void threads(void) {
  for (int n = 0; n < kTimes; ++n) {
    pthread_t one;
    pthread_create(&one, NULL, n % 4 == 0 ? sleeps : runs, NULL);
    pthread_join(one, NULL);
  }
}

static void names(void) {
  for (int n = 0; n < kTimes; ++n) {
    struct addrinfo *found = NULL;
    if (getaddrinfo("localhost", NULL, NULL, &found) != 0) abort();
    freeaddrinfo(found);
    if (getaddrinfo("nobody.invalid", NULL, NULL, &found) == 0) abort();
    if (getaddrinfo(NULL, "80", NULL, &found) != 0) abort();
    freeaddrinfo(found);
  }
  if (gethostbyname("localhost") == NULL) abort();
}

int main(int count, char **arguments) {
  static const struct {
    const char *name;
    void (*work)(void);
  } all[] = {
      {"calls", calls}, {"allocations", allocations}, {"locks", locks}, {"threads", threads}, {"names", names}};
  void (*work)(void) = NULL;
  for (size_t n = 0; n < sizeof all / sizeof *all; ++n) {
    if (count == 2 && strcmp(arguments[1], all[n].name) == 0) work = all[n].work;
  }
  if (work == NULL) return 2;
  go_to_background();
  wait_for_word();
  work();
  return 0;
}
