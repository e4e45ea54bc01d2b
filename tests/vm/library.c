/* A library for the tests of probes on processes: cc -shared -DLIBRARY makes it, and without that
 * the program that uses it. `library NUMBER` waits until /tmp/go exists, calls the library's
 * function so often, and prints how often; `library NUMBER churn` forks and runs itself meanwhile,
 * with signals at its first instructions; `library NUMBER copy` gets a page of the library's text for
 * itself before it calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

long library_adds(long a, long b);

#ifdef LIBRARY
long library_adds(long a, long b) {
  return a + b;
}
/* Others around it, so that there is room between them. */
long library_doubles(long a) {
  return 2 * a;
}
long library_halves(long a) {
  return a / 2;
}
#else
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void call(long number) {
  for (long n = 0; n < number; ++n) {
    if (library_adds(n, 3) != n + 3) abort();
  }
}
static volatile sig_atomic_t signals;
static void count_signal(int number) {
  (void)number;
  ++signals;
}
static void wait_for_word(void) {
  while (access("/tmp/go", F_OK) != 0) usleep(10000);
}

/* Children of all kinds: they call and end, run another program, or are killed. */
static void churn(long number) {
  char text[32];
  snprintf(text, sizeof text, "%ld", number);
  for (int n = 0; n < 8; ++n) {
    const pid_t child = n % 2 == 0 ? fork() : vfork();
    if (child != 0) continue;
    if (n % 2 == 1) {
      execl("/proc/self/exe", "library", text, (char *)NULL);
      _exit(1);
    }
    call(number);
    _exit(0);
  }
  call(number);
  for (int status = 0; wait(&status) > 0;) {
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) abort();
  }
}

/* Writes to the page of the function, so that the kernel copies it for this process. */
static void copy_page(void) {
  unsigned char *const page = (unsigned char *)((uintptr_t)&library_adds & ~(uintptr_t)4095);
  if (mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) abort();
  volatile unsigned char *const last = page + 4095;
  *last = *last;
  if (mprotect(page, 4096, PROT_READ | PROT_EXEC) != 0) abort();
}

int main(int count, char **arguments) {
  const long number = count > 1 ? atol(arguments[1]) : 1;
  const char *const how = count > 2 ? arguments[2] : "";
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = count_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
  wait_for_word();
  if (strcmp(how, "copy") == 0) copy_page();
  if (strcmp(how, "churn") == 0) {
    const struct itimerval often = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &often, NULL);
    churn(number);
    printf("calls %ld\n", 5 * number); /* the others say theirs */
    return 0;
  }
  call(number);
  printf("calls %ld\n", number);
  return 0;
}
#endif
