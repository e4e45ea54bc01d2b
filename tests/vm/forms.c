// A known number of calls, of which each comes once by a function that the compiler has changed:
// the test of their names (test_functions.py) says how many. Any failure is status 1 and a line on
// stderr.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "steps.h"

int main(void) {
  struct sysinfo system;
  struct msqid_ds messages;
  struct statfs files;
  stack_t stack;
  int ends[2], from = 1, to = 0;
  const struct timespec now = {0};
  const struct iovec source = {&from, sizeof from}, target = {&to, sizeof to};
  const int queue = msgget(IPC_PRIVATE, 0600);
  for (int n = 0; n < 11; n++) need(sysinfo(&system) == 0, "sysinfo");
  for (int n = 0; n < 13; n++) need(sigaltstack(NULL, &stack) == 0, "sigaltstack");
  for (int n = 0; n < 9; n++) need(msgctl(queue, IPC_STAT, &messages) == 0, "msgctl");
  for (int n = 0; n < 5; n++) need(pselect(0, NULL, NULL, NULL, &now, NULL) == 0, "pselect");
  for (int n = 0; n < 6; n++) need(statfs("/", &files) == 0, "statfs");
  for (int n = 0; n < 4; n++) {
    need(process_vm_readv(getpid(), &target, 1, &source, 1, 0) == sizeof from, "process_vm_readv");
  }
  for (int n = 0; n < 7; n++) {
    need(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
    close(ends[0]), close(ends[1]);
  }
  // Refused by the function's beginning.
  for (int n = 0; n < 3; n++) need(pipe2(ends, O_TRUNC) != 0 && errno == EINVAL, "pipe2");
  return msgctl(queue, IPC_RMID, NULL);
}
