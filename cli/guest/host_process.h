// -c and -p without a guest: the trace ends when these processes of the host end. A command is held
// before its first instruction until tracing is on.
// Threads: all calls from the thread that created it (ptrace's rule).
// Does not: look into the processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/settings.h"
#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::cli {

/// A command's words: blanks part them, quotes and backslashes keep them together as in a shell.
/// Nothing is expanded. The error is an open quote, or no word at all.
Result<std::vector<std::string>> split_command(std::string_view command);

class HostProcesses {
 public:
  HostProcesses() = default;
  ~HostProcesses();
  HostProcesses(const HostProcesses&) = delete;
  HostProcesses& operator=(const HostProcesses&) = delete;

  /// Starts the command and holds it. `settings` say how its environment differs from ours.
  Result<void> create(const std::string& command, const Settings& settings);
  /// A process that runs already.
  Result<void> grab(std::int64_t pid);

  bool empty() const { return processes_.empty(); }
  /// $target: the first process that was named; 0 for none.
  std::int64_t target() const { return processes_.empty() ? 0 : processes_.front().pid; }
  /// Lets go of the commands that are held.
  void go();

  /// For poll(): readable when a process has ended; only those that have not.
  std::vector<int> live_fds() const;
  /// "pid 12 has exited" for each that ended since the last call.
  std::vector<std::string> take_ended();
  /// False once every process has ended.
  bool any_live() const;

 private:
  struct Process {
    pid_t pid = 0;
    UniqueFd fd;  // a pidfd
    bool ours = false, held = false, ended = false;
  };
  std::vector<Process> processes_;
};

}  // namespace ringside::cli
