/* Debian's libasmjit.a is made for programs: it expects stderr near its own code, where a shared
 * library does not have it. The linker (--wrap) gives all of libringside this copy, which is only
 * used by what aborts when an internal rule is broken. */
#include <stdio.h>

extern FILE* __real_stderr;
FILE* __wrap_stderr;

__attribute__((constructor)) static void copy_stderr(void) {
  __wrap_stderr = __real_stderr;
}
