// hardware COUNT ADDRESS...: sets a hardware breakpoint of its own on each kernel instruction at these
// addresses (hexadecimal), one after the other, and calls pread(2) COUNT times meanwhile. Prints how
// often each was come by: "hits N". Made by test_jumps.py and put into a guest's initrd.

#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "steps.h"

int main(int count, char** words) {
  need(count > 2, "arguments");
  const int file = open("/dev/zero", O_RDONLY);
  need(file >= 0, "open");
  for (int n = 2; n < count; ++n) {
    struct perf_event_attr attributes = {.type = PERF_TYPE_BREAKPOINT,
                                         .size = sizeof attributes,
                                         .bp_type = HW_BREAKPOINT_X,
                                         .bp_addr = strtoull(words[n], NULL, 16),
                                         .bp_len = sizeof(long)};
    const long event = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
    need(event >= 0, "perf_event_open");
    char byte;
    for (int reads = atoi(words[1]); reads > 0; --reads) need(pread(file, &byte, 1, 0) == 1, "pread");
    uint64_t hits;
    need(read((int)event, &hits, sizeof hits) == sizeof hits, "read");
    printf("hits %llu\n", (unsigned long long)hits);
    fflush(stdout);
    need(close((int)event) == 0, "close");
  }
  return 0;
}
