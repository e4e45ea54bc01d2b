// dynamic: a dynamically linked, position-independent program that is known by its dynamic symbols,
// with frame pointers, so that tests can demand exact names of what is on its stack.
// `dynamic READS [SECONDS]`: main() calls dyn_outer(), that calls dyn_inner(), which makes READS
// read(2)s of 777 bytes through the C library; prints where those functions and the library's
// read() lie, a line "NAME ADDRESS" each, before that; and sleeps SECONDS after it.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kReadSize = 777 };

// Global and never inlined: only such functions are in the dynamic symbol table. Code after each
// call keeps it from becoming a jump, which leaves no frame.
int dyn_inner(int fd, int reads);
int dyn_outer(int fd, int reads);

__attribute__((noinline)) int dyn_inner(int fd, int reads) {
  char buffer[kReadSize];
  int done = 0;
  for (int i = 0; i < reads; ++i) done += read(fd, buffer, sizeof buffer) == kReadSize;
  return done;
}

__attribute__((noinline)) int dyn_outer(int fd, int reads) {
  const int done = dyn_inner(fd, reads);
  __asm__ volatile("");
  return done;
}

int main(int argc, char** argv) {
  const int reads = argc > 1 ? atoi(argv[1]) : 1;
  const int seconds = argc > 2 ? atoi(argv[2]) : 0;
  const int fd = open("/dev/zero", O_RDONLY);
  if (fd < 0) return 1;
  printf("dyn_inner %p\ndyn_outer %p\nread %p\n", (void*)dyn_inner, (void*)dyn_outer, (void*)read);
  fflush(stdout);
  if (dyn_outer(fd, reads) != reads) return 2;
  if (seconds > 0) sleep((unsigned)seconds);
  return 0;
}
