// gap CPUS: how long a guest's CPUs stand still, by its own clock. Made by test_deaths.py and put
// into a guest's initrd.
// On each CPU a thread that goes before all others calls the kernel every millisecond and looks at
// the clock. The longest time between two looks lies in /tmp/gap; `gap` alone prints it, in
// nanoseconds, and begins anew.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic uint64_t* largest;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void* watch(void* cpu) {
  const struct sched_param first = {.sched_priority = 1};
  const struct timespec pause = {.tv_nsec = 1000000};
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET((int)(intptr_t)cpu, &here);
  if (sched_setaffinity(0, sizeof here, &here) != 0) exit(1);
  if (sched_setscheduler(0, SCHED_FIFO, &first) != 0) exit(1);
  for (uint64_t last = now();;) {
    syscall(SYS_getppid);
    nanosleep(&pause, NULL);
    const uint64_t time = now(), gap = time - last;
    for (uint64_t seen = *largest; gap > seen;) {
      if (atomic_compare_exchange_weak(largest, &seen, gap)) break;
    }
    last = time;
  }
  return NULL;
}

int main(int count, char** words) {
  const int file = open("/tmp/gap", O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, sizeof *largest) != 0) return 1;
  largest = mmap(NULL, sizeof *largest, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (largest == MAP_FAILED) return 1;
  if (count < 2) {
    printf("gap %llu\n", (unsigned long long)atomic_exchange(largest, 0));
    return 0;
  }
  for (int cpu = 0; cpu < atoi(words[1]); ++cpu) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, watch, (void*)(intptr_t)cpu) != 0) return 1;
  }
  pause();
}
