// breakpoints ROUNDS: takes int3s of its own beside a tracer, and says whether each came as it
// should. Made by test_as_is.py and put into a guest's initrd.
// One process has a SIGTRAP handler and executes `int3` and `int $3` in turn; a debugger beside it
// puts a breakpoint into a child, lets it run into it, takes it out and steps over the place, as
// often. Prints "traps N", "steps N" and "wrong N", which counts whatever was not as expected.

#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static volatile uint64_t expected, traps, wrong;

static void on_trap(int number, siginfo_t *info, void *context) {
  (void)number, (void)info;
  const ucontext_t *at = context;
  ++traps;
  if ((uint64_t)at->uc_mcontext.gregs[REG_RIP] != expected) ++wrong;
}

static void trap(long rounds) {
  struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
  sigaction(SIGTRAP, &action, NULL);
  const int all = PROT_READ | PROT_WRITE | PROT_EXEC;
  uint8_t *code = mmap(NULL, 4096, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(code, "\xcc\xc3", 2);           // int3; ret
  memcpy(code + 16, "\xcd\x03\xc3", 3);  // int $3; ret
  for (long n = 0; n < rounds; ++n) {
    expected = (uint64_t)code + 1;
    ((void (*)(void))(uintptr_t)code)();
    expected = (uint64_t)code + 18;
    ((void (*)(void))(uintptr_t)(code + 16))();
  }
}

__attribute__((noinline, aligned(16))) static void victim(void) {
  __asm__ volatile("nop; nop; nop; nop");
}

static int stopped_by_trap(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
}

static uint64_t debug(long rounds) {
  uint64_t bad = 0;
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    for (;;) victim();
  }
  waitpid(child, NULL, 0);
  const uint64_t at = (uint64_t)(uintptr_t)victim;
  const uint64_t original = (uint64_t)ptrace(PTRACE_PEEKTEXT, child, at, 0);
  for (long n = 0; n < rounds; ++n) {
    struct user_regs_struct registers;
    ptrace(PTRACE_POKETEXT, child, at, (original & ~UINT64_C(255)) | 0xcc);
    ptrace(PTRACE_CONT, child, 0, 0);
    if (!stopped_by_trap(child)) ++bad;
    ptrace(PTRACE_GETREGS, child, 0, &registers);
    if (registers.rip != at + 1) ++bad;
    ptrace(PTRACE_POKETEXT, child, at, original);
    registers.rip = at;
    ptrace(PTRACE_SETREGS, child, 0, &registers);
    ptrace(PTRACE_SINGLESTEP, child, 0, 0);
    if (!stopped_by_trap(child)) ++bad;
    ptrace(PTRACE_GETREGS, child, 0, &registers);
    if (registers.rip <= at || registers.rip > at + 8) ++bad;
  }
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  return bad;
}

int main(int count, char **words) {
  const long rounds = count > 1 ? atol(words[1]) : 0;
  int ends[2];
  if (rounds < 1 || pipe(ends) != 0) return 2;
  if (fork() == 0) {
    const uint64_t bad = debug(rounds);
    return write(ends[1], &bad, sizeof bad) != sizeof bad;
  }
  trap(rounds);
  uint64_t bad = 1;
  const int told = read(ends[0], &bad, sizeof bad) == sizeof bad;
  int status = 1;
  wait(&status);
  printf("traps %lu\nsteps %ld\nwrong %lu\n", (unsigned long)traps, told ? rounds : 0,
         (unsigned long)(wrong + bad));
  return status != 0 || wrong + bad != 0;
}
