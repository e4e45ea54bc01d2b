// The processes whose code addresses were recorded lately. The firing side notes a process; the
// consumer asks which ones to look at, so that it can read their mappings while they live. The
// consumer gets a process at its first record, then after intervals that double (8 ms, 16 ms... 1
// s), for as long as it is recorded: mappings change most in a young process. A process that runs
// another program, in another address space, starts again. Threads: one notes, one asks. There is
// no lock; if there is no room, the consumer gets a process later or never. Fire context: note()
// yes; next() no.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

namespace ringside::dif {

class RecordedProcesses {
 public:
  /// `space`: any number that tells address spaces apart.
  void note(std::uint64_t pid, std::uint64_t space, std::uint64_t now_ns) {
    Known& known = known_[(pid ^ space) % known_.size()];
    if (known.pid != pid || known.space != space) {
      known = {pid, space, now_ns, kFirstPause};
    } else if (now_ns - known.told < known.pause) {
      return;
    } else {
      known.told = now_ns;
      known.pause = known.pause < kLongestPause ? known.pause * 2 : known.pause;
    }
    const std::uint32_t end = end_.load(std::memory_order_relaxed);
    if (end - begin_.load(std::memory_order_acquire) >= told_.size()) return;
    told_[end % told_.size()] = pid;
    end_.store(end + 1, std::memory_order_release);
  }

  std::optional<std::uint64_t> next() {
    const std::uint32_t begin = begin_.load(std::memory_order_relaxed);
    if (begin == end_.load(std::memory_order_acquire)) return std::nullopt;
    const std::uint64_t pid = told_[begin % told_.size()];
    begin_.store(begin + 1, std::memory_order_release);
    return pid;
  }

 private:
  static constexpr std::uint64_t kFirstPause = 8'000'000, kLongestPause = 1'000'000'000;  // ns

  struct Known {
    std::uint64_t pid = 0, space = 0, told = 0, pause = 0;
  };
  std::array<Known, 64> known_{};
  std::array<std::uint64_t, 64> told_{};            // a ring
  std::atomic<std::uint32_t> begin_ = 0, end_ = 0;  // in told_, modulo its size; wrap
};

}  // namespace ringside::dif
