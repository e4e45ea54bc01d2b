// A place in a kernel's text where a probe may stand, with the results of its examination. A site
// is examined once; listing, enabling and arming pass this value on. Only SiteExaminer (for a
// running Linux) and providers/boot (for a kernel's file) can make one. It is valid as long as the
// function's text does not change; arming checks that again.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "disasm/decoder.h"
#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/base/check.h"

namespace ringside::providers {

/// With `AllowNoinstr`, .noinstr.text is accepted: only where the caller knows that the kernel's GS
/// and page table are in use at that instruction (the syscall return site).
enum class SitePolicy : std::uint8_t { Normal, AllowNoinstr };

/// A function's text at the time of an examination. A finding in it is good for no other:
/// another module may lie there by now.
struct ExaminedText {
  GuestVirt begin;
  std::uint64_t hash = 0;          // of the original text, without what the kernel rewrites
  std::uint32_t size = 0;          // bytes
  std::int8_t ftrace_offset = -1;  // of the ftrace site; negative: there is none
  bool operator==(const ExaminedText&) const = default;
};

class ProbeSite {
 public:
  GuestVirt address() const { return address_; }
  /// The whole instruction, as the kernel has it.
  std::span<const std::byte> instruction() const { return std::span(instruction_).first(length_); }
  /// Bytes that it takes in a slot, with the jump back. 0 where nothing is displaced.
  std::size_t displaced_size() const { return displaced_size_; }
  const ExaminedText& text() const { return text_; }
  SitePolicy policy() const { return policy_; }
  /// Whether the kernel mends a fault of it, by its address (site_examiner.h).
  bool may_fault() const { return may_fault_; }

 private:
  friend class SiteExaminer;
  friend class ProbePoints;
  ProbeSite(GuestVirt address, std::span<const std::byte> instruction, SitePolicy policy)
      : address_(address), length_(static_cast<std::uint8_t>(instruction.size())), policy_(policy) {
    CHECK(!instruction.empty() && instruction.size() <= instruction_.size());
    std::copy(instruction.begin(), instruction.end(), instruction_.begin());
  }

  GuestVirt address_;
  ExaminedText text_;
  std::array<std::byte, arch::kLongestInstruction> instruction_{};
  std::uint8_t length_;
  std::uint8_t displaced_size_ = 0;
  SitePolicy policy_;
  bool may_fault_ = false;
};

}  // namespace ringside::providers
