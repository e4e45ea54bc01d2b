// Measures how much of the host's CPUs the threads of a machine's process get, and what they wait
// for. It reads /proc and the control groups twice, some time apart. Used by the command `why`: the
// guest itself cannot know these causes.
// Source: proc(5) for stat and status; Documentation/scheduler/sched-stats.rst for schedstat (time
// on a CPU, time in a run queue); cpu.stat of Documentation/admin-guide/cgroup-v2.rst, and of
// version 1.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ringside::vmm {

class HostShare {
 public:
  using Time = std::chrono::steady_clock;
  using Duration = std::chrono::nanoseconds;
  /// Two looks that are not so far apart say nothing for sure: threads wait for a moment at times.
  static constexpr Duration kLeast = std::chrono::seconds(1);

  /// Looks at the process. What cannot be read is left out. `proc` is another folder in tests.
  static HostShare look(pid_t process, const std::string& proc = "/proc",
                        Time::time_point now = Time::now());

  Duration since(const HostShare& earlier) const { return at_ - earlier.at_; }
  /// Each thread or control group that the host kept from running for most of the time since
  /// `earlier`, one line each: a throttled control group, a thread that waited for a CPU, a thread
  /// in state D, a thread whose memory has yet to come (userfaultfd). And memory of the process, if
  /// it was read back from the host's swap all the time.
  std::vector<std::string> held_back_since(const HostShare& earlier) const;

 private:
  std::string read_back_since(const HostShare& earlier) const;
  struct Thread {
    std::string name;
    char state = ' ';
    std::uint64_t on_cpu = 0, in_queue = 0;  // ns since it began
    std::uint64_t major_faults = 0;
    std::string place;  // of the host's kernel, in which it sleeps
  };
  struct Group {
    std::uint64_t periods = 0, throttled_periods = 0;
  };

  Time::time_point at_;
  std::uint64_t swapped_ = 0;  // bytes
  std::map<pid_t, Thread> threads_;
  std::map<std::string, Group> groups_;  // by folder
};

}  // namespace ringside::vmm
