// The CPUs that the guest's kernel has online.
// Hostile input: the mask is read anew, and copied, each time.
#pragma once

#include <cstdint>
#include <optional>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

/// __cpu_online_mask of kernel/cpu.c (4.5 to 7.2): a bit for each CPU, in words of 64.
class OnlineCpus {
 public:
  explicit OnlineCpus(const Kernel& kernel);

  /// Empty where there is no such mask, or it cannot be read.
  std::optional<bool> has(const GuestReader& memory, std::uint32_t cpu) const;
  /// How many of the first `most` are; empty as above.
  std::optional<std::uint32_t> count(const GuestReader& memory, std::uint32_t most) const;
  /// Whether any of the first 64 is: none is so in a kernel that begins to boot.
  bool has_any(const GuestReader& memory) const { return word(memory, 0).value_or(0) != 0; }

 private:
  std::optional<std::uint64_t> word(const GuestReader& memory, std::uint32_t index) const;

  std::optional<GuestVirt> mask_;
};

}  // namespace ringside::guest_linux
