// The CPUs that the guest's kernel has online.
// Hostile input: the mask is read anew, and copied, each time.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "vmm/arch/arch.h"
#include "vmm/base/guest_reader.h"
#include "vmm/guest_memory.h"
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
  std::optional<GuestVirt> mask() const { return mask_; }

 private:
  std::optional<std::uint64_t> word(const GuestReader& memory, std::uint32_t cpu) const;

  std::optional<GuestVirt> mask_;
};

/// The same for those who ask at each sample of each vCPU, maybe of a guest whose RAM is only
/// copied: page tables are walked until a vCPU's own lead where the kernel's do. Then the kernel
/// has set itself up, and its own data stay where they are. Both must outlive it. Threads: any.
/// Fire context: yes.
class OnlineCpusInRam {
 public:
  OnlineCpusInRam(const Kernel& kernel, const vmm::GuestMemory& memory)
      : kernel_(kernel), memory_(memory), mask_(OnlineCpus(kernel).mask()) {}

  /// Whether Linux runs nothing on the vCPU that has these registers and that it calls `cpu`: it
  /// has taken it offline, or has not started it since it was plugged in. False where nobody knows:
  /// a kernel that begins to boot has none online, or there is no such mask.
  bool is_offline(std::uint32_t cpu, const Registers& registers) const;

 private:
  std::optional<GuestPhys> find() const;

  const Kernel& kernel_;
  const vmm::GuestMemory& memory_;
  const std::optional<GuestVirt> mask_;
  mutable std::atomic<std::uint64_t> place_{0};  // guest-physical; 0: it may change
};

}  // namespace ringside::guest_linux
