#include "providers/context/host_context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace ringside::providers {
namespace {

constexpr std::size_t kMostProcesses = 256;  // processes may come and go while we look

/// 0 when it has none, or has ended.
pid_t parent_of(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string text(std::istreambuf_iterator<char>(stat), {});
  // "PID (name) state PPID ...": the name may hold blanks and brackets.
  const std::size_t name_end = text.rfind(')');
  char state = 0;
  int parent = 0;
  const bool read = name_end != text.npos &&
                    std::sscanf(text.c_str() + name_end + 1, " %c %d", &state, &parent) == 2;
  return read ? parent : 0;
}

}  // namespace

std::vector<pid_t> host_ancestors() {
  std::vector<pid_t> known{::getpid()};
  for (pid_t next = ::getppid(); next > 0 && known.size() < kMostProcesses;
       next = parent_of(next)) {
    known.push_back(next);
  }
  return known;
}

}  // namespace ringside::providers
