// How the programs of the images fail, and the lines of their results. Without stdio, which makes
// calls that nobody asked for.
#pragma once

#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE before the first #include"
#endif
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

// Says "PROGRAM: WHAT: REASON" by errno, and ends the process.
static inline _Noreturn void fail(const char* what) {
  const char* why = strerror(errno);
  char text[256] = "";
  strncat(text, program_invocation_short_name, 50);
  strcat(text, ": ");
  strncat(text, what, 100);
  strcat(text, ": ");
  strncat(text, why, 90);
  strcat(text, "\n");
  if (write(2, text, strlen(text)) < 0) _exit(2);
  _exit(1);
}

// Writes a line "NAME VALUE" at `at`; returns its end.
static inline char* put_line(char* at, const char* name, uint64_t value) {
  char digits[24];
  char* first = digits + sizeof digits - 1;
  *first = '\0';
  do {
    *--first = (char)('0' + value % 10);
    value /= 10;
  } while (value);
  return stpcpy(stpcpy(stpcpy(stpcpy(at, name), " "), first), "\n");
}
