// The reader's side of a perf event's ring: records between data_tail and data_head of the mapped
// page (linux/perf_event.h, struct perf_event_mmap_page; man perf_event_open). Events sampled with
// PERF_SAMPLE_TIME | PERF_SAMPLE_RAW, nothing else.
// Used by host_tracepoints. One reader at a time. Does not: own the mapping.
// Allocates nothing.
#pragma once

#include <linux/perf_event.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ringside::vmm::kvm {

class PerfRing {
 public:
  /// `data`: the ring itself, a power of two of bytes.
  PerfRing(perf_event_mmap_page& page, std::span<const std::byte> data)
      : page_(&page), data_(data) {}

  struct Sample {
    std::uint64_t time = 0;
    std::span<const std::byte> raw;  // valid until the next call; cut when too long
  };
  /// The next sample, if there is one; skips records of other kinds.
  std::optional<Sample> next();
  /// Samples that found no room, as far as the kernel has reported them. Only grows.
  std::uint64_t lost() const { return lost_; }

 private:
  void copy(std::uint64_t at, std::span<std::byte> to) const;

  perf_event_mmap_page* page_;
  std::span<const std::byte> data_;
  std::array<std::byte, 512> record_;  // whole here, however it lies around the ring's end
  std::uint64_t lost_ = 0;
};

}  // namespace ringside::vmm::kvm
