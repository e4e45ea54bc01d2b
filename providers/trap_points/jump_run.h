// Decides where a jump may replace an int3: finds the whole instructions that its five bytes cover,
// and proves that nothing jumps into the middle of them. The trap point table finds out who stands
// there at this moment. A jump may stand only in a function with an ftrace site. A compiler made
// such a function: code outside of it and of its other parts (sites/jump_targets.h) jumps only to
// its beginning. A function with jumps through registers or tables has no jump of ours. A jump
// stands only after the ftrace site: a killed tracer leaves its jumps behind, and the kernel's own
// tracer must find its bytes. Used by the trap point table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "providers/trap_points/sites/jump_targets.h"
#include "providers/trap_points/sites/original_text.h"
#include "providers/trap_points/sites/probe_site.h"
#include "providers/trap_points/sites/site_examiner.h"
#include "vmm/arch/arch.h"
#include "vmm/linux/kernel.h"
#include "vmm/shim/jump_record.h"

namespace ringside::providers {

/// The text that a jump at `at` overwrites but for its first byte.
inline guest_linux::Kernel::AddressRange jump_interior(GuestVirt at) {
  return guest_linux::Kernel::AddressRange::of(at.wrapping_add(1), SHIM_JUMP_BYTES - 1);
}

/// Bytes that a run may have.
inline constexpr std::size_t kLongestRun = SHIM_JUMP_BYTES - 1 + arch::kLongestInstruction;

/// Instructions one after the other, five bytes or more; only the last one may branch.
class JumpRun {
 public:
  std::span<const std::byte> code() const { return std::span(code_).first(size_); }
  /// The length of each instruction.
  std::span<const std::uint8_t> lengths() const { return std::span(lengths_).first(count_); }
  /// Bytes that they take elsewhere, with the jump back.
  std::size_t displaced_size() const { return displaced_size_; }

 private:
  friend class JumpRunFinder;
  std::array<std::byte, kLongestRun> code_{};
  std::array<std::uint8_t, SHIM_JUMP_BYTES> lengths_{};
  std::uint8_t size_ = 0, count_ = 0, displaced_size_ = 0;
};

class JumpRunFinder {
 public:
  /// All must outlive it.
  JumpRunFinder(const OriginalText& text, const guest_linux::Kernel& kernel, SiteExaminer& examiner)
      : text_(text), kernel_(kernel), examiner_(examiner), jump_targets_(text, kernel) {}

  /// The instructions from the site's own on. Empty where it has to be an int3.
  std::optional<JumpRun> find(const ProbeSite& site);
  /// Text may have changed since the last call.
  void forget();

 private:
  std::optional<JumpRun> gather(const ProbeSite& site);
  bool may_lead_into(const ProbeSite& site);
  const std::vector<GuestVirt>& patched_targets();

  const OriginalText& text_;
  const guest_linux::Kernel& kernel_;
  SiteExaminer& examiner_;
  JumpTargets jump_targets_;
  ExaminedText function_;                          // that targets_ are of
  std::optional<std::vector<GuestVirt>> targets_;  // sorted; empty: some are unknown
  std::vector<GuestVirt> patched_targets_;         // sorted
};

}  // namespace ringside::providers
