// Mutexes and reader-writer locks of a process, a known number of times each: test_plockstat.py
// counts them. "mutexes ROUNDS" prints its number, waits for /tmp/go, works, and prints the
// addresses of its locks.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kWaiters = 3 };

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER,
                       signalled = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive, checked;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static int turn;
static pid_t waiting[kWaiters];

static void expect(int got, int wanted, const char* what) {
  if (got == wanted) return;
  printf("%s: %d\n", what, got);
  exit(1);
}

/// Until the thread sleeps in futex(), which is call 202.
static void await_futex(pid_t* thread) {
  char path[64], text[16];
  for (;;) {
    const pid_t tid = __atomic_load_n(thread, __ATOMIC_ACQUIRE);
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    FILE* const file = tid != 0 ? fopen(path, "r") : NULL;
    const int is_read = file != NULL && fgets(text, sizeof text, file) != NULL;
    if (file != NULL) fclose(file);
    if (is_read && strncmp(text, "202 ", 4) == 0) return;
    usleep(1000);
  }
}

static void* take_mutex(void* number) {
  __atomic_store_n(&waiting[(long)number], gettid(), __ATOMIC_RELEASE);
  pthread_mutex_lock(&held);
  pthread_mutex_unlock(&held);
  return NULL;
}

static void* take_shared(void* number) {
  __atomic_store_n(&waiting[(long)number], gettid(), __ATOMIC_RELEASE);
  if (number == 0) {
    pthread_rwlock_wrlock(&shared);
  } else {
    pthread_rwlock_rdlock(&shared);
  }
  pthread_rwlock_unlock(&shared);
  return NULL;
}

static void let_wait(void* (*take)(void*), void (*release)(void)) {
  pthread_t threads[kWaiters];
  memset(waiting, 0, sizeof waiting);
  for (long n = 0; n < kWaiters; n++) {
    pthread_create(&threads[n], NULL, take, (void*)n);
    await_futex(&waiting[n]);
  }
  release();
  for (int n = 0; n < kWaiters; n++) pthread_join(threads[n], NULL);
}

static void release_mutex(void) { pthread_mutex_unlock(&held); }
static void release_shared(void) { pthread_rwlock_unlock(&shared); }

static void* answer(void* unused) {
  pthread_mutex_lock(&signalled);
  turn = 1;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&signalled);
  return unused;
}

static void wait_for_answer(void) {
  pthread_t thread;
  pthread_mutex_lock(&signalled);
  turn = 0;
  pthread_create(&thread, NULL, answer, NULL);
  while (turn == 0) pthread_cond_wait(&changed, &signalled);
  pthread_mutex_unlock(&signalled);
  pthread_join(thread, NULL);
}

static void one_round(void) {
  const struct timespec past = {0, 0};
  pthread_mutex_lock(&plain);
  expect(pthread_mutex_trylock(&plain), EBUSY, "trylock");
  expect(pthread_mutex_timedlock(&plain, &past), ETIMEDOUT, "timedlock");
  pthread_mutex_unlock(&plain);
  expect(pthread_mutex_trylock(&plain), 0, "trylock");
  pthread_mutex_unlock(&plain);
  expect(pthread_mutex_timedlock(&plain, &past), 0, "timedlock");
  pthread_mutex_unlock(&plain);
  pthread_mutex_lock(&recursive);
  pthread_mutex_lock(&recursive);
  pthread_mutex_unlock(&recursive);
  pthread_mutex_unlock(&recursive);
  pthread_mutex_lock(&checked);
  expect(pthread_mutex_lock(&checked), EDEADLK, "lock");
  pthread_mutex_unlock(&checked);
  expect(pthread_mutex_unlock(&checked), EPERM, "unlock");
  pthread_rwlock_rdlock(&shared);
  pthread_rwlock_rdlock(&shared);
  pthread_rwlock_unlock(&shared);
  pthread_rwlock_unlock(&shared);
  expect(pthread_rwlock_trywrlock(&shared), 0, "trywrlock");
  pthread_rwlock_unlock(&shared);
}

static void set_up(pthread_mutex_t* mutex, int kind) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, kind);
  pthread_mutex_init(mutex, &attributes);
}

int main(int count, char** arguments) {
  const int rounds = count > 1 ? atoi(arguments[1]) : 1;
  set_up(&recursive, PTHREAD_MUTEX_RECURSIVE);
  set_up(&checked, PTHREAD_MUTEX_ERRORCHECK);
  printf("process %d plain %p held %p signalled %p recursive %p checked %p shared %p\n", getpid(),
         (void*)&plain, (void*)&held, (void*)&signalled, (void*)&recursive, (void*)&checked,
         (void*)&shared);
  fflush(stdout);
  while (access("/tmp/go", F_OK) != 0) usleep(1000);
  for (int n = 0; n < rounds; n++) one_round();
  pthread_mutex_lock(&held);
  let_wait(take_mutex, release_mutex);
  pthread_rwlock_wrlock(&shared);
  let_wait(take_shared, release_shared);
  wait_for_answer();
  puts("done");
  return 0;
}
