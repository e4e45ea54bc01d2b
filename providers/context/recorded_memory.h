// The memory of a guest at a moment that is over, as far as the record of its trap has it. What was
// not recorded cannot be read: it may be other by now.
// Used by the context of a firing that is replayed. Fire context: yes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "vmm/arch/arch.h"
#include "vmm/base/guest_reader.h"
#include "vmm/shim/fetch_list.h"

namespace ringside::providers {

class RecordedMemory final : public GuestReader {
 public:
  /// The half of the addresses that it reads: as the process, or as the kernel.
  enum class Half : std::uint8_t { Kernel, User };

  /// `runs` must outlive it.
  RecordedMemory(const vmm::RecordedRuns& runs, Half half) : runs_(runs), half_(half) {}

  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const bool is_kernels = arch::in_kernel_half(at);
      const auto found =
          is_kernels == (half_ == Half::Kernel) ? runs_.from(at) : std::span<const std::byte>();
      if (found.empty()) {
        missed_ = at;
        return tl::make_unexpected(Fault{FaultKind::BadAddress, 0, at.raw()});
      }
      const std::size_t size = std::min(found.size(), out.size());
      std::memcpy(out.data(), found.data(), size);
      out = out.subspan(size);
      at = at.wrapping_add(size);
    }
    return {};
  }

  /// The last address that could not be read since forget_missed().
  const std::optional<GuestVirt>& missed() const { return missed_; }
  void forget_missed() const { missed_.reset(); }

 private:
  const vmm::RecordedRuns& runs_;
  const Half half_;
  mutable std::optional<GuestVirt> missed_;
};

}  // namespace ringside::providers
