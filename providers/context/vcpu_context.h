// The guest at the moment of a firing at no instruction of ours: a sample, or an event that the
// host sees (an exit, a port, an MSR). Of a vCPU of Linux where one is known and has set this CPU
// up, else of a bare machine; which of the two is found out, and registers are fetched, only when
// the program asks for what needs them, because events come by the hundred thousand and most
// programs only count them.
// Used by the sampler and the vm provider, one instance each for each vCPU (vcpu_contexts.h).
// Fire context: yes.
#pragma once

#include <cstdint>
#include <optional>

#include "providers/context/argument_plan.h"
#include "providers/context/bare_context.h"
#include "providers/context/cpu_place.h"
#include "providers/context/linux_context.h"
#include "vmm/vcpu_exits.h"

namespace ringside::providers {

/// The Linux in a machine, as far as firing contexts need it; both outlive whoever has it.
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

  /// Which CPU the guest calls this vCPU.
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
    if (kernel_ != nullptr) return lock_of_linux(kernel_reader_, which, at);
    return guest().lock(which, at);
  }
  Result<std::size_t, Fault> path(GuestVirt dentry, GuestVirt mount,
                                  std::span<char> out) const override {
    return guest().path(dentry, mount, out);
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
  /// Whether the moment's firings wanted that.
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

}  // namespace ringside::providers
