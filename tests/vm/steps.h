// The steps of the programs that do a known number of things (NAME.c): each has to work, and a test
// sees where a new phase begins.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/// Ends the program with status 1 and a line on stderr unless `holds`.
static inline void need(int holds, const char* what) {
  if (holds) return;
  perror(what);
  exit(1);
}

/// Begins a phase with getppid(), which the program calls for nothing else. Words of the phase
/// before are written first.
static inline void phase(void) {
  fflush(stdout);
  syscall(SYS_getppid);
}
