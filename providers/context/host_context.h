// The GuestContext of a firing that the host makes while a guest runs on: BEGIN, END, tick. No
// thread of the guest is interrupted, so identity is the tracer's own. Kernel memory can be read.
// curthread is the kernel's first thread, which always exists, so that members of it can be read.
// Fire context: yes.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "dif/evaluate/guest_context.h"
#include "providers/context/argument_plan.h"
#include "providers/context/linux_locks.h"
#include "vmm/linux/packets.h"
#include "vmm/linux/paths.h"

namespace ringside::providers {

/// This process on this host, its parent and so on, as far as /proc tells: for progenyof() in
/// probes that the host fires.
std::vector<pid_t> host_ancestors();

/// The guest as a firing that the host makes sees it.
struct HostView {
  const GuestReader* kernel = nullptr;  // kernel addresses; null: there is no guest
  GuestVirt first_task{0};              // init_task; 0 where it is unknown
  guest_linux::LinuxPaths paths{};
  guest_linux::LinuxPackets packets{};
  LinuxLocks locks{};
  std::function<void()> look_again{};  // before a firing that reads through `kernel`
};

class HostContext final : public dif::GuestContext {
 public:
  /// `kernel` must outlive it; null: there is no guest, and every read faults. `first_task` is the
  /// guest's init_task, 0 where it is unknown.
  HostContext(const GuestReader* kernel, GuestVirt first_task,
              const guest_linux::LinuxPaths& paths = {},
              const guest_linux::LinuxPackets& packets = {}, const LinuxLocks& locks = {})
      : identity_(&dif::no_guest_context()),
        kernel_(kernel != nullptr ? kernel : &identity_->kernel()),
        first_task_(first_task),
        paths_(paths),
        packets_(packets),
        locks_(locks),
        ancestors_(host_ancestors()) {}

  /// A new firing moment. `plan`, which must outlive it, says what the arguments are; registers
  /// are those of no CPU, all 0.
  void begin(const ArgumentPlan& plan, const HostFacts& facts) {
    plan_ = &plan;
    facts_ = facts;
  }

  Result<std::uint64_t, Fault> variable(dif::ContextVariable which) const override {
    if (which == dif::ContextVariable::Curthread) return first_task_.raw();
    return identity_->variable(which);
  }
  Result<std::size_t, Fault> execname(std::span<char> out) const override {
    return identity_->execname(out);
  }
  Result<std::uint64_t, Fault> argument(unsigned n) const override {
    static constexpr Registers kOfNoCpu{};
    return plan_->value(n, {kOfNoCpu, *kernel_, 0, facts_});
  }
  Result<bool, Fault> progeny_of(std::int64_t pid) const override {
    return std::ranges::find(ancestors_, pid) != ancestors_.end();
  }
  const GuestReader& kernel() const override { return *kernel_; }
  Result<std::uint64_t, Fault> lock(dif::LockFact which, GuestVirt at) const override {
    return locks_.fact(*kernel_, which, at);
  }
  Result<std::size_t, Fault> path(GuestVirt dentry, GuestVirt mount,
                                  std::span<char> out) const override {
    return paths_.path(*kernel_, dentry, mount, out);
  }
  Result<CopiedPacket, Fault> packet(GuestVirt skb, PacketPart part,
                                     std::span<std::byte> out) const override {
    return packets_.copy(*kernel_, skb, part, out);
  }
  const GuestReader& user() const override { return identity_->user(); }
  /// No vCPU waits for this firing.
  Result<void, Fault> keep_still() const override { return {}; }

 private:
  const dif::GuestContext* identity_;
  const GuestReader* kernel_;
  GuestVirt first_task_;
  guest_linux::LinuxPaths paths_;
  guest_linux::LinuxPackets packets_;
  LinuxLocks locks_;
  std::vector<pid_t> ancestors_;  // with the tracer itself
  const ArgumentPlan* plan_ = &kNoArguments;
  HostFacts facts_{};
};

}  // namespace ringside::providers
