// The guest at the moment of a firing without a trap: a sample, or an event that the host sees (an
// exit, a port, an MSR). If Linux is known and has set up this CPU, the context is Linux's;
// otherwise it is that of a bare machine. Both the choice and the registers wait until the program
// needs them: events come by the hundred thousand, and most programs only count them.
// Used by the sampler and the vm provider, one instance each for each vCPU (VcpuContexts).
// Fire context: yes.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "providers/context/argument_plan.h"
#include "providers/context/bare_context.h"
#include "providers/context/linux_context.h"
#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/online_cpus.h"
#include "vmm/vcpu_exits.h"

namespace ringside::providers {

/// Which of Linux's CPUs a vCPU is, from its registers: which GS base has the per-cpu base depends
/// on swapgs, not only on the mode. Used wherever the host looks at a vCPU that did not trap into
/// the shim. The registers are the guest's, so they are hostile.
struct CpuPlace {
  std::uint32_t cpu = 0;     // below `vcpus`
  GuestVirt percpu_base{0};  // 0: nobody knows; the kernel has not set it up yet
};

/// If neither GS base is a CPU's per-cpu base, the CPU is the one with the vCPU's index.
inline CpuPlace locate_cpu(const guest_linux::Kernel& kernel, const Registers& registers,
                           unsigned vcpu, unsigned vcpus) {
  for (const arch::Register which : arch::kPerCpuBases) {
    const GuestVirt base(registers.*which);
    const auto cpu = kernel.cpu_of(base);
    if (cpu && *cpu < vcpus) return {*cpu, base};
  }
  const auto bases = kernel.percpu_bases();
  return {vcpu, GuestVirt(vcpu < bases.size() ? bases[vcpu] : 0)};
}

/// The Linux in a machine, as far as firing contexts need it. Both must outlive the LinuxVcpu.
struct LinuxVcpu {
  const guest_linux::Kernel& kernel;
  LinuxContext& context;  // the vCPU's
};

class VcpuContext final : public dif::GuestContext {
 public:
  /// `memory` must outlive it. `vcpus`: of the machine. `inside`: empty where no Linux is known.
  VcpuContext(const vmm::GuestMemory& memory, unsigned vcpus,
              const std::optional<LinuxVcpu>& inside);
  VcpuContext(const VcpuContext&) = delete;
  VcpuContext& operator=(const VcpuContext&) = delete;

  /// The number that the guest gives this vCPU as a CPU.
  CpuPlace locate(const Registers& registers, unsigned vcpu) const;

  /// A new firing moment, of registers at hand. `plan`, which must outlive the firing, says what
  /// the arguments are; the rest is copied.
  void begin(const Registers& registers, const CpuPlace& place, const ArgumentPlan& plan,
             const HostFacts& facts);
  /// A new firing moment, of a vCPU that stands still until the firing is over.
  void begin(vmm::StoppedVcpu& vcpu, const ArgumentPlan& plan, const HostFacts& facts);

  Result<std::uint64_t, Fault> variable(dif::ContextVariable which) const override {
    return guest().variable(which);
  }
  Result<std::size_t, Fault> execname(std::span<char> out) const override {
    return guest().execname(out);
  }
  Result<std::uint64_t, Fault> argument(unsigned n) const override;
  const GuestReader& kernel() const override { return kernel_reader_; }
  const GuestReader& user() const override { return user_reader_; }
  bool is_on_vcpu() const override { return true; }
  Result<std::uint64_t, Fault> machine_register(dif::RegisterSet set,
                                                std::uint64_t n) const override {
    return guest().machine_register(set, n);
  }
  std::uint64_t address_space() const override { return guest().address_space(); }
  Result<std::uint64_t, Fault> lock(dif::LockFact which, GuestVirt at) const override {
    // Also of a Linux that has not set up this CPU yet.
    if (linux_ != nullptr) return linux_->locks().fact(kernel_reader_, which, at);
    return guest().lock(which, at);
  }
  Result<std::size_t, Fault> path(GuestVirt dentry, GuestVirt mount,
                                  std::span<char> out) const override {
    return guest().path(dentry, mount, out);
  }
  Result<CopiedPacket, Fault> packet(GuestVirt skb, PacketPart part,
                                     std::span<std::byte> out) const override {
    return guest().packet(skb, part, out);
  }
  Result<std::size_t, Fault> kernel_stack(std::span<std::uint64_t> frames) const override {
    return guest().kernel_stack(frames);
  }
  Result<std::size_t, Fault> user_stack(std::span<std::uint64_t> frames) const override {
    return guest().user_stack(frames);
  }
  Result<bool, Fault> progeny_of(std::int64_t pid) const override {
    return guest().progeny_of(pid);
  }
  Result<void, Fault> write_user(GuestVirt at, std::span<const std::byte> bytes) const override {
    return guest().write_user(at, bytes);
  }
  Result<void, Fault> wait(std::uint64_t nanoseconds) const override;
  Result<void, Fault> keep_still() const override {
    keeps_still_ = true;
    return {};
  }
  /// Whether the firings of this moment have used it.
  bool keeps_still() const { return keeps_still_; }

 private:
  /// Memory that is looked for only when it is read.
  class Reader final : public GuestReader {
   public:
    using Which = const GuestReader& (dif::GuestContext::*)() const;
    Reader(const VcpuContext& context, Which which) : context_(context), which_(which) {}
    Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
      return (context_.guest().*which_)().read(at, out);
    }

   private:
    const VcpuContext& context_;
    const Which which_;
  };

  /// The context that knows this moment; found out when first asked.
  const dif::GuestContext& guest() const {
    if (guest_ == nullptr) look();
    return *guest_;
  }
  void look() const;
  void settle(const Registers& registers, const CpuPlace& place) const;

  const unsigned vcpus_;
  const guest_linux::Kernel* const kernel_;
  LinuxContext* const linux_;
  mutable BareContext bare_;
  mutable const dif::GuestContext* guest_ = nullptr;
  mutable const Registers* registers_ = nullptr;  // with guest_
  vmm::StoppedVcpu* stopped_ = nullptr;           // while guest_ is null
  const ArgumentPlan* plan_ = &kNoArguments;
  HostFacts facts_{};
  mutable bool keeps_still_ = false;
  const Reader kernel_reader_{*this, &dif::GuestContext::kernel};
  const Reader user_reader_{*this, &dif::GuestContext::user};
};

/// The Linux in a machine, as far as firing contexts need it. Both must outlive the LinuxGuest.
struct LinuxGuest {
  const guest_linux::Kernel& kernel;
  LinuxContexts& contexts;  // by vCPU
};

/// One context for each vCPU, used under its firing lock. The sampler and the vm provider each have
/// their own set. Fire context: operator[] and locate() yes.
class VcpuContexts {
 public:
  /// One for each of `vcpus`; parameters as VcpuContext has them.
  VcpuContexts(const vmm::GuestMemory& memory, unsigned vcpus,
               const std::optional<LinuxGuest>& guest) {
    if (guest) online_.emplace(guest->kernel, memory);
    for (unsigned vcpu = 0; vcpu < vcpus; ++vcpu) {
      std::optional<LinuxVcpu> inside;
      if (guest) inside.emplace(LinuxVcpu{guest->kernel, guest->contexts[vcpu]});
      contexts_.emplace_back(memory, vcpus, inside);
    }
  }

  VcpuContext& operator[](std::uint32_t vcpu) { return contexts_[vcpu]; }
  unsigned size() const { return static_cast<unsigned>(contexts_.size()); }
  /// Which CPU the guest calls this vCPU; below size().
  CpuPlace locate(const Registers& registers, unsigned vcpu) const {
    return contexts_[vcpu].locate(registers, vcpu);
  }
  /// Whether Linux does not use the vCPU that has these registers and that Linux calls `cpu`: it
  /// took the CPU offline, or has not started it since it was plugged in. False if that is not
  /// known.
  bool is_offline(std::uint32_t cpu, const Registers& registers) const {
    return online_ && online_->is_offline(cpu, registers);
  }

 private:
  std::optional<guest_linux::OnlineCpusInRam> online_;
  std::deque<VcpuContext> contexts_;
};

}  // namespace ringside::providers
