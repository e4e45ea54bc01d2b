// A process of this host, from /proc: its identity, mappings, threads and descriptors. Each call
// reads anew, and everything may change right after. The process chooses its own names, so do not
// trust them. Layouts: proc(5). Used by code that looks for virtual machines on this host. Does
// not: read its memory (vmm/process_memory.h), stop it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vmm/base/result.h"

namespace ringside::vmm {

/// A line of /proc/PID/maps.
struct MemoryMapping {
  std::uint64_t begin = 0, end = 0;  // addresses in the process
  std::uint64_t offset = 0;          // in the file behind it
  std::uint64_t device = 0;          // as st_dev has it
  std::uint64_t inode = 0;           // 0: none
  bool readable = false, writable = false, shared = false;
  std::string name;

  std::uint64_t size() const { return end - begin; }
};

/// Empty for what is no such line.
std::optional<MemoryMapping> parse_mapping(const std::string& line);

class HostProcess {
 public:
  /// `proc` is another folder in tests.
  explicit HostProcess(pid_t pid, std::string proc = "/proc") : pid_(pid), proc_(std::move(proc)) {}
  /// All that run, in order of their numbers.
  static std::vector<HostProcess> all(const std::string& proc = "/proc");

  pid_t pid() const { return pid_; }
  bool exists() const;
  /// Clock ticks from boot to its start, which tell it from an earlier process of the same number.
  std::optional<std::uint64_t> start_time() const;
  /// The program's file name without folders, else what the process calls itself.
  std::string program() const;
  std::string comm() const;
  std::vector<std::string> command_line() const;
  /// The one it works in; empty where we may not see it.
  std::string folder() const;
  /// R, S, D, T...; ' ' when nobody knows.
  char state() const { return state_of(pid_); }
  char state_of(pid_t thread) const;
  /// By a signal or by a debugger.
  bool is_stopped() const {
    const char now = state();
    return now == 'T' || now == 't';
  }
  /// Io, with the way out, if a signal has stopped the process: it would answer nothing. If a
  /// debugger (or strace) has stopped it, that is no error: it may go on at once.
  Result<void> check_not_stopped() const;
  std::optional<uid_t> user() const;

  /// Io, with the reason, where we may not see them.
  Result<std::vector<MemoryMapping>> mappings() const;
  /// The threads that run the process's program. Workers of the host's kernel are left out: the
  /// kernel counts them among the process's threads, and they show the system call that made them
  /// as their own. KVM has such a worker; since 6.14 the first KVM_RUN makes it.
  std::vector<pid_t> threads() const;
  /// Threads of any kind, in order, which costs less; empty where we may not see them.
  std::vector<pid_t> all_threads() const;
  /// How often the thread has waited for memory that was not there; empty where nobody knows.
  std::optional<std::uint64_t> major_faults(pid_t thread) const;
  /// Bytes of its memory that the host has swapped out; 0 where nobody knows.
  std::uint64_t swapped_bytes() const;
  /// The process that traces the thread; 0: none.
  pid_t tracer_of(pid_t thread) const;
  /// The system call that the thread waits in.
  struct SystemCall {
    std::int64_t number = -1;
    std::uint64_t first = 0, second = 0;  // arguments
  };
  enum class Activity : std::uint8_t { Unknown, Running, InSystemCall };
  struct ThreadActivity {
    Activity activity = Activity::Unknown;
    SystemCall call;
  };
  ThreadActivity activity_of(pid_t thread) const;

  struct Descriptor {
    int number = -1;
    std::string target;  // what /proc/PID/fd/N leads to
  };
  /// Io where we may not see them.
  Result<std::vector<Descriptor>> descriptors() const;
  std::string target_of(int descriptor) const;
  /// The path of something in its folder.
  std::string path(const std::string& name) const;

 private:
  std::string status_field(const std::string& file, const std::string& key) const;
  /// Field `number` of a stat file; empty when it is not there.
  std::optional<std::uint64_t> stat_field(const std::string& file, int number) const;

  pid_t pid_;
  std::string proc_;
};

// Explains why we may not access another process: which rule of the host's kernel denies it
// (ptrace(2), "Ptrace access mode checking"), and what the user can do. Used for error messages.

/// The facts that the rules look at.
struct AccessFacts {
  pid_t pid = 0;
  uid_t our_user = 0;
  std::optional<uid_t> their_user;  // empty: there is no such process
  std::optional<int> yama_scope;    // kernel.yama.ptrace_scope; empty: no Yama
  bool may_trace_all = false;       // CAP_SYS_PTRACE
};

/// The first rule that refuses. Pure.
Error access_refused(const AccessFacts& facts);
/// The same for this process and ours.
Error explain_no_access(const HostProcess& process);
/// `found` is why something of the process could not be read; where that is because a rule refuses
/// its memory to us, which one.
Error explain_unreadable(const HostProcess& process, Error found);

}  // namespace ringside::vmm
