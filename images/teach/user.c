// The two user programs. They live in user memory (section .user) and reach the kernel by system
// calls alone; each task has its own stack and runs them with interrupts on.
#include "kernel.h"

static inline uint64_t call(uint64_t number, uint64_t first, uint64_t second) {
  uint64_t result;
  __asm__ volatile("syscall"
                   : "=a"(result), "+D"(first), "+S"(second)
                   : "a"(number)
                   : "rcx", "rdx", "r8", "r9", "r10", "r11", "memory");
  return result;
}

static void say(const char* text) {
  uint64_t size = 0;
  while (text[size]) ++size;
  call(kSysWrite, (uint64_t)text, size);
}

// Pays 1 into the account, `deposits` times.
void teller(uint64_t deposits) {
  for (uint64_t n = 0; n < deposits; ++n) call(kSysDeposit, 1, 0);
  say("teller: done\n");
  call(kSysExit, 0, 0);
}

// Looks at the balance now and then.
void auditor(uint64_t looks) {
  for (uint64_t n = 0; n < looks; ++n) {
    call(kSysBalance, 0, 0);
    call(kSysYield, 0, 0);
  }
  say("auditor: done\n");
  call(kSysExit, 0, 0);
}
