// A vCPU of KVM that a test writes into, and the parts around it: what handles exits runs over
// these as over the guest's. Not linked into the product.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vmm/guest_memory.h"
#include "vmm/kvm/api/kvm_vcpu.h"
#include "vmm/kvm/devices/guest_end.h"
#include "vmm/kvm/vcpu/current_exit.h"
#include "vmm/kvm/vcpu/exit_subscription.h"
#include "vmm/kvm/vcpu/step_over.h"
#include "vmm/kvm/vcpu/vcpu_memory.h"

namespace ringside::vmm::kvm {

/// Writes down the calls. All that is set can be read, in state() too.
class FakeVcpuCalls final : public VcpuCalls {
 public:
  int run() override {
    ran_with_rip.push_back(regs.rip);
    return EINTR;
  }
  kvm_run& state() override { return area; }
  Result<void> set_regs(const kvm_regs& value) override {
    if (refuses) return fail(ErrorCode::Io, "KVM_SET_REGS failed");
    regs = value;
    return {};
  }
  Result<kvm_vcpu_events> events() const override { return pending; }
  Result<void> set_events(const kvm_vcpu_events& value) override {
    pending = value;
    return {};
  }
  Result<void> set_mp_state(std::uint32_t value) override {
    mp_state = value;
    return {};
  }
  Result<void> set_debug(const DebugSetup& setup) override {
    debug.push_back(setup);
    return {};
  }
  Result<void> set_guest_dr6(std::uint64_t value) override {
    dr6 = value;
    return {};
  }
  std::optional<std::uint64_t> msr(std::uint32_t index) const override {
    ++msrs_asked;
    const auto found = msrs.find(index);
    return found == msrs.end() ? std::nullopt : std::optional(found->second);
  }
  bool set_msr(std::uint32_t index, std::uint64_t value) override {
    if (!msrs.contains(index)) return false;
    msrs[index] = value;
    return true;
  }
  std::optional<std::uint64_t> tsc_offset() const override { return offset; }
  std::optional<GuestPhys> translate(GuestVirt) const override { return translated; }

  kvm_run area{};
  kvm_regs regs{};  // as last set
  kvm_vcpu_events pending{};
  std::vector<DebugSetup> debug;
  std::vector<std::uint64_t> ran_with_rip;
  std::map<std::uint32_t, std::uint64_t> msrs;
  std::optional<std::uint64_t> offset = 0;
  std::optional<GuestPhys> translated;
  std::optional<std::uint32_t> mp_state;
  std::optional<std::uint64_t> dr6;
  bool refuses = false;
  mutable unsigned msrs_asked = 0;
};

/// Keeps what it is told.
class KeepingSink : public ExitSink {
 public:
  void on_doorbell(StoppedVcpu&, std::uint32_t) override {}
  void on_breakpoint(StoppedVcpu& vcpu, GuestVirt address) override {
    breakpoints.push_back(address);
    rips.push_back(vcpu.registers().rip);
  }
  void on_event(StoppedVcpu&, const VcpuEvent& event) override { events.push_back(event); }

  std::vector<GuestVirt> breakpoints;
  std::vector<std::uint64_t> rips;  // at the breakpoints
  std::vector<VcpuEvent> events;
};

/// vCPU 1 of 2 in kernel mode, 64 bits, at 0x1000 of 64 KiB of RAM, which it sees one to one.
struct VcpuFakes {
  explicit VcpuFakes(bool rip_after_out = false) : exit(1, kvm, memory, rip_after_out) {
    kvm_sregs& sregs = kvm.area.s.regs.sregs;
    sregs.efer = 1 << 10;  // long mode is active
    sregs.cs.l = 1;
    sregs.cs.selector = 0x10;
    sregs.gs.base = 0xffff'8000'0000'0000;
    kvm.area.s.regs.regs.rip = 0x1000;
    kvm.area.s.regs.regs.rsp = 0x8000;
    subscription.slot().set(&sink);
    exit.begin(1'000'000);
  }

  /// Code, or what else.
  void put(std::uint64_t at, std::initializer_list<std::uint8_t> bytes) {
    for (const std::uint8_t byte : bytes) ram_bytes[at++] = std::byte{byte};
  }
  unsigned byte(std::uint64_t at) const { return std::to_integer<unsigned>(ram_bytes[at]); }
  kvm_regs& regs() { return kvm.area.s.regs.regs; }
  void want(VcpuEvent::Kind kind) {
    VcpuExits::Wanted wanted;
    wanted.kinds[static_cast<std::size_t>(kind)] = true;
    subscription.want(wanted);
  }

  std::vector<std::byte> ram_bytes = std::vector<std::byte>(64 << 10);
  GuestMemory ram{{{GuestPhys(0), ram_bytes}}};
  FakeVcpuCalls kvm;
  VcpuMemory memory{ram, kvm};
  CurrentExit exit;
  ExitSubscription subscription{2};
  KeepingSink sink;
  GuestEnd guest_end{GuestEnd::make_event().value(), [] {}, [] { return std::string("a scene"); }};
};

/// A guest that is a list of what it does when it is entered; then the machine stops.
class ScriptedEntry {
 public:
  explicit ScriptedEntry(FakeVcpuCalls& kvm) : kvm_(kvm) {}

  GuestEntry entry() {
    return {[this] { return enter(); }, [this] { handled.push_back(kvm_.area.exit_reason); }};
  }

  /// Each changes the area as an exit would, and returns KVM_RUN's errno.
  std::deque<std::function<int(kvm_run&)>> script;
  std::vector<std::uint32_t> handled;

 private:
  std::optional<int> enter() {
    if (script.empty()) return std::nullopt;
    kvm_.area.exit_reason = 0;
    const int error = script.front()(kvm_.area);
    script.pop_front();
    return error;
  }

  FakeVcpuCalls& kvm_;
};

}  // namespace ringside::vmm::kvm
