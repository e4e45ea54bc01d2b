// The work that other threads leave for a vCPU's thread: a sample, changes of interrupt lines.
// Threads: any; take() on the vCPU's.
// Does not: make the vCPU leave the guest (Vcpu::kick).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace ringside::vmm::kvm {

class VcpuRequests {
 public:
  struct Line {
    std::uint32_t gsi = 0;
    bool level = false;
    friend bool operator==(const Line&, const Line&) = default;
  };
  struct Taken {
    std::optional<std::uint64_t> sample;  // the tag
    std::vector<Line> lines;              // oldest first
  };
  static constexpr std::size_t kMostLines = 1024;  // that wait; more are dropped and counted

  /// Replaces a sample that waits.
  void ask_sample(std::uint64_t tag);
  /// False when too many wait: the change is dropped.
  bool note_line(std::uint32_t gsi, bool level);
  /// Whether something waits; one load, for the way into the guest.
  bool any() const { return any_.load(std::memory_order_seq_cst); }
  Taken take();
  /// Changes that were dropped. Only grows.
  std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> any_{false};
  std::atomic<std::uint64_t> lost_{0};
  std::mutex mutex_;
  Taken waiting_;
};

}  // namespace ringside::vmm::kvm
