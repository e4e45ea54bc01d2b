// The context of a firing in a guest of which only the registers are known: a kernel for teaching,
// or Linux before it has set up its CPUs. Memory is read through the vCPU's own page table, or
// physically while paging is off. Stacks are walked by frame pointers. There are no processes:
// every identity is 0 and execname is empty. A vCPU with 32-bit paging cannot be read: that is a
// fault. Fire context: yes.
#pragma once

#include "dif/evaluate/guest_context.h"
#include "vmm/page_walk.h"

namespace ringside::providers {

class BareContext final : public dif::GuestContext {
 public:
  /// `memory` must outlive it.
  explicit BareContext(const vmm::GuestMemory& memory) : memory_(memory) {}
  BareContext(const BareContext&) = delete;
  BareContext& operator=(const BareContext&) = delete;

  /// A new firing moment.
  void begin(const Registers& registers);

  Result<std::uint64_t, Fault> variable(dif::ContextVariable which) const override;
  Result<std::size_t, Fault> execname(std::span<char>) const override { return 0; }
  Result<std::uint64_t, Fault> argument(unsigned) const override { return 0; }
  const GuestReader& kernel() const override { return memory_; }
  const GuestReader& user() const override { return memory_; }
  bool is_on_vcpu() const override { return true; }
  Result<std::uint64_t, Fault> machine_register(dif::RegisterSet set,
                                                std::uint64_t n) const override;
  std::uint64_t address_space() const override;
  const Registers& registers() const { return registers_; }
  Result<std::size_t, Fault> kernel_stack(std::span<std::uint64_t> frames) const override;
  Result<std::size_t, Fault> user_stack(std::span<std::uint64_t> frames) const override;

 private:
  /// Memory as the vCPU sees it.
  class Memory final : public GuestReader {
   public:
    explicit Memory(const vmm::GuestMemory& memory) : physical_(memory), paged_(memory, {}) {}
    void set(const Registers& registers);
    Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override;

   private:
    enum class Paging : std::uint8_t { Off, Long, Other };
    const vmm::GuestMemory& physical_;
    vmm::PageTableReader paged_;
    Paging paging_ = Paging::Off;
  };
  /// The innermost frames of the code that runs, kernel or user.
  std::size_t stack(std::span<std::uint64_t> frames) const;

  Memory memory_;
  Registers registers_;
};

}  // namespace ringside::providers
