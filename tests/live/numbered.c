// numbered: reads and writes by turns, n bytes each time, for n = 1, 2, 3... So who traces it knows
// of each call which one it is. After each write its timer slack, which it has no use for, is n: so
// who looks into its task_struct knows how far it is. Ends when /tmp/go is gone.
// Used inside a guest by random_sets_test.cc, which sends it over the command port: no C library.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { kAskEvery = 1024 };

static long call(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c)
                   : "rcx", "r11", "memory");
  return result;
}

// The linker's name for where a program begins.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
_Noreturn void _start(void) {
  static char buffer[1];  // /dev/null looks at none of it
  const long null = call(SYS_open, (long)"/dev/null", O_RDWR, 0);
  for (long n = 1; n % kAskEvery != 0 || call(SYS_access, (long)"/tmp/go", 0, 0) == 0; ++n) {
    call(SYS_read, null, (long)buffer, n);
    call(SYS_write, null, (long)buffer, n);
    call(SYS_prctl, PR_SET_TIMERSLACK, n, 0);
  }
  call(SYS_exit_group, 0, 0, 0);
  __builtin_unreachable();
}
