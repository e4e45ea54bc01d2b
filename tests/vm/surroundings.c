/* A program that calls its own functions from where debuggers, sandboxes and other kinds of files
 * are around it: `surroundings WAY NUMBER` goes to the background, waits until /tmp/go exists, calls
 * work() so often, and writes how often to /tmp/said. It says the number of the process that calls.
 *
 *   plain       nothing is around it
 *   strict      it may only read, write and exit (seccomp)
 *   namespaces  it is process 1 of a namespace for processes, with other namespaces of its own
 *   memory      it runs from a file that is in no folder (memfd_create)
 *   library     it loads and unloads the library whose function it calls, each time
 *   stepped     a debugger executes its instructions one by one
 *   broken      a debugger has it stop in each call, inside of work(), and steps over that
 *   thread      another thread calls while the first one has ended
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "told.h"

/* Several instructions, so that a breakpoint can stand behind the first one. */
__attribute__((noinline, noclone)) long work(long a, long b) {
  long sum = a + b;
  __asm__ volatile(".globl work_middle\nwork_middle:\n\tadd $1, %0" : "+r"(sum));
  return sum - 1;
}
/* Others around it, so that there is room between them. */
__attribute__((noinline, noclone)) long more_work(long a) {
  return a * a + 1;
}
extern const char work_middle[];

static long called;
static void call(long number) {
  for (long n = 0; n < number; ++n) {
    if (work(n, 3) != n + 3) abort();
    ++called;
  }
}

static void say_calls(long number) {
  FILE *const said = begin_saying();
  fprintf(said, "work %ld\n", number);
  end_saying(said);
}

/* The background's number is that of the caller; the foreground says it and ends. */
static void run_plainly(long number) {
  go_to_background();
  wait_for_word();
  call(number);
  say_calls(called);
}

/* A process beside the one that calls; it does what that one cannot. Each reads one byte of the
 * other's when it may go on. */
struct pair {
  pid_t child;
  int to, from;
};

static struct pair begin_pair(void (*child)(int in, int out, long number), long number, int flags) {
  int down[2], up[2];
  struct pair made;
  if (pipe(down) != 0 || pipe(up) != 0) abort();
  if (flags != 0 && unshare(flags) != 0) abort();
  made.child = fork();
  if (made.child == 0) {
    close(down[1]);
    child(down[0], up[1], number);
    _exit(0);
  }
  made.to = down[1];
  made.from = up[0];
  return made;
}

/* The foreground says the child's number. */
static void go_behind(struct pair pair) {
  if (fork() != 0) {
    printf("process %d\n", pair.child);
    fflush(stdout);
    _exit(0);
  }
}

static long told_by(struct pair pair) {
  long number = -1;
  if (write(pair.to, "", 1) != 1) abort();
  if (read(pair.from, &number, sizeof number) != sizeof number) abort();
  return number;
}

static void call_strictly(int in, int out, long number) {
  char byte;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) _exit(1);
  if (read(in, &byte, 1) != 1) syscall(SYS_exit, 1);
  call(number);
  if (write(out, &called, sizeof called) != sizeof called) syscall(SYS_exit, 1);
  syscall(SYS_exit, 0);
}

static void call_in_namespaces(int in, int out, long number) {
  char byte;
  if (getpid() != 1 || read(in, &byte, 1) != 1) _exit(1);
  call(number);
  if (write(out, &called, sizeof called) != sizeof called) _exit(1);
  /* Its end is the end of all in the namespace: the other one says the calls first. */
  (void)!read(in, &byte, 1);
}

static void run_beside(struct pair pair) {
  go_behind(pair);
  wait_for_word();
  say_calls(told_by(pair));
  close(pair.to);
}

static void run_from_memory(char *number) {
  const int self = open("/proc/self/exe", O_RDONLY), file = memfd_create("surroundings", 0);
  struct stat about;
  if (self < 0 || file < 0 || fstat(self, &about) != 0) abort();
  if (sendfile(file, self, NULL, (size_t)about.st_size) != about.st_size) abort();
  close(self);
  /* A file that is open for writing cannot be executed. */
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  const int readable = open(path, O_RDONLY);
  close(file);
  char *const arguments[] = {"surroundings", "plain", number, NULL}, *const none[] = {NULL};
  fexecve(readable, arguments, none);
  abort();
}

static void run_library(long number) {
  go_to_background();
  wait_for_word();
  for (long n = 0; n < number; ++n) {
    void *const library = dlopen("libadds.so", RTLD_NOW);
    long (*const adds)(long, long) = (long (*)(long, long))dlsym(library, "library_adds");
    if (adds == NULL || adds(n, 3) != n + 3) abort();
    ++called;
    if (dlclose(library) != 0) abort();
  }
  say_calls(called);
}

static void be_debugged(int in, int out, long number) {
  char byte;
  (void)out;
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0 || read(in, &byte, 1) != 1) _exit(1);
  raise(SIGSTOP);
  call(number);
  _exit(called == number ? 0 : 1);
}

/* Until it ends; 0 where it ended well. Whether it stopped. */
static int stops(pid_t child, int *status) {
  if (waitpid(child, status, 0) != child) abort();
  return WIFSTOPPED(*status);
}

static void set_byte(pid_t child, uintptr_t at, unsigned char byte) {
  const uintptr_t word = at & ~(uintptr_t)7;
  long text = ptrace(PTRACE_PEEKTEXT, child, word, NULL);
  ((unsigned char *)&text)[at - word] = byte;
  if (ptrace(PTRACE_POKETEXT, child, word, text) != 0) abort();
}

/* Steps over its breakpoint in each call. */
static void debug(pid_t child, int is_broken) {
  const uintptr_t at = (uintptr_t)work_middle;
  unsigned char byte = 0;
  int status, stop = 0;
  if (!stops(child, &status)) abort();
  if (is_broken) {
    byte = (unsigned char)ptrace(PTRACE_PEEKTEXT, child, at, NULL);
    set_byte(child, at, 0xcc);
  }
  ptrace(is_broken ? PTRACE_CONT : PTRACE_SINGLESTEP, child, NULL, NULL);
  while (stops(child, &status)) {
    stop = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    if (is_broken && stop == 0) {
      struct user_regs_struct registers;
      ptrace(PTRACE_GETREGS, child, NULL, &registers);
      if (registers.rip != at + 1) abort();
      registers.rip = at;
      ptrace(PTRACE_SETREGS, child, NULL, &registers);
      set_byte(child, at, byte);
      ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
      if (!stops(child, &status)) abort();
      set_byte(child, at, 0xcc);
    }
    ptrace(is_broken ? PTRACE_CONT : PTRACE_SINGLESTEP, child, NULL, stop);
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) abort();
}

/* The tracer has to be the parent, so the foreground is another child. */
static void run_debugged(long number, int is_broken) {
  if (fork() == 0) {
    const struct pair pair = begin_pair(be_debugged, number, 0);
    printf("process %d\n", pair.child);
    fflush(stdout);
    const int nowhere = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) dup2(nowhere, fd);
    wait_for_word();
    if (write(pair.to, "", 1) != 1) abort();
    debug(pair.child, is_broken);
    say_calls(number);
  }
}

static void *call_in_thread(void *number) {
  while (access("/tmp/go", F_OK) != 0) poll(NULL, 0, 10);
  call((long)(intptr_t)number);
  say_calls(called);
  exit(0);
}

static void run_in_thread(long number) {
  pthread_t thread;
  go_to_background();
  if (pthread_create(&thread, NULL, call_in_thread, (void *)(intptr_t)number) != 0) abort();
  syscall(SYS_exit, 0); /* pthread_exit() needs a library */
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  const char *const way = arguments[1];
  const long number = atol(arguments[2]);
  if (strcmp(way, "plain") == 0) run_plainly(number);
  if (strcmp(way, "strict") == 0) run_beside(begin_pair(call_strictly, number, 0));
  if (strcmp(way, "namespaces") == 0) {
    run_beside(begin_pair(call_in_namespaces, number, CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS));
  }
  if (strcmp(way, "memory") == 0) run_from_memory(arguments[2]);
  if (strcmp(way, "library") == 0) run_library(number);
  if (strcmp(way, "stepped") == 0) run_debugged(number, 0);
  if (strcmp(way, "broken") == 0) run_debugged(number, 1);
  if (strcmp(way, "thread") == 0) run_in_thread(number);
  return more_work(1) == 2 ? 0 : 1;
}
