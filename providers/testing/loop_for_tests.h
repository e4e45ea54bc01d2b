// For tests of the fire loop: a shim whose traps the test makes, and a wait for another thread.
// Used by the tests of providers/fire; not linked into the product.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include "providers/clock/host_clock.h"
#include "providers/profile/timers.h"
#include "providers/testing/fake_guest.h"
#include "vmm/shim/mailboxes.h"

namespace ringside::providers {

/// Raises one trap in each poll while `raise` is set. Called by threads that poll.
class FakeShim final : public vmm::Mailboxes {
 public:
  void activate() override { active = true; }
  void deactivate() override { active = false; }
  unsigned poll_share(const vmm::TrapHandlers& handlers, vmm::PollShare share) override {
    shares |= 1U << share.index;
    if (!raise) return 0;
    vmm::Trap trap;
    trap.address = address;
    trap.tsc = host_tsc();
    trap.percpu_base = kernel_address(kPercpu0);
    trap.registers.cr3 = kRoot;
    handlers.sink().on_trap(trap);
    ++polled;
    return 1;
  }
  void set_doorbell(std::uint16_t port) override { doorbell = port; }
  void answer(std::uint32_t mailbox, const vmm::TrapHandlers& handlers) override {
    answered = mailbox;
    poll(handlers);
  }
  void heartbeat() override { ++beats; }
  bool quiescent() const override { return !raise; }
  vmm::ShimCounters counters() const override { return {}; }
  bool contains(GuestVirt pc) const override { return pc.raw() == kInShim; }
  std::optional<Registers> waiting(GuestVirt) const override {
    Registers interrupted;
    interrupted.rip = 0x4242;
    return interrupted;
  }
  std::optional<vmm::Displaced> displaced_from(GuestVirt, std::uint64_t) const override {
    return {};
  }
  static constexpr std::uint64_t kInShim = 0xffff'ffff'8100'0000;

  GuestVirt address{0x1000};  // of the traps
  std::atomic<bool> raise = false, active = false;
  std::atomic<unsigned> polled = 0, beats = 0;
  std::atomic<unsigned> shares = 0;  // that were polled, bit n: the one of index n
  std::atomic<std::uint32_t> doorbell = 0, answered = UINT32_MAX;
};

/// Waits for what the fire thread does; a broken loop fails the test instead of hanging it.
inline bool eventually(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

inline EnabledTimer tick(std::uint32_t probe) {
  return {dif::ProbeId{probe}, TimerKind::Tick, kShortestInterval, &kNoArguments};
}

}  // namespace ringside::providers
