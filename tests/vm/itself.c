// A program that says what it is, for the test of what the stable providers' types say of it
// (test_itself.py). Its phases begin with getppid(). Any failure is status 1 and a line on stderr.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "steps.h"

enum { kPage = 4096, kStream = 20, kFrom = 7101, kTo = 7102 };

static void end_well(pid_t process) {
  int status = 1;
  need(waitpid(process, &status, 0) == process && status == 0, "child");
}

// A terminal without anybody at its other end; descriptors of its two ends.
static int terminal(int* other) {
  *other = posix_openpt(O_RDWR | O_NOCTTY);
  need(*other >= 0 && grantpt(*other) == 0 && unlockpt(*other) == 0, "terminal");
  return open(ptsname(*other), O_RDWR);
}

static void* wait_for_ever(void* unused) {
  for (;;) pause();
  return unused;
}

// A process with a session, a terminal, threads and a child of its own, and four different owners.
static _Noreturn void somebody(pid_t parent) {
  int master;
  struct stat tty;
  struct rusage children;
  struct timespec used;
  pthread_t thread;
  const struct sched_param none = {0};
  need(setsid() == getpid(), "setsid");
  need(fstat(terminal(&master), &tty) == 0, "tty");
  const pid_t child = fork();
  if (child == 0) {
    while (clock() < CLOCKS_PER_SEC / 10) continue;
    _exit(0);
  }
  end_well(child);
  for (int n = 0; n < 2; n++)
    need(pthread_create(&thread, NULL, wait_for_ever, NULL) == 0, "thread");
  need(sched_setscheduler(0, SCHED_BATCH, &none) == 0, "batch");
  need(setpriority(PRIO_PROCESS, 0, 3) == 0, "nice");
  need(setresgid(77, 78, 79) == 0 && setresuid(66, 67, 68) == 0, "owners");
  need(getrusage(RUSAGE_CHILDREN, &children) == 0, "getrusage");
  printf("ids %d %d %d %d\nowners 66 67 77 78\nlwps 3\nclass BATCH 3\n", getpid(), parent,
         getpgid(0), getsid(0));
  printf("tty %u %u\n", major(tty.st_rdev), minor(tty.st_rdev));
  printf("children %lld\n", (children.ru_utime.tv_sec + children.ru_stime.tv_sec) * 1000000LL +
                                children.ru_utime.tv_usec + children.ru_stime.tv_usec);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  printf("used %lld\n", used.tv_sec * 1000000000LL + used.tv_nsec);
  phase();
  _exit(7);
}

static volatile sig_atomic_t seen;
static void on_signal(int signal, siginfo_t* about, void* unused) {
  (void)signal, (void)about, (void)unused;
  seen++;
}

static void handle(int signal, int flags) {
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags};
  need(sigaction(signal, &action, NULL) == 0, "sigaction");
}

static void signals(int ignored) {
  const union sigval value = {.sival_int = 5};
  int status = 0;
  handle(SIGCHLD, SA_RESTART);
  const pid_t child = fork();
  if (child == 0) _exit(9);
  need(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 9, "child");
  printf("about %d 0 %d %d\n", SIGCHLD, CLD_EXITED, 9);
  signal(SIGCHLD, SIG_DFL);
  handle(SIGUSR1, 0);
  need(sigqueue(getpid(), SIGUSR1, value) == 0 && seen == 2, "sigqueue");
  signal(SIGUSR2, SIG_IGN);
  for (int n = 0; n < ignored; n++) kill(getpid(), SIGUSR2);
}

// The kernel keeps to the lock for writing where a stack is next, which might grow into the hole.
static void downgrades(int times) {
  need(mmap(NULL, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED, "mmap");
  for (int n = 0; n < times; n++) {
    char* const memory = mmap(NULL, 3 * kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(memory != MAP_FAILED && munmap(memory, 3 * kPage) == 0, "munmap");
  }
}

static void wait_for_read(pid_t process) {
  char path[64], text[64] = "";
  snprintf(path, sizeof path, "/proc/%d/syscall", process);
  while (strncmp(text, "0 ", 2) != 0) {
    usleep(1000);
    const int file = open(path, O_RDONLY);
    need(file >= 0 && read(file, text, sizeof text - 1) > 0, "syscall");
    close(file);
  }
}

static pid_t reader(int from) {
  char byte;
  const pid_t child = fork();
  if (child == 0) _exit(read(from, &byte, 1) < 0 && errno == EINTR ? 0 : 1);
  wait_for_read(child);
  return child;
}

// Who reads a terminal has its lock as long as nothing comes; the next ones wait for the lock.
static void interrupted(int times) {
  int master;
  const int tty = terminal(&master);
  const pid_t first = reader(tty);
  for (int n = 0; n < times; n++) {
    const pid_t next = reader(tty);
    kill(next, SIGUSR1);
    end_well(next);
  }
  kill(first, SIGUSR1);
  end_well(first);
}

static struct sockaddr_in at(int port) {
  return (struct sockaddr_in){.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void set(int socket, int level, int option, int value) {
  need(setsockopt(socket, level, option, &value, sizeof value) == 0, "setsockopt");
}

static unsigned half(const unsigned char* from) {
  return from[0] << 8 | from[1];
}

// Whatever a raw socket receives begins with the IP header, as it came.
static void datagram(void) {
  unsigned char packet[256];
  const struct sockaddr_in from = at(kFrom), to = at(kTo);
  const int out = socket(AF_INET, SOCK_DGRAM, 0), in = socket(AF_INET, SOCK_DGRAM, 0);
  const int raw = socket(AF_INET, SOCK_RAW, IPPROTO_UDP);
  set(out, IPPROTO_IP, IP_TOS, 0x10), set(out, IPPROTO_IP, IP_TTL, 33);
  set(out, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
  need(bind(out, (const struct sockaddr*)&from, sizeof from) == 0, "bind");
  need(bind(in, (const struct sockaddr*)&to, sizeof to) == 0, "bind");
  need(connect(in, (const struct sockaddr*)&from, sizeof from) == 0, "connect");
  need(sendto(out, packet, 50, 0, (const struct sockaddr*)&to, sizeof to) == 50, "sendto");
  need(recv(in, packet, sizeof packet, 0) == 50, "recv");
  need(recv(raw, packet, sizeof packet, 0) == 20 + 8 + 50, "raw");
  const unsigned char* const udp = packet + 20;
  printf("ipv4 %d %d %d %u %u %u %u %d %d %u\n", packet[0] >> 4, 4 * (packet[0] & 15), packet[1],
         half(packet + 2), half(packet + 4), half(packet + 6) >> 13, half(packet + 6) & 0x1fff,
         packet[8], packet[9], half(packet + 10));
  printf("udp %u %u %u %u\n", half(udp), half(udp + 2), half(udp + 4), half(udp + 6));
  close(out), close(in), close(raw);
}

static void datagram6(void) {
  const struct sockaddr_in6 to = {
      .sin6_family = AF_INET6, .sin6_port = htons(kTo), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  char packet[256] = {0};
  const int out = socket(AF_INET6, SOCK_DGRAM, 0), in = socket(AF_INET6, SOCK_DGRAM, 0);
  set(out, IPPROTO_IPV6, IPV6_TCLASS, 0x28), set(out, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 44);
  set(out, IPPROTO_IPV6, 70 /* IPV6_AUTOFLOWLABEL */, 0);
  need(bind(in, (const struct sockaddr*)&to, sizeof to) == 0, "bind");
  need(sendto(out, packet, 30, 0, (const struct sockaddr*)&to, sizeof to) == 30, "sendto");
  need(recv(in, packet, sizeof packet, 0) == 30, "recv");
  close(out), close(in);
}

static unsigned sequence(int socket, int queue) {
  unsigned number = 0;
  socklen_t size = sizeof number;
  set(socket, IPPROTO_TCP, TCP_REPAIR_QUEUE, queue);
  need(getsockopt(socket, IPPROTO_TCP, TCP_QUEUE_SEQ, &number, &size) == 0, "sequence");
  return number;
}

static void exchange(int from, int to, size_t bytes) {
  static char data[8192];
  need(write(from, data, bytes) == (ssize_t)bytes, "write");
  need(recv(to, data, bytes, MSG_WAITALL) == (ssize_t)bytes, "recv");
}

static void stream(void) {
  struct tcp_info about;
  struct sockaddr_in to = at(kTo), own;
  socklen_t size = sizeof about, own_size = sizeof own;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  set(listener, SOL_SOCKET, SO_REUSEADDR, 1);
  need(bind(listener, (const struct sockaddr*)&to, sizeof to) == 0 && listen(listener, 1) == 0,
       "listen");
  need(dup2(socket(AF_INET, SOCK_STREAM, 0), kStream) == kStream, "dup2");
  need(connect(kStream, (const struct sockaddr*)&to, sizeof to) == 0, "connect");
  const int peer = accept(listener, NULL, NULL);
  exchange(kStream, peer, 5000), exchange(peer, kStream, 300), exchange(kStream, peer, 700);
  need(getsockname(kStream, (struct sockaddr*)&own, &own_size) == 0, "getsockname");
  set(kStream, IPPROTO_TCP, TCP_REPAIR, 1);
  const unsigned sent = sequence(kStream, TCP_SEND_QUEUE), got = sequence(kStream, TCP_RECV_QUEUE);
  need(getsockopt(kStream, IPPROTO_TCP, TCP_INFO, &about, &size) == 0, "TCP_INFO");
  printf("tcp %u %u 127.0.0.1 127.0.0.1 %u %u\n", ntohs(own.sin_port), kTo, sent, got);
  printf("limits %u %u %u %u %u\n", about.tcpi_snd_mss, about.tcpi_snd_cwnd * about.tcpi_snd_mss,
         about.tcpi_snd_wscale, about.tcpi_rcv_wscale, about.tcpi_rto / 1000);
  phase();
  set(kStream, IPPROTO_TCP, TCP_REPAIR, 0);
  close(kStream), close(peer), close(listener);
}

int main(void) {
  int status = 0;
  const pid_t own = getpid(), child = fork();
  if (child == 0) somebody(own);
  need(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7, "somebody");
  signals(5);
  phase();
  downgrades(12);
  phase();
  interrupted(3);
  datagram();
  datagram6();
  stream();
  return 0;
}
