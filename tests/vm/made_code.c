// Code that is made at run time, with its names in /tmp/perf-PID.map: test_user_symbols.py looks at
// stacks through it. "made_code CALLS" prints its number, waits for /tmp/go, and calls reached()
// so often through each of two functions that it makes; the second one's name is written only then.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile long calls;
__attribute__((noinline, noclone)) void reached(void) { calls++; }

/// push %rbp; mov %rsp, %rbp; movabs $target, %rax; call *%rax; pop %rbp; ret
static void (*make(unsigned char* at, void (*target)(void)))(void) {
  static const unsigned char kBegin[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8};
  static const unsigned char kEnd[] = {0xff, 0xd0, 0x5d, 0xc3};
  memcpy(at, kBegin, sizeof kBegin);
  memcpy(at + sizeof kBegin, &target, sizeof target);
  memcpy(at + sizeof kBegin + sizeof target, kEnd, sizeof kEnd);
  void (*made)(void);
  memcpy(&made, &at, sizeof made);
  return made;
}

int main(int count, char** arguments) {
  const int number = count > 1 ? atoi(arguments[1]) : 1;
  unsigned char* const code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void (*const early)(void) = make(code, reached);
  void (*const late)(void) = make(code + 64, reached);
  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
  FILE* const map = fopen(path, "w");
  fprintf(map, "%lx 12 LazyCompile:*early /srv/app.js:7\n", (unsigned long)code);
  fflush(map);
  printf("process %d\n", getpid());
  fflush(stdout);
  while (access("/tmp/go", F_OK) != 0) usleep(1000);
  for (int n = 0; n < number; n++) early();
  fprintf(map, "%lx 12 late\n", (unsigned long)(code + 64));
  fflush(map);
  for (int n = 0; n < number; n++) late();
  while (access("/tmp/stop", F_OK) != 0) usleep(1000);
  return 0;
}
