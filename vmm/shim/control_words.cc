#include "vmm/shim/control_words.h"

#include <chrono>

#include "guest-shim/mailbox_abi.h"

namespace ringside::vmm {
namespace {

/// A heartbeat that lies further from the one that we know is none of another thread of ours.
constexpr std::uint64_t kBeatsAtOnce = 1024;
/// A shim that has seen a heartbeat since then still waits: a tenth of its timeout.
constexpr auto kWaitsFor = std::chrono::milliseconds(100);

}  // namespace

void ControlWords::activate() {
  beat();
  if (presence_.state() != ShimState::There) return;
  std::uint64_t expected = 0;
  region_.replace(region_.control_at(SHIM_CONTROL_ACTIVE), expected, 1);
}

void ControlWords::deactivate() {
  if (presence_.state() != ShimState::There) return;
  std::uint64_t expected = 1;
  // Sequentially consistent with the loads of MailboxClaims::quiescent(): a trap whose claim those
  // do not see has not read `active` yet, and will read 0.
  region_.replace(region_.control_at(SHIM_CONTROL_ACTIVE), expected, 0);
}

void ControlWords::beat() {
  if (presence_.state() != ShimState::There) return;
  const std::uint64_t last = heartbeat_.load(std::memory_order_relaxed);
  const Clock::time_point begun = Clock::now();
  std::uint64_t now = last;
  if (region_.replace(region_.control_at(SHIM_CONTROL_HEARTBEAT), now, last + 1)) {
    heartbeat_.store(last + 1, std::memory_order_relaxed);
    beat_.store(begun, std::memory_order_relaxed);
  } else if (now - last >= kBeatsAtOnce) {
    presence_.end(ShimState::Overwritten);
  }
}

void ControlWords::set_doorbell(std::uint16_t port) {
  if (presence_.state() != ShimState::There) return;
  std::uint64_t expected = doorbell_.exchange(port);
  region_.replace(region_.control_at(SHIM_CONTROL_DOORBELL), expected, port);
}

void ControlWords::let_full_rings_wait(bool wait) {
  if (presence_.state() != ShimState::There) return;
  const std::uint64_t word = wait ? 1 : 0;
  std::uint64_t expected = full_waits_.exchange(word);
  region_.replace(region_.control_at(SHIM_CONTROL_FULL_WAITS), expected, word);
}

void ControlWords::note_arming() {
  if (presence_.state() != ShimState::There) return;
  std::uint64_t before = armings_;
  if (region_.replace(region_.control_at(SHIM_CONTROL_ARMINGS), before, before + 1)) ++armings_;
}

bool ControlWords::may_have_timed_out() const {
  return Clock::now() - beat_.load(std::memory_order_relaxed) >= kWaitsFor;
}

}  // namespace ringside::vmm
