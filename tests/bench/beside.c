/* The things that other programs do while one is traced: opens, reads, page faults of a file, new processes. Prints
 * a line "NAME NANOSECONDS" for each, of one such thing. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kTimes = 2000, kPages = 4096, kPage = 4096, kProcesses = 50 };
static const char kFile[] = "/tmp/beside";

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void open_often(int flags) {
  for (int n = 0; n < kTimes; ++n) {
    const int file = open(kFile, flags);
    if (file < 0) abort();
    close(file);
  }
}
static void read_only(void) {
  open_often(O_RDONLY);
}
static void to_write(void) {
  open_often(O_WRONLY);
}
static void read_pages(void) {
  static char page[kPage];
  const int file = open(kFile, O_RDONLY);
  for (int n = 0; n < kTimes; ++n) {
    if (pread(file, page, kPage, (off_t)(n % kPages) * kPage) != kPage) abort();
  }
  close(file);
}
static void touch_pages(void) {
  const int file = open(kFile, O_RDONLY);
  volatile const char *const mapped = mmap(NULL, (size_t)kPages * kPage, PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) abort();
  for (int n = 0; n < kPages; ++n) (void)mapped[(size_t)n * kPage];
  munmap((void *)mapped, (size_t)kPages * kPage);
  close(file);
}
static void run_programs(void) {
  for (int n = 0; n < kProcesses; ++n) {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/proc/self/exe", "beside", "nothing", (char *)NULL);
      _exit(1);
    }
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0) abort();
  }
}

int main(int count, char **arguments) {
  const struct {
    const char *name;
    void (*work)(void);
    int times;
  } all[] = {{"open_to_read", read_only, kTimes},
             {"open_to_write", to_write, kTimes},
             {"read_4_KiB", read_pages, kTimes},
             {"page_of_a_mapped_file", touch_pages, kPages},
             {"vfork_and_exec", run_programs, kProcesses}};
  if (count > 1 && strcmp(arguments[1], "nothing") == 0) return 0;
  if (access(kFile, F_OK) != 0) {
    static const char page[kPage];
    const int file = open(kFile, O_WRONLY | O_CREAT, 0600);
    for (int n = 0; n < kPages; ++n) {
      if (write(file, page, kPage) != kPage) abort();
    }
    close(file);
  }
  for (size_t n = 0; n < sizeof all / sizeof *all; ++n) {
    const long long begun = now();
    all[n].work();
    printf("%s %lld\n", all[n].name, (now() - begun) / all[n].times);
  }
  return 0;
}
