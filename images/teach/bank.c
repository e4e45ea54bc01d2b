// An account that several tellers pay into. deposit() reads the balance, writes the entry into the
// journal and stores the new balance; nothing keeps two CPUs from doing that at the same time,
// unless the kernel was told to be careful. That is the race of the lesson.
#include "kernel.h"

enum { kJournal = 64 };

bool careful;

static uint64_t balance;
static uint64_t journal[kJournal];
static uint64_t entries;
static struct lock bank_lock;

__attribute__((noinline)) uint64_t read_balance(void) {
  return *(volatile uint64_t*)&balance;
}

__attribute__((noinline)) static void write_journal(uint64_t amount) {
  journal[__atomic_fetch_add(&entries, 1, __ATOMIC_RELAXED) % kJournal] = amount;
}

__attribute__((noinline)) static void write_balance(uint64_t value) {
  *(volatile uint64_t*)&balance = value;
}

__attribute__((noinline)) void deposit(uint64_t amount) {
  if (careful) lock(&bank_lock);
  const uint64_t before = read_balance();
  write_journal(amount);
  write_balance(before + amount);
  if (careful) unlock(&bank_lock);
}
