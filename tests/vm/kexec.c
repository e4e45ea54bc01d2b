/* Inside a guest: starts another kernel without a reset, and watches that kernel's memory.
 *
 *   kexec start KERNEL INITRD COMMANDLINE   boots KERNEL now, if the system can
 *   kexec load KERNEL INITRD COMMANDLINE    loads KERNEL as the crash kernel (kdump), for which the
 *                                           system has set memory aside (crashkernel=)
 *   kexec watch SECONDS FIRST LAST          takes most of the free memory, fills it, and reads it
 *                                           again and again; prints `pages N`, how many of the pages
 *                                           at the physical addresses from FIRST to before LAST
 *                                           (hexadecimal) it had, and `changed N`, how many words of
 *                                           all its memory did not stay as they were
 *
 * For test_kexec.py, which compiles it and packs it with a kernel. Needs root.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/kexec.h>
#include <linux/reboot.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, LEFT_FREE = 48 << 20 };

static void fail(const char* what) {
  fprintf(stderr, "kexec: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void load(const char* kernel, const char* initrd, const char* command_line,
                 unsigned long flags) {
  int kernel_fd = open(kernel, O_RDONLY), initrd_fd = open(initrd, O_RDONLY);
  if (kernel_fd < 0 || initrd_fd < 0) fail("open");
  if (syscall(SYS_kexec_file_load, kernel_fd, initrd_fd, strlen(command_line) + 1, command_line,
              flags) != 0) {
    fail("kexec_file_load");
  }
}

static void start(const char* kernel, const char* initrd, const char* command_line) {
  load(kernel, initrd, command_line, 0);
  syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_KEXEC, NULL);
  fail("reboot");
}

/* How many of the pages behind `memory` lie at physical addresses from `first` to before `last`. */
static unsigned long pages_between(const uint64_t* memory, size_t bytes, uint64_t first,
                                   uint64_t last) {
  int map = open("/proc/self/pagemap", O_RDONLY);
  if (map < 0) fail("pagemap");
  unsigned long found = 0;
  for (size_t at = 0; at < bytes; at += PAGE) {
    uint64_t entry;
    off_t offset = (off_t)(((uintptr_t)memory + at) / PAGE * sizeof entry);
    if (pread(map, &entry, sizeof entry, offset) != sizeof entry) fail("pagemap");
    uint64_t physical = (entry & ((1ull << 55) - 1)) * PAGE;
    found += entry >> 63 && physical >= first && physical < last;
  }
  close(map);
  return found;
}

static uint64_t pattern(size_t word) { return (word + 1) * 0x9e3779b97f4a7c15u; }

static void watch(unsigned seconds, uint64_t first, uint64_t last) {
  struct sysinfo info;
  sysinfo(&info);
  if (info.freeram <= 2 * LEFT_FREE) {
    errno = ENOMEM;
    fail("watch");
  }
  size_t bytes = (info.freeram - LEFT_FREE) / PAGE * PAGE, words = bytes / sizeof(uint64_t);
  uint64_t* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  for (size_t i = 0; i < words; i++) memory[i] = pattern(i);
  printf("pages %lu\n", pages_between(memory, bytes, first, last));
  unsigned long changed = 0;
  time_t end = time(NULL) + seconds;
  do {
    for (size_t i = 0; i < words; i++) {
      if (memory[i] == pattern(i)) continue;
      changed++;
      memory[i] = pattern(i);
    }
  } while (time(NULL) < end);
  printf("changed %lu\n", changed);
}

int main(int count, char** words) {
  if (count == 5 && strcmp(words[1], "start") == 0) {
    start(words[2], words[3], words[4]);
  } else if (count == 5 && strcmp(words[1], "load") == 0) {
    load(words[2], words[3], words[4], KEXEC_FILE_ON_CRASH);
  } else if (count == 5 && strcmp(words[1], "watch") == 0) {
    watch((unsigned)atoi(words[2]), strtoull(words[3], NULL, 16), strtoull(words[4], NULL, 16));
  } else {
    fputs("usage: kexec start|load KERNEL INITRD COMMANDLINE | watch SECONDS FIRST LAST\n", stderr);
    return 2;
  }
  return 0;
}
