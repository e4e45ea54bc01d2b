#include "vmm/kvm/breakpoints.h"

#include <fmt/format.h>
#include <linux/kvm.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace ringside::vmm::kvm {
namespace {

constexpr std::byte kInt3{0xcc};
constexpr unsigned kRegisters = 4;

constexpr unsigned kForGate = 2;  // its handler, its bytes

/// Puts one address into the next free register: DR7's bits are those of SDM volume 3B, 17.2.4.
void watch(DebugSetup& setup, unsigned& used, GuestVirt at, std::uint64_t kind) {
  setup.addresses[used] = at.raw();
  setup.dr7 |= std::uint64_t{3} << (2 * used) | kind << (16 + 4 * used);
  setup.control |= KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_HW_BP;
  ++used;
}
constexpr std::uint64_t kExecute = 0, kWrite8 = 0b1001;

}  // namespace

Result<BreakpointPlan> plan_breakpoints(std::span<const GuestVirt> addresses,
                                        const std::function<bool(GuestVirt)>& is_mapped,
                                        bool bytes_work, unsigned free_registers) {
  std::vector<GuestVirt> wanted(addresses.begin(), addresses.end());
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  BreakpointPlan plan;
  for (const GuestVirt at : wanted) {
    (bytes_work && is_mapped(at) ? plan.bytes : plan.watched).push_back(at);
  }
  if (plan.watched.size() <= free_registers) return plan;
  if (bytes_work) {
    return fail(ErrorCode::Invalid,
                fmt::format("{} breakpoints are at addresses that the guest has not mapped yet "
                            "(the first is {:#x}); the debug registers watch only {}",
                            plan.watched.size(), plan.watched[0].raw(), free_registers));
  }
  return fail(ErrorCode::Limit,
              fmt::format("{} breakpoints before the guest handles int3, and this host's KVM does "
                          "not intercept it: the debug registers watch only {}; enable fewer, or "
                          "later in the boot",
                          plan.watched.size(), free_registers));
}

/// Only over `expected`: a guest that has written new code there keeps it.
void Breakpoints::exchange(GuestPhys where, std::byte expected, std::byte value) {
  std::byte now{};
  if (!memory_.read(where, std::span(&now, 1)) || now != expected) return;
  // Fails only outside RAM, where nothing could be read either.
  (void)memory_.write(where, std::span(&value, 1));
}

Result<std::map<GuestVirt, Breakpoints::Byte>> Breakpoints::look_up(
    std::span<const GuestVirt> addresses, const Locate& locate) const {
  std::map<GuestVirt, Byte> found;
  for (const GuestVirt at : addresses) {
    const auto where = locate(at);
    std::byte original{};
    if (!where || !memory_.read(*where, std::span(&original, 1))) {
      return fail(ErrorCode::Invalid,
                  fmt::format("there is no memory for a breakpoint at {:#x}", at.raw()));
    }
    // Ours from before: what stood there is what we kept.
    const auto before = bytes_.find(at);
    if (before != bytes_.end() && before->second.where == *where && original == kInt3) {
      original = before->second.original;
    }
    found.emplace(at, Byte{*where, original});
  }
  return found;
}

Result<void> Breakpoints::replace(std::span<const GuestVirt> addresses, const Locate& locate,
                                  bool has_gate) {
  const std::unique_lock lock(mutex_);
  const bool bytes_work = route_ != TrapRoute::ToGuest || has_gate;
  const bool gates = route_ == TrapRoute::ToGuest && has_gate;
  const auto is_mapped = [&](GuestVirt at) { return locate(at).has_value(); };
  BreakpointPlan plan = TRY(plan_breakpoints(addresses, is_mapped, bytes_work,
                                             gates ? kRegisters - kForGate : kRegisters));
  auto bytes = TRY(look_up(plan.bytes, locate));
  for (const auto& [at, byte] : bytes_) exchange(byte.where, kInt3, byte.original);
  for (const auto& [at, byte] : bytes) exchange(byte.where, byte.original, kInt3);
  bytes_ = std::move(bytes);
  watched_ = std::move(plan.watched);
  watches_gates_ = gates && !bytes_.empty();
  return {};
}

Breakpoints::Found Breakpoints::find(GuestVirt at) const {
  const std::shared_lock lock(mutex_);
  if (bytes_.contains(at)) return Found::Byte;
  const bool watched = std::find(watched_.begin(), watched_.end(), at) != watched_.end();
  return watched ? Found::Watched : Found::Nothing;
}

DebugSetup Breakpoints::setup(const std::optional<GateWatch>& gate) const {
  const std::shared_lock lock(mutex_);
  DebugSetup setup;
  setup.dr7 = 0x400;  // reads as one
  unsigned used = 0;
  for (const GuestVirt at : watched_) watch(setup, used, at, kExecute);
  if (watches_gates_ && gate) {
    watch(setup, used, gate->handler, kExecute);
    watch(setup, used, gate->gate, kWrite8);
  }
  if (!bytes_.empty() && !watches_gates_) {
    setup.control |= KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_SW_BP;
  }
  return setup;
}

bool Breakpoints::watches_gates() const {
  const std::shared_lock lock(mutex_);
  return watches_gates_;
}

bool Breakpoints::any() const {
  const std::shared_lock lock(mutex_);
  return !bytes_.empty() || !watched_.empty();
}

void Breakpoints::hide(GuestVirt at, std::span<std::byte> code) const {
  const std::shared_lock lock(mutex_);
  for (auto byte = bytes_.lower_bound(at); byte != bytes_.end(); ++byte) {
    const std::uint64_t offset = byte->first.raw() - at.raw();
    if (offset >= code.size()) return;
    if (code[offset] == kInt3) code[offset] = byte->second.original;
  }
}

void Breakpoints::lift(GuestVirt at) {
  const std::unique_lock lock(mutex_);
  const auto found = bytes_.find(at);
  if (found != bytes_.end()) exchange(found->second.where, kInt3, found->second.original);
}

void Breakpoints::restore(GuestVirt at) {
  const std::unique_lock lock(mutex_);
  const auto found = bytes_.find(at);
  if (found != bytes_.end()) exchange(found->second.where, found->second.original, kInt3);
}

}  // namespace ringside::vmm::kvm
