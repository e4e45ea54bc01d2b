// A known number of locks that are taken and waited for, in phases that begin with getppid(): the
// test of lockstat (test_locks.py) says how many. Any failure is status 1 and a line on stderr.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "steps.h"

static char state_of(pid_t process) {
  char path[64], text[512] = {0};
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  const int file = open(path, O_RDONLY);
  need(file >= 0 && read(file, text, sizeof text - 1) > 0, "state");
  close(file);
  return strrchr(text, ')')[2];
}

static pid_t reader(int log) {
  char line[8192];
  const pid_t child = fork();
  if (child == 0) _exit(read(log, line, sizeof line) > 0 ? 0 : 1);
  return child;
}

// Until it sleeps so, or has ended: the kernel's own messages wake a reader, too.
static char wait_for(pid_t process, char state) {
  char seen;
  while ((seen = state_of(process)) != state && seen != 'Z') usleep(1000);
  return seen;
}

static void end_well(pid_t process) {
  int status = 1;
  need(waitpid(process, &status, 0) == process && status == 0, "reader");
}

// The kernel drops what a program writes into its log beyond ten lines in five seconds, and says
// nothing; a reader would wait for ever.
static void write_without_limit(void) {
  const int limit = open("/proc/sys/kernel/printk_devkmsg", O_WRONLY);
  need(limit >= 0 && write(limit, "on\n", 3) == 3, "printk_devkmsg");
  close(limit);
}

// A reader of the kernel's log sleeps with the lock of the file's position, a mutex. The second one
// waits for that: 1; or the first was gone already: 0.
static int contend(int log, int kmsg) {
  const pid_t first = reader(log);
  wait_for(first, 'S');
  const pid_t second = reader(log);
  int blocked = 0;
  while (!blocked && state_of(first) != 'Z') {
    blocked = state_of(second) == 'D' && usleep(2000) == 0 && state_of(second) == 'D';
  }
  if (blocked) usleep(20000);
  need(write(kmsg, "one\n", 4) == 4, "kmsg");
  end_well(first);
  wait_for(second, 'S');
  need(write(kmsg, "two\n", 4) == 4, "kmsg");
  end_well(second);
  return blocked;
}

int main(void) {
  char line[8192];
  write_without_limit();
  const int log = open("/proc/kmsg", O_RDONLY | O_NONBLOCK);  // 3: the test looks at its lock
  const int kmsg = open("/dev/kmsg", O_WRONLY);
  int ends[2];
  sigset_t one;
  need(log == 3 && kmsg >= 0 && pipe(ends) == 0, "open");
  while (read(log, line, sizeof line) > 0) continue;
  need(errno == EAGAIN && fcntl(log, F_SETFL, 0) == 0, "drain");
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  char* const memory = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  phase();  // 1
  for (int i = 0; i < 20; i++) {
    need(write(ends[1], line, 1) == 1 && read(ends[0], line, 1) == 1, "pipe");
  }
  phase();  // 2
  for (int i = 0; i < 30; i++) sigprocmask(i % 2 ? SIG_UNBLOCK : SIG_BLOCK, &one, NULL);
  phase();  // 3
  for (int i = 0; i < 24; i++) need(mprotect(memory, 8192, i % 2 ? 1 : 3) == 0, "mprotect");
  for (int i = 0; i < 15; i++) need(mincore(memory, 4096, (unsigned char*)line) == 0, "mincore");
  phase();  // 4
  int rounds = 0;
  for (int blocked = 0; blocked < 5; rounds++) blocked += contend(log, kmsg);
  phase();  // 5
  printf("reads %d\n", rounds * 2);
  return 0;
}
