// System calls: what the user programs can ask for. Arguments come from a user program and are
// checked as such.
#include "kernel.h"

enum { kUserEnd = 0x600000, kMostBytes = 256 };

static uint64_t sys_write(uint64_t from, uint64_t size) {
  if (from >= kUserEnd || size > kMostBytes || from + size > kUserEnd) return (uint64_t)-1;
  print_bytes((const char*)from, size);
  return size;
}

static uint64_t sys_deposit(uint64_t amount) {
  deposit(amount);
  return 0;
}

uint64_t system_call(uint64_t number, uint64_t first, uint64_t second) {
  switch (number) {
    case kSysWrite: return sys_write(first, second);
    case kSysDeposit: return sys_deposit(first);
    case kSysBalance: return read_balance();
    case kSysTaskId: return (uint64_t)this_cpu()->current->id;
    case kSysYield: task_yield(); return 0;
    case kSysExit: task_exit();
    default: return (uint64_t)-1;
  }
}
