// Times what a VMM prints: stopwatch UNTIL COMMAND [ARGUMENT...]
// Starts the command and stamps each line of its stdout and stderr with the seconds since then,
// until a line contains UNTIL; then says what memory the command holds and kills it. A byte 0x02
// counts as a line of its own, "<entry>": tests/bench/nested makes kernels say it first of all.
// Used by tests/bench/nested inside a machine that has little else. Prints only at the end, so that
// printing disturbs nothing. Ends with 0, or with 1 when the command ended or was silent for four
// minutes before UNTIL came.

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

namespace {

using Clock = std::chrono::steady_clock;

constexpr char kEntry = 2;
constexpr int kSilence = 240'000;  // ms

/// Turns bytes into stamped lines; a line's stamp is that of its first byte.
class Lines {
 public:
  explicit Lines(std::string_view until) : until_(until), start_(Clock::now()) {}

  /// Whether a line with the wanted text is complete.
  bool take(std::string_view bytes) {
    const double now = std::chrono::duration<double>(Clock::now() - start_).count();
    for (const char byte : bytes) {
      if (byte == kEntry) {
        report_ += fmt::format("{:.6f} <entry>\n", now);
      } else if (byte == '\n') {
        finish_line();
      } else if (byte != '\r') {
        if (line_.empty()) stamp_ = now;
        line_ += byte;
      }
    }
    return found_;
  }

  const std::string& report() {
    if (!line_.empty()) finish_line();
    return report_;
  }

 private:
  void finish_line() {
    report_ += fmt::format("{:.6f} {}\n", stamp_, line_);
    found_ |= line_.find(until_) != std::string::npos;
    line_.clear();
  }

  std::string until_, line_, report_;
  Clock::time_point start_;
  double stamp_ = 0;
  bool found_ = false;
};

/// Reads until the text came (true), the command ended, or it was silent for too long.
bool follow(int output, Lines& lines) {
  std::array<char, 65536> bytes;
  for (;;) {
    pollfd entry{output, POLLIN, 0};
    if (poll(&entry, 1, kSilence) <= 0) return false;
    const ssize_t count = read(output, bytes.data(), bytes.size());
    if (count <= 0) return false;
    if (lines.take({bytes.data(), static_cast<std::size_t>(count)})) return true;
  }
}

/// Resident memory of a process in KiB without its guest's RAM, which all VMMs measured here keep
/// in a memfd. Kinds (RssAnon, RssShmem) do not tell them apart: a program whose file lies in an
/// initramfs is shared memory too.
unsigned long own_memory_of(pid_t process) {
  std::ifstream mappings(fmt::format("/proc/{}/smaps", process));
  std::string line;
  unsigned long total = 0;
  bool guest_ram = false;
  while (std::getline(mappings, line)) {
    unsigned long kib = 0;
    if (line.find('-') < line.find(' ')) {  // "first-last rights ...": a mapping begins
      guest_ram = line.find("/memfd:") != std::string::npos;
    } else if (!guest_ram && std::sscanf(line.c_str(), "Rss: %lu", &kib) == 1) {
      total += kib;
    }
  }
  return total;
}

[[noreturn]] void be_the_command(int output, char** words) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(output, 1);
  dup2(output, 2);
  execvp(words[0], words);
  std::perror(words[0]);
  _exit(127);
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    std::fputs("Usage: stopwatch UNTIL COMMAND [ARGUMENT...]\n", stderr);
    return 2;
  }
  int ends[2];
  if (pipe(ends) != 0) return 2;
  Lines lines(words[1]);
  const pid_t command = fork();
  if (command == 0) {
    close(ends[0]);
    be_the_command(ends[1], words + 2);
  }
  close(ends[1]);
  if (command < 0) return 2;
  const bool found = follow(ends[0], lines);
  const unsigned long memory = own_memory_of(command);
  kill(command, SIGKILL);
  waitpid(command, nullptr, 0);
  fmt::print("{}own-memory-kib {}\n", lines.report(), memory);
  return found ? 0 : 1;
}
