// The guest's end of the command port (images/README.md has the protocol), running as process 1.
// Used by /init in every image; its peer on the host is the machine's CommandPort.
// Does not: print anything but protocol lines on the control line, or touch the output line's
// bytes.

#define _GNU_SOURCE
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { kMaxCommand = 16384, kMaxLine = 2 * kMaxCommand + 16, kMaxArguments = 512 };
enum { kMaxErrors = 240 };  // bytes in one line; the host's lines are 512

static int control = -1;
static int output = -1;

// The one command; pid 0 when there is none. `gate` is the pipe that it waits on before exec.
static pid_t child_pid;
static int gate = -1;
// Its program has begun, and stands before its first instruction, since we are its debugger.
static int is_held;

// Our end of the pipe that is its standard error, where the host wants that apart; else -1.
static int errors = -1;

static int open_raw(const char* path) {
  const int fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
  struct termios settings;
  if (fd < 0 || tcgetattr(fd, &settings) != 0) return -1;
  cfmakeraw(&settings);
  // No modem lines and no flow control: nothing but bytes passes through an emulated UART.
  settings.c_cflag |= CLOCAL | CREAD;
  settings.c_cflag &= ~(tcflag_t)CRTSCTS;
  settings.c_cc[VMIN] = 1;
  settings.c_cc[VTIME] = 0;
  cfsetspeed(&settings, B115200);
  return tcsetattr(fd, TCSANOW, &settings) == 0 ? fd : -1;
}

static void write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t done = write(fd, data, size);
    if (done < 0 && errno != EINTR) return;
    if (done > 0) {
      data += done;
      size -= (size_t)done;
    }
  }
}

__attribute__((format(printf, 1, 2))) static void answer(const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  strcat(line, "\n");
  write_all(control, line, strlen(line));
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = (char)tolower((unsigned char)c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Writes the decoded text with its NUL to `text`; says why not, or NULL when all is well.
static const char* decode_hex(const char* hex, char* text) {
  const size_t digits = strlen(hex);
  if (digits == 0) return "empty command";
  if (digits % 2 != 0) return "odd number of hex digits";
  if (digits / 2 >= kMaxCommand) return "command too long";
  for (size_t i = 0; i < digits; i += 2) {
    const int high = hex_digit(hex[i]);
    const int low = hex_digit(hex[i + 1]);
    if (high < 0 || low < 0) return "not a hex digit";
    if (high == 0 && low == 0) return "NUL in command";
    text[i / 2] = (char)(high << 4 | low);
  }
  text[digits / 2] = '\0';
  return NULL;
}

// Such a command needs no shell between, so its pid is the program's own.
static int is_plain(const char* command) {
  const size_t first_word = strcspn(command, " \t");
  return strpbrk(command, "|&;<>()$`\\\"'*?[]#~{}!\n") == NULL &&
         memchr(command, '=', first_word) == NULL;
}

// Returns only when the first word is no program; the shell may still know it.
static void split_and_exec(const char* text) {
  static char command[kMaxCommand];
  char* arguments[kMaxArguments + 1];
  size_t count = 0;
  strcpy(command, text);
  for (char* word = strtok(command, " \t"); word && count < kMaxArguments;
       word = strtok(NULL, " \t")) {
    arguments[count++] = word;
  }
  if (count == 0) return;
  arguments[count] = NULL;
  execvp(arguments[0], arguments);
}

static _Noreturn void be_the_command(int go, const char* command) {
  char byte;
  sigset_t none;
  // The end of the pipe without a byte means that process 1 gave up on us.
  if (read(go, &byte, 1) != 1) _exit(126);
  if (byte == 'b' && ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(126);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (is_plain(command)) split_and_exec(command);
  execl("/bin/sh", "sh", "-c", command, (char*)NULL);
  dprintf(2, "console: cannot start /bin/sh: %s\n", strerror(errno));
  _exit(126);
}

// Sends on what the pipe has to read now. A whole pipe at the most: somebody may write for ever.
static void pass_errors(void) {
  enum { kMostReads = 65536 / kMaxErrors + 1 };
  static const char kDigits[] = "0123456789abcdef";
  char bytes[kMaxErrors];
  char line[4 + 2 * kMaxErrors + 1] = "err ";
  ssize_t count = 1;
  for (int reads = 0; reads < kMostReads && (count = read(errors, bytes, sizeof bytes)) > 0;
       reads++) {
    char* end = line + 4;
    for (ssize_t i = 0; i < count; i++) {
      *end++ = kDigits[(unsigned char)bytes[i] >> 4];
      *end++ = kDigits[bytes[i] & 15];
    }
    *end++ = '\n';
    write_all(control, line, (size_t)(end - line));
  }
  if (count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR))) return;
  close(errors);
  errors = -1;
}

static void start_command(const char* command, int apart) {
  int go[2], aside[2] = {-1, output};
  if (pipe2(go, O_CLOEXEC) != 0) {
    answer("error pipe: %s", strerror(errno));
    return;
  }
  if (errors >= 0) close(errors);  // of the last command; what it left running writes no more
  errors = -1;
  if (apart && pipe2(aside, O_CLOEXEC) != 0) {
    answer("error pipe: %s", strerror(errno));
    close(go[0]);
    close(go[1]);
    return;
  }
  child_pid = fork();
  if (child_pid == 0) {
    const int input = open("/dev/null", O_RDONLY);
    close(go[1]);
    setpgid(0, 0);
    dup2(input, 0);
    dup2(output, 1);
    dup2(aside[1], 2);
    close(input);
    be_the_command(go[0], command);
  }
  close(go[0]);
  if (apart) {
    close(aside[1]);
    errors = aside[0];
    fcntl(errors, F_SETFL, O_NONBLOCK);
  }
  if (child_pid < 0) {
    child_pid = 0;
    close(go[1]);
    answer("error fork: %s", strerror(errno));
    return;
  }
  // Both sides do this, so that a `kill` right away finds the group whoever is first.
  setpgid(child_pid, child_pid);
  gate = go[1];
  answer("pid %d", (int)child_pid);
}

static void open_gate(const char* byte) {
  write_all(gate, byte, 1);
  close(gate);
  gate = -1;
}

static uint64_t entry_of(pid_t pid) {
  char path[32];
  Elf64_auxv_t each;
  uint64_t entry = 0;
  snprintf(path, sizeof path, "/proc/%d/auxv", (int)pid);
  FILE* const file = fopen(path, "r");
  while (file && entry == 0 && fread(&each, sizeof each, 1, file) == 1) {
    if (each.a_type == AT_ENTRY) entry = each.a_un.a_val;
  }
  if (file) fclose(file);
  return entry;
}

static int set_debug_register(int number, uint64_t value) {
  const size_t at = offsetof(struct user, u_debugreg) + (size_t)number * sizeof(uint64_t);
  return ptrace(PTRACE_POKEUSER, child_pid, at, value) == 0;
}

// Until it stops with a SIGTRAP; signals of others reach it. 0 where it has ended.
static int await_trap(void) {
  int status;
  while (waitpid(child_pid, &status, 0) == child_pid && WIFSTOPPED(status)) {
    if (WSTOPSIG(status) == SIGTRAP) return 1;
    ptrace(PTRACE_CONT, child_pid, NULL, WSTOPSIG(status));
  }
  return 0;
}

// The program is executed and its libraries are mapped, but nothing of it has run. A debug register
// stops it there, so its text is untouched.
static void begin_program(void) {
  open_gate("b");
  is_held = await_trap();
  const uint64_t entry = is_held ? entry_of(child_pid) : 0;
  if (entry != 0 && set_debug_register(0, entry) && set_debug_register(7, 1)) {
    ptrace(PTRACE_CONT, child_pid, NULL, NULL);
    is_held = await_trap() && set_debug_register(7, 0);
  }
  if (is_held) {
    answer("pid %d", (int)child_pid);
    return;
  }
  kill(-child_pid, SIGKILL);
  child_pid = 0;
  answer("error the command ended before its program began");
}

static void handle_line(char* line) {
  static char command[kMaxCommand];
  const int apart = strncmp(line, "run-apart ", 10) == 0;
  if (apart || strncmp(line, "run ", 4) == 0) {
    const char* hex = strchr(line, ' ') + 1;
    const char* why = child_pid ? "a command is running" : decode_hex(hex, command);
    if (why) {
      answer("error %s", why);
    } else {
      start_command(command, apart);
    }
  } else if (strcmp(line, "begin") == 0 || strcmp(line, "go") == 0) {
    if (is_held && *line == 'g') {
      ptrace(PTRACE_DETACH, child_pid, NULL, NULL);
      is_held = 0;
    } else if (gate < 0) {
      answer("error no command waits");
    } else if (*line == 'b') {
      begin_program();
    } else {
      open_gate("g");
    }
  } else if (strcmp(line, "kill") == 0) {
    // Not an error without a command: it may just have ended, and its `exit` is on the way.
    if (child_pid) kill(-child_pid, SIGKILL);
  } else {
    answer("error unknown request");
  }
}

// Takes whole lines out of the byte stream; a line that is too long is an error as a whole.
static void read_control(void) {
  static char line[kMaxLine];
  static size_t length;
  static int overflow;
  char bytes[4096];
  const ssize_t count = read(control, bytes, sizeof bytes);
  for (ssize_t i = 0; i < count; i++) {
    if (bytes[i] == '\r') continue;
    if (bytes[i] != '\n') {
      overflow |= length == sizeof line - 1;
      if (!overflow) line[length++] = bytes[i];
      continue;
    }
    line[length] = '\0';
    if (overflow) {
      answer("error line too long");
    } else {
      handle_line(line);
    }
    length = 0;
    overflow = 0;
  }
}

// Process 1 also inherits orphans; only our own command's end is news.
static void reap_children(int signals) {
  struct signalfd_siginfo info;
  pid_t pid;
  int status;
  if (read(signals, &info, sizeof info) != (ssize_t)sizeof info) return;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid != child_pid || WIFSTOPPED(status)) continue;
    is_held = 0;
    if (gate >= 0) close(gate);
    gate = -1;
    child_pid = 0;
    if (errors >= 0) pass_errors();  // before the news of its end
    tcdrain(output);
    answer("exit %d", WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
  }
}

int main(void) {
  sigset_t mask;
  control = open_raw("/dev/ttyS1");
  output = open_raw("/dev/ttyS2");
  if (control < 0 || output < 0) {
    fprintf(stderr, "console: needs /dev/ttyS1 and /dev/ttyS2: %s\n", strerror(errno));
    return 1;
  }
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  sigprocmask(SIG_BLOCK, &mask, NULL);
  const int signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  struct pollfd waits[3] = {{.fd = control, .events = POLLIN}, {.fd = signals, .events = POLLIN}};

  answer("ready");
  for (;;) {
    waits[2] = (struct pollfd){.fd = errors, .events = POLLIN};  // one of -1 is left out
    if (poll(waits, 3, -1) < 0 && errno != EINTR) return 1;
    if (waits[2].revents) pass_errors();
    if (waits[1].revents) reap_children(signals);
    if (waits[0].revents) read_control();
  }
}
