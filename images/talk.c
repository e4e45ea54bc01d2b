// talk: one process sends to another, by a pipe, a socket pair or TCP over loopback. A workload of
// the labs (docs/labs/) and of their tests. The processes have the names `sender` and `receiver`,
// and count their calls of read(2) and write(2). At the end the sender takes the name `talk` again
// and prints a line "NAME COUNT" for `writes` and `reads` of both ends, `bytes` received, and
// `ns_per_message`.
//
//   talk pipe|unix|tcp [--messages N] [--size B] [--room B] [--answer]
//
// A write waits until it has handed over its whole message, so each message is one write. How many
// reads it takes depends on how the processes take turns. With --answer, the receiver sends each
// message back and the sender waits for it. --room sets the bytes that a pipe or a socket's send
// buffer can hold. Does not: use stdio, or read the clock while it sends.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

enum { kMaxSize = 1 << 20, kPort = 7000 };

static struct Options {
  const char* by;
  uint64_t messages, size, room;
  int answer;
} options = {.messages = 1000, .size = 4096};

// An end reads from one descriptor and writes to the other; a socket is both.
struct End {
  int in, out;
};

struct Counts {
  uint64_t reads, writes, bytes;
};

// Shared, so that the receiver's counts reach the sender.
static void* shared_memory(size_t size) {
  void* memory =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  return memory;
}

static void send_message(struct End end, const char* buffer, struct Counts* counts) {
  const ssize_t sent = write(end.out, buffer, options.size);
  if (sent != (ssize_t)options.size) fail("write");
  counts->writes++;
}

// Reads one message, in as many parts as it comes; 0 at the end of all messages.
static int receive_message(struct End end, char* buffer, struct Counts* counts) {
  for (uint64_t got = 0; got < options.size;) {
    const ssize_t part = read(end.in, buffer + got, options.size - got);
    if (part < 0) fail("read");
    counts->reads++;
    counts->bytes += (uint64_t)part;
    if (part == 0) return 0;
    got += (uint64_t)part;
  }
  return 1;
}

static void receive_all(struct End end, char* buffer, struct Counts* counts) {
  while (receive_message(end, buffer, counts)) {
    if (options.answer) send_message(end, buffer, counts);
  }
}

// Sends all, says that this was all, and waits until the receiver has taken it.
static void send_all(struct End end, char* buffer, struct Counts* counts) {
  for (uint64_t i = 0; i < options.messages; i++) {
    send_message(end, buffer, counts);
    if (options.answer && !receive_message(end, buffer, counts)) fail("no answer");
  }
  if (end.in == end.out) {
    shutdown(end.out, SHUT_WR);
  } else {
    close(end.out);
  }
  if (receive_message(end, buffer, counts)) fail("an answer too many");
  close(end.in);
}

static void set_room(int fd) {
  const int room = (int)options.room;
  if (!room) return;
  if (strcmp(options.by, "pipe") == 0) {
    if (fcntl(fd, F_SETPIPE_SZ, room) < 0) fail("F_SETPIPE_SZ");
  } else if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room) != 0) {
    fail("SO_SNDBUF");
  }
}

static int tcp_listener(struct sockaddr_in* address) {
  const int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
  if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
      bind(listener, (struct sockaddr*)address, sizeof *address) != 0 || listen(listener, 1) != 0) {
    fail("listen");
  }
  return listener;
}

// The two ends of what is asked for. For TCP the receiver's end is still a listener.
static void make_ends(struct End ends[2], struct sockaddr_in* address) {
  int forth[2], back[2];
  if (strcmp(options.by, "pipe") == 0) {
    if (pipe(forth) != 0 || pipe(back) != 0) fail("pipe");
    set_room(forth[1]);
    set_room(back[1]);
    ends[0] = (struct End){back[0], forth[1]};
    ends[1] = (struct End){forth[0], back[1]};
    return;
  }
  if (strcmp(options.by, "unix") == 0) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, forth) != 0) fail("socketpair");
  } else {
    forth[1] = tcp_listener(address);
    forth[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (forth[0] < 0) fail("socket");
  }
  set_room(forth[0]);
  set_room(forth[1]);
  ends[0] = (struct End){forth[0], forth[0]};
  ends[1] = (struct End){forth[1], forth[1]};
}

static _Noreturn void be_receiver(struct End ends[2], char* buffer, struct Counts* counts) {
  prctl(PR_SET_NAME, "receiver");
  close(ends[0].in);
  if (ends[0].out != ends[0].in) close(ends[0].out);
  if (strcmp(options.by, "tcp") == 0) {
    const int connection = accept(ends[1].in, NULL, NULL);
    if (connection < 0) fail("accept");
    close(ends[1].in);
    ends[1] = (struct End){connection, connection};
  }
  receive_all(ends[1], buffer, counts);
  _exit(0);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void report(const struct Counts counts[2], uint64_t ns) {
  char text[256];
  char* at = put_line(text, "writes", counts[0].writes + counts[1].writes);
  at = put_line(at, "reads", counts[0].reads + counts[1].reads);
  at = put_line(at, "bytes", counts[0].bytes + counts[1].bytes);
  at = put_line(at, "ns_per_message", ns / options.messages);
  if (write(1, text, (size_t)(at - text)) != at - text) fail("write");
}

static _Noreturn void usage(void) {
  static const char kText[] =
      "usage: talk pipe|unix|tcp [--messages N] [--size B] [--room B] [--answer]\n"
      "  --messages N  how many messages are sent (1000)\n"
      "  --size B      bytes of each (4096, at most 1048576)\n"
      "  --room B      bytes that the pipe, or the socket's send buffer, can hold\n"
      "  --answer      each message is sent back, and waited for\n";
  if (write(2, kText, sizeof kText - 1) < 0) _exit(1);
  _exit(2);
}

static uint64_t parse_number(const char* text, uint64_t max) {
  char* end = NULL;
  const uint64_t value = text ? strtoull(text, &end, 10) : 0;
  if (!text || end == text || *end != '\0' || value == 0 || value > max) usage();
  return value;
}

static void parse_options(char** words) {
  options.by = *words;
  if (!*words || (strcmp(*words, "pipe") && strcmp(*words, "unix") && strcmp(*words, "tcp"))) {
    usage();
  }
  for (words++; *words; words++) {
    if (strcmp(*words, "--answer") == 0) {
      options.answer = 1;
    } else if (strcmp(*words, "--messages") == 0) {
      options.messages = parse_number(*++words, 1000000000);
    } else if (strcmp(*words, "--size") == 0) {
      options.size = parse_number(*++words, kMaxSize);
    } else if (strcmp(*words, "--room") == 0) {
      options.room = parse_number(*++words, kMaxSize);
    } else {
      usage();
    }
  }
}

int main(int argc, char** argv) {
  (void)argc;
  parse_options(argv + 1);
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(kPort), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct Counts* counts = shared_memory(2 * sizeof *counts);
  char* buffers[2] = {shared_memory(options.size), shared_memory(options.size)};
  struct End ends[2];
  make_ends(ends, &address);
  const pid_t receiver = fork();
  if (receiver < 0) fail("fork");
  if (receiver == 0) be_receiver(ends, buffers[1], &counts[1]);
  prctl(PR_SET_NAME, "sender");
  close(ends[1].in);
  if (ends[1].out != ends[1].in) close(ends[1].out);
  if (strcmp(options.by, "tcp") == 0 &&
      connect(ends[0].out, (struct sockaddr*)&address, sizeof address) != 0) {
    fail("connect");
  }
  const uint64_t start = now_ns();
  send_all(ends[0], buffers[0], &counts[0]);
  const uint64_t ns = now_ns() - start;
  int status = 0;
  if (waitpid(receiver, &status, 0) != receiver || status != 0) _exit(1);
  prctl(PR_SET_NAME, "talk");
  report(counts, ns);
  _exit(0);
}
