// workload: makes a known number of known system calls, so that tests can demand exact counts.
// Used by the tests and the demo inside a guest. It prints nothing while it counts; at the end one
// write(2) prints a line "NAME COUNT" for every system call below that it made, summed over all of
// its processes and threads, that write included.
//
// Every call that the program makes itself goes through counted(): what it prints is the truth for
// those names. Calls that the C library adds (images/README.md lists them) are of other names.
// Does not: rename threads, use stdio, or read the clock while it counts (except with --time).

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

enum { kMaxSizes = 32, kMaxThreads = 64, kMaxProcesses = 64, kMaxRead = 1 << 20 };

// The counted calls, in the order in which they are printed.
enum Call {
  kRead,
  kWrite,
  kOpenat,
  kClose,
  kLseek,
  kGetppid,
  kSocket,
  kBind,
  kListen,
  kConnect,
  kAccept4,
  kFstat,
  kGettime,
  kCalls
};
static const char* const kNames[kCalls] = {"read",    "write",  "openat",       "close",  "lseek",
                                           "getppid", "socket", "bind",         "listen", "connect",
                                           "accept4", "fstat",  "clock_gettime"};
static const long kNumbers[kCalls] = {
    SYS_read, SYS_write,  SYS_openat,  SYS_close,   SYS_lseek, SYS_getppid,      SYS_socket,
    SYS_bind, SYS_listen, SYS_connect, SYS_accept4, SYS_fstat, SYS_clock_gettime};

// Shared between the processes of one run.
struct Shared {
  volatile int stop, stop_moving;
  uint64_t calls[kCalls];
  uint64_t rounds, reads_timed, ns_in_reads;
};
static struct Shared* shared;

static struct Options {
  uint64_t reads, writes, opens, getppids, tcp, cpuids;
  uint64_t sizes[kMaxSizes];
  unsigned size_count, processes, threads, seconds;
  int direct, time;
  const char *file, *open_path;
  enum { kPlain, kSecret, kMoving } path_in;
} options = {.sizes = {4096},
             .size_count = 1,
             .processes = 1,
             .threads = 1,
             .file = "/data/input",
             .open_path = "/data/input"};

// The work of one thread; added to `shared` when it is through.
struct Tally {
  uint64_t calls[kCalls];
  uint64_t rounds, reads_timed, ns_in_reads;
};

static long counted(struct Tally* tally, enum Call call, long a, long b, long c, long d) {
  tally->calls[call]++;
  const long result = syscall(kNumbers[call], a, b, c, d);
  if (result < 0) fail(kNames[call]);
  return result;
}

static uint64_t now_ns(struct Tally* tally) {
  struct timespec now;
  counted(tally, kGettime, CLOCK_MONOTONIC, (long)&now, 0, 0);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct ReadFile {
  int fd;
  uint64_t size, at;  // size 0: no end, as of a device
};

static struct ReadFile open_read_file(struct Tally* tally) {
  struct ReadFile file = {.fd = -1};
  if (options.reads == 0) return file;
  struct stat stat;
  const int flags = O_RDONLY | (options.direct ? O_DIRECT : 0);
  file.fd = (int)counted(tally, kOpenat, AT_FDCWD, (long)options.file, flags, 0);
  counted(tally, kFstat, file.fd, (long)&stat, 0, 0);
  if (S_ISREG(stat.st_mode)) file.size = (uint64_t)stat.st_size;
  if (S_ISBLK(stat.st_mode)) file.size = (uint64_t)counted(tally, kLseek, file.fd, 0, SEEK_END, 0);
  file.at = file.size;  // so that the first read goes back to the start
  return file;
}

// Each read asks for the next size of the list and gets it whole: it never crosses the end.
static void do_reads(struct Tally* tally, struct ReadFile* file, char* buffer) {
  const uint64_t start = options.time ? now_ns(tally) : 0;
  unsigned next = 0;
  for (uint64_t i = 0; i < options.reads; i++) {
    const uint64_t size = options.sizes[next];
    next = next + 1 == options.size_count ? 0 : next + 1;
    if (file->size && file->at + size > file->size) {
      counted(tally, kLseek, file->fd, 0, SEEK_SET, 0);
      file->at = 0;
    }
    counted(tally, kRead, file->fd, (long)buffer, (long)size, 0);
    file->at += size;
  }
  if (options.time) {
    tally->ns_in_reads += now_ns(tally) - start;
    tally->reads_timed += options.reads;
  }
}

// One connection over loopback: N of these are N calls of tcp_v4_connect.
static void do_tcp(struct Tally* tally) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  const int type = SOCK_STREAM | SOCK_CLOEXEC;
  const long listener = counted(tally, kSocket, AF_INET, type, 0, 0);
  counted(tally, kBind, listener, (long)&address, sizeof address, 0);
  counted(tally, kListen, listener, 8, 0, 0);
  if (getsockname((int)listener, (struct sockaddr*)&address, &length) != 0) fail("getsockname");
  for (uint64_t i = 0; i < options.tcp; i++) {
    const long client = counted(tally, kSocket, AF_INET, type, 0, 0);
    counted(tally, kConnect, client, (long)&address, sizeof address, 0);
    const long server = counted(tally, kAccept4, listener, 0, 0, SOCK_CLOEXEC);
    counted(tally, kClose, client, 0, 0, 0);
    counted(tally, kClose, server, 0, 0, 0);
  }
  counted(tally, kClose, listener, 0, 0, 0);
}

// Of a leaf that nobody else asks for.
static void do_cpuid(void) {
  unsigned a = 0x5249, b, c = 0, d;
  __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
}

// Where the path of a moving page is gone just then, the call fails.
static void try_open(struct Tally* tally) {
  tally->calls[kOpenat]++;
  const long fd = syscall(SYS_openat, AT_FDCWD, options.open_path, O_RDONLY, 0);
  if (fd >= 0) counted(tally, kClose, fd, 0, 0, 0);
}

static void do_round(struct Tally* tally, struct ReadFile* input, int sink, char* buffer) {
  if (options.reads) do_reads(tally, input, buffer);
  for (uint64_t i = 0; i < options.writes; i++) {
    counted(tally, kWrite, sink, (long)buffer, (long)options.sizes[0], 0);
  }
  for (uint64_t i = 0; i < options.opens; i++) {
    const long path = (long)options.open_path;
    if (options.path_in == kMoving) {
      try_open(tally);
    } else {
      counted(tally, kClose, counted(tally, kOpenat, AT_FDCWD, path, O_RDONLY, 0), 0, 0, 0);
    }
  }
  for (uint64_t i = 0; i < options.getppids; i++) counted(tally, kGetppid, 0, 0, 0, 0);
  if (options.tcp) do_tcp(tally);
  for (uint64_t i = 0; i < options.cpuids; i++) do_cpuid();
  tally->rounds++;
}

static void* work(void* buffer) {
  struct Tally tally = {0};
  struct ReadFile input = open_read_file(&tally);
  int sink = -1;
  if (options.writes) {
    sink = (int)counted(&tally, kOpenat, AT_FDCWD, (long)"/dev/null", O_WRONLY, 0);
  }
  do {
    do_round(&tally, &input, sink, buffer);
  } while (options.seconds && !shared->stop);
  for (int i = 0; i < kCalls; i++)
    __atomic_add_fetch(&shared->calls[i], tally.calls[i], __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&shared->rounds, tally.rounds, __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&shared->reads_timed, tally.reads_timed, __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&shared->ns_in_reads, tally.ns_in_reads, __ATOMIC_SEQ_CST);
  return NULL;
}

// Aligned for O_DIRECT, and touched now so that no page fault comes later.
static char* new_buffer(void) {
  char* buffer = mmap(NULL, kMaxRead, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (buffer == MAP_FAILED) fail("mmap");
  return buffer;
}

enum { kPage = 4096 };

// Takes the page of the path away and brings it back, as long as anybody opens.
static void* move_page(void* page) {
  static char path[kPage];
  strncpy(path, options.open_path, kPage - 1);
  options.open_path = page;
  while (!shared->stop_moving) {
    if (mmap(page, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
        page) {
      fail("mmap");
    }
    strcpy(page, path);
    munmap(page, kPage);
  }
  return NULL;
}

// Puts the path into memory that is not in the kernel's direct map.
static void hide_path(void) {
  const int fd = (int)syscall(SYS_memfd_secret, 0);
  if (fd < 0 || ftruncate(fd, kPage) != 0) fail("memfd_secret");
  char* page = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) fail("mmap");
  options.open_path = strncpy(page, options.open_path, kPage - 1);
}

static pthread_t start_moving(void) {
  pthread_t mover;
  char* page =
      mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) fail("mmap");
  errno = pthread_create(&mover, NULL, move_page, page);
  if (errno) fail("pthread_create");
  while (*(const char* volatile*)&options.open_path != page) {
  }
  return mover;
}

static void run_threads(void) {
  pthread_t threads[kMaxThreads];
  char* buffers[kMaxThreads];
  for (unsigned i = 0; i < options.threads; i++) buffers[i] = new_buffer();
  for (unsigned i = 1; i < options.threads; i++) {
    errno = pthread_create(&threads[i], NULL, work, buffers[i]);
    if (errno) fail("pthread_create");
  }
  work(buffers[0]);
  for (unsigned i = 1; i < options.threads; i++) pthread_join(threads[i], NULL);
}

static void on_alarm(int signal) {
  (void)signal;
  shared->stop = 1;
}

static void start_clock(void) {
  struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
  const struct itimerval timer = {.it_value.tv_sec = options.seconds};
  if (options.seconds == 0) return;
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void report(void) {
  static char text[2048];
  char* at = text;
  shared->calls[kWrite]++;  // the one below
  for (int i = 0; i < kCalls; i++) {
    if (shared->calls[i]) at = put_line(at, kNames[i], shared->calls[i]);
  }
  at = put_line(at, "rounds", shared->rounds);
  if (shared->reads_timed) {
    at = put_line(at, "ns_per_read", shared->ns_in_reads / shared->reads_timed);
  }
  if (syscall(SYS_write, 1, text, at - text) != at - text) fail("write");
}

static _Noreturn void usage(const char* wrong) {
  static const char kText[] =
      ": bad or unknown option\n"
      "usage: workload [--reads N] [--writes N] [--opens N] [--getppid N] [--tcp N]\n"
      "                [--cpuid N]\n"
      "  counts are per thread and round\n"
      "  --read-size B | --read-sizes B,B,...  sizes that the reads cycle through (4096)\n"
      "  --file PATH       what is read (/data/input); --direct reads past the page cache\n"
      "  --open-path PATH  what --opens opens (/data/input)\n"
      "  --path-in secret  that path lies in memory of memfd_secret; moving: in a page that comes\n"
      "                    and goes meanwhile\n"
      "  --processes P --threads T   T threads in each of P processes (1, 1)\n"
      "  --seconds S       repeat the round until S seconds have passed\n"
      "  --time            also print ns_per_read\n";
  syscall(SYS_write, 2, "workload: ", 10);
  syscall(SYS_write, 2, wrong, strlen(wrong));
  syscall(SYS_write, 2, kText, sizeof kText - 1);
  _exit(2);
}

static void parse_sizes(const char* option, const char* text) {
  options.size_count = 0;
  for (char* end = NULL; options.size_count < kMaxSizes; text = end + 1) {
    const uint64_t size = strtoull(text, &end, 10);
    if (end == text || size > kMaxRead) usage(option);
    options.sizes[options.size_count++] = size;
    if (*end == '\0') return;
    if (*end != ',') break;
  }
  usage(option);
}

static uint64_t parse_number(const char* option, const char* text, uint64_t max) {
  char* end = NULL;
  const uint64_t value = strtoull(text, &end, 10);
  if (end == text || *end != '\0' || value > max) usage(option);
  return value;
}

static void parse_options(char** words) {
  static const struct {
    const char* name;
    uint64_t* value;
  } kCounts[] = {{"--reads", &options.reads}, {"--writes", &options.writes},
                 {"--opens", &options.opens}, {"--getppid", &options.getppids},
                 {"--tcp", &options.tcp},     {"--cpuid", &options.cpuids}};
  static const struct {
    const char* name;
    unsigned *value, max;
  } kLimits[] = {{"--processes", &options.processes, kMaxProcesses},
                 {"--threads", &options.threads, kMaxThreads},
                 {"--seconds", &options.seconds, 86400}};
  for (; *words; words++) {
    const char* name = *words;
    if (strcmp(name, "--direct") == 0 || strcmp(name, "--time") == 0) {
      *(strcmp(name, "--time") == 0 ? &options.time : &options.direct) = 1;
      continue;
    }
    const char* value = words[1];
    if (!value) usage(name);
    words++;
    int known = 1;
    if (strcmp(name, "--read-size") == 0 || strcmp(name, "--read-sizes") == 0) {
      parse_sizes(name, value);
    } else if (strcmp(name, "--file") == 0) {
      options.file = value;
    } else if (strcmp(name, "--open-path") == 0) {
      options.open_path = value;
    } else if (strcmp(name, "--path-in") == 0) {
      if (strcmp(value, "secret") != 0 && strcmp(value, "moving") != 0) usage(name);
      options.path_in = *value == 's' ? kSecret : kMoving;
    } else {
      known = 0;
    }
    for (size_t i = 0; i < sizeof kCounts / sizeof *kCounts && !known; i++) {
      if (strcmp(name, kCounts[i].name) != 0) continue;
      *kCounts[i].value = parse_number(name, value, UINT64_MAX);
      known = 1;
    }
    for (size_t i = 0; i < sizeof kLimits / sizeof *kLimits && !known; i++) {
      if (strcmp(name, kLimits[i].name) != 0) continue;
      *kLimits[i].value = (unsigned)parse_number(name, value, kLimits[i].max);
      known = 1;
    }
    if (!known) usage(name);
  }
  if (options.processes == 0 || options.threads == 0) usage("0 processes or threads");
  if (options.path_in == kMoving && options.processes > 1) usage("--path-in moving --processes");
}

int main(int argc, char** argv) {
  (void)argc;
  pid_t children[kMaxProcesses];
  parse_options(argv + 1);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail("mmap");
  if (options.path_in == kSecret) hide_path();
  pthread_t mover;
  if (options.path_in == kMoving) mover = start_moving();
  start_clock();
  for (unsigned i = 1; i < options.processes; i++) {
    children[i] = fork();
    if (children[i] < 0) fail("fork");
    if (children[i] == 0) {
      run_threads();
      _exit(0);
    }
  }
  run_threads();
  int bad = 0;
  for (unsigned i = 1; i < options.processes; i++) {
    int status = 0;
    // The alarm may come here; the wait is then simply taken up again.
    while (waitpid(children[i], &status, 0) < 0 && errno == EINTR) {
    }
    bad |= status != 0;
  }
  shared->stop_moving = 1;
  if (options.path_in == kMoving) pthread_join(mover, NULL);
  if (!bad) report();
  _exit(bad);
}
