// Threads that need one process's mmap_lock at once, for reading and for writing: the test of
// lockstat (test_locks.py) counts who waits.
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>

enum { kThreads = 3, kSmall = 8192, kLarge = 8 << 20 };

static void* protect(void* unused) {
  char* const memory = mmap(NULL, kSmall, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 3000; i++) mprotect(memory, kSmall, i % 2 ? PROT_READ : PROT_NONE);
  return unused;
}

int main(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; i++) pthread_create(&threads[i], NULL, protect, NULL);
  for (int i = 0; i < 40; i++) {
    char* const memory = mmap(NULL, kLarge, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    munmap(memory, kLarge);
  }
  for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
  return 0;
}
