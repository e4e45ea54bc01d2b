#include "vmm/kvm/vcpu/breakpoints.h"

#include <fmt/format.h>
#include <linux/kvm.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "vmm/arch/arch.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::array kInt3{arch::kBreakpoint};
constexpr std::array kPortWrite{arch::kPortWrite, std::byte{Breakpoints::kTrapPort}};
constexpr unsigned kRegisters = 4;

bool is_any_of(std::byte byte, std::initializer_list<unsigned> values) {
  return std::find(values.begin(), values.end(), std::to_integer<unsigned>(byte)) != values.end();
}

}  // namespace

bool takes_port_write(std::span<const std::byte> code) {
  if (code.size() < 2) return false;
  if (code[0] == arch::kHalt) return false;  // what follows is executed much later
  // Of the instructions of one byte, those after which what follows may be another block's start:
  // ret, far ret, iret, int3.
  const bool ends_block = is_any_of(code[0], {0xc3, 0xcb, 0xcf, 0xcc});
  // int3 and nop in their usual forms stand between functions.
  return !ends_block || is_any_of(code[1], {0xcc, 0x90, 0x66, 0x0f});
}

Result<BreakpointPlan> plan_breakpoints(std::span<const GuestVirt> addresses,
                                        const std::function<bool(GuestVirt)>& takes_bytes,
                                        unsigned free_registers) {
  std::vector<GuestVirt> wanted(addresses.begin(), addresses.end());
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  BreakpointPlan plan;
  for (const GuestVirt at : wanted) (takes_bytes(at) ? plan.bytes : plan.watched).push_back(at);
  if (plan.watched.size() <= free_registers) return plan;
  const std::string which = fmt::format(
      "{} breakpoints are where the guest has no memory yet or where ours does not fit (the first "
      "at {:#x})",
      plan.watched.size(), plan.watched[0].raw());
  if (free_registers == 0) {
    return fail(ErrorCode::Invalid,
                which + ", and this host's KVM does not watch by debug registers");
  }
  return fail(
      ErrorCode::Limit,
      fmt::format("{}; the debug registers watch only {}: enable fewer, or later in the boot",
                  which, free_registers));
}

std::span<const std::byte> Breakpoints::trap() const {
  if (by_port()) return kPortWrite;
  return kInt3;
}

/// Writes only over `expected`, so that a guest that has written new code there keeps it.
void Breakpoints::exchange(const Patch& patch, std::span<const std::byte> expected,
                           std::span<const std::byte> value) {
  const std::size_t size = trap().size();
  for (std::size_t i = 0; i < size; ++i) {
    std::byte now{};
    if (!memory_.read(patch.where[i], std::span(&now, 1)) || now != expected[i]) return;
  }
  for (std::size_t i = 0; i < size; ++i) {
    // Fails only outside RAM, where nothing could be read either.
    (void)memory_.write(patch.where[i], value.subspan(i, 1));
  }
}

bool Breakpoints::read(GuestVirt at, const Locate& locate, std::span<std::byte> code) const {
  for (std::size_t i = 0; i < code.size(); ++i) {
    const auto where = locate(at.wrapping_add(i));
    if (!where || !memory_.read(*where, code.subspan(i, 1))) return false;
  }
  return true;
}

/// Empty where our bytes do not fit. The guest's own bytes decide that, not ours over them.
std::optional<Breakpoints::Patch> Breakpoints::prepare(GuestVirt at, const Locate& locate) const {
  std::array<std::byte, 2> code{};
  const auto size = trap().size();
  if (!read(at, locate, std::span(code).first(size))) return std::nullopt;
  Patch patch;
  for (std::size_t i = 0; i < size; ++i) patch.where[i] = *locate(at.wrapping_add(i));
  const auto before = bytes_.find(at);
  const bool ours = before != bytes_.end() && before->second.where == patch.where &&
                    std::equal(trap().begin(), trap().end(), code.begin());
  patch.original = ours ? before->second.original : code;
  if (by_port() && !takes_port_write(patch.original)) return std::nullopt;
  return patch;
}

Result<void> Breakpoints::replace(std::span<const GuestVirt> addresses, const Locate& locate) {
  const std::unique_lock lock(mutex_);
  std::map<GuestVirt, Patch> bytes;
  const auto takes_bytes = [&](GuestVirt at) {
    // In ascending order: the one before must end before this one.
    if (!bytes.empty() && at.is_in(bytes.rbegin()->first, trap().size())) return false;
    const auto patch = prepare(at, locate);
    if (patch) bytes.emplace(at, *patch);
    return patch.has_value();
  };
  BreakpointPlan plan =
      TRY(plan_breakpoints(addresses, takes_bytes, trap_behavior_.watches ? kRegisters : 0));
  for (const auto& [at, patch] : bytes_) exchange(patch, trap(), patch.original);
  for (const auto& [at, patch] : bytes) exchange(patch, patch.original, trap());
  bytes_ = std::move(bytes);
  watched_ = std::move(plan.watched);
  return {};
}

Breakpoints::Found Breakpoints::find(GuestVirt at) const {
  const std::shared_lock lock(mutex_);
  if (bytes_.contains(at)) return Found::Byte;
  const bool watched = std::find(watched_.begin(), watched_.end(), at) != watched_.end();
  return watched ? Found::Watched : Found::Nothing;
}

std::optional<GuestVirt> Breakpoints::met_at(GuestVirt rip, const Locate& locate) const {
  const std::shared_lock lock(mutex_);
  if (bytes_.contains(rip)) return rip;
  const auto where = locate(rip);
  const auto met = std::find_if(bytes_.begin(), bytes_.end(), [&](const auto& breakpoint) {
    return breakpoint.second.where[0] == where;
  });
  return met == bytes_.end() ? std::nullopt : std::optional(met->first);
}

std::optional<GuestVirt> Breakpoints::split_at(GuestVirt rip) const {
  if (!by_port()) return std::nullopt;
  const std::shared_lock lock(mutex_);
  const auto found = bytes_.find(rip.wrapping_sub(1));
  if (found == bytes_.end()) return std::nullopt;
  const Patch& patch = found->second;
  std::byte now{};
  const bool ours = memory_.read(patch.where[1], std::span(&now, 1)) && now == trap()[1] &&
                    patch.original[1] != now;
  return ours ? std::optional(found->first) : std::nullopt;
}

/// DR7's bits are those of SDM volume 3B, 17.2.4: instruction breakpoints have type and size 0.
DebugSetup Breakpoints::setup() const {
  const std::shared_lock lock(mutex_);
  DebugSetup setup;
  setup.dr7 = 0x400;  // reads as one
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    setup.addresses[i] = watched_[i].raw();
    setup.dr7 |= std::uint64_t{3} << (2 * i);
    setup.control |= KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_HW_BP;
  }
  if (!bytes_.empty() && !by_port()) setup.control |= KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_SW_BP;
  return setup;
}

void Breakpoints::hide(GuestVirt at, std::span<std::byte> code) const {
  const std::shared_lock lock(mutex_);
  const std::span<const std::byte> ours = trap();
  for (auto patch = bytes_.lower_bound(at.wrapping_sub(std::min<std::uint64_t>(at.raw(), 1)));
       patch != bytes_.end(); ++patch) {
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const std::uint64_t offset = patch->first.wrapping_add(i).offset_from(at);
      if (offset < code.size() && code[offset] == ours[i]) code[offset] = patch->second.original[i];
    }
    if (patch->first >= at && !patch->first.is_in(at, code.size())) return;
  }
}

void Breakpoints::lift(GuestVirt at) {
  const std::unique_lock lock(mutex_);
  const auto found = bytes_.find(at);
  if (found != bytes_.end()) exchange(found->second, trap(), found->second.original);
}

void Breakpoints::restore(GuestVirt at) {
  const std::unique_lock lock(mutex_);
  const auto found = bytes_.find(at);
  if (found != bytes_.end()) exchange(found->second, found->second.original, trap());
}

}  // namespace ringside::vmm::kvm
