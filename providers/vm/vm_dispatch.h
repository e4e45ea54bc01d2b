// Passes events that the host sees of a vCPU (an exit, a port, an MSR) to the probe of the provider
// `vm`. There is at most one probe for each kind of event, and for exits one for each reason. The
// probes may change while events come: an event looks its probe up under the vCPU's firing lock.
// Once set_events() has returned, the old probes do not fire any more. Nothing fires before open()
// or after close(). Fire context: on_event() and wants() yes; everything else no.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <tuple>

#include "providers/clock/guest_clock.h"
#include "providers/context/vcpu_context.h"
#include "providers/dispatch/probe_sink.h"
#include "vmm/vcpu_exits.h"

namespace ringside::providers {

/// Which probe an event fires; id 0: none.
struct EventTable {
  /// Exits for larger reasons than these are led to "other".
  static constexpr std::uint32_t kReasons = 64;

  std::array<dif::ProbeId, vmm::VcpuEvent::kKinds> by_kind{};  // Exit: for larger reasons
  std::array<dif::ProbeId, kReasons> by_reason{};              // Exit

  bool operator==(const EventTable&) const = default;
  /// Which kinds of events any probe wants.
  vmm::VcpuExits::Wanted wanted() const;
  bool wants_any() const { return *this != EventTable(); }
};

/// Where the arguments of the probes of each kind come from.
using EventPlans = std::array<ArgumentPlan, vmm::VcpuEvent::kKinds>;

class VmDispatcher final : public FireGate {
 public:
  /// The index of the reason of an exit among an event's facts; the event's values come before it.
  static constexpr std::uint32_t kReasonFact = std::tuple_size_v<HostFacts> - 1;

  /// Firings go to `sink` and get their time from `clock`. All but `first` must outlive it.
  VmDispatcher(VcpuContexts& contexts, ProbeSink& sink, GuestClock& clock, const EventPlans& plans,
               const EventTable& first);

  /// From now on events fire these probes and no others. When it returns, no firing of an old probe
  /// is under way, so do not call it while you hold a firing lock. One thread at a time.
  void set_events(const EventTable& table);
  const EventTable& table() const { return table_; }

  void open() override { open_.store(true, std::memory_order_release); }
  void close() override { open_.store(false, std::memory_order_release); }
  /// Whether on_event() has anything to do.
  bool wants(const vmm::VcpuEvent& event) const { return probe_of(event) != kNone; }
  void on_event(vmm::StoppedVcpu& vcpu, const vmm::VcpuEvent& event);

 private:
  static constexpr dif::ProbeId kNone{0};
  enum class AfterFiring : std::uint8_t { Resume, StandStill };
  AfterFiring fire(vmm::StoppedVcpu& vcpu, const vmm::VcpuEvent& event);
  dif::ProbeId probe_of(const vmm::VcpuEvent& event) const;
  void store(const EventTable& table);

  VcpuContexts& contexts_;
  ProbeSink& sink_;
  GuestClock& clock_;
  const EventPlans& plans_;
  std::atomic<bool> open_ = false;
  EventTable table_;  // as set_events() was told; for the thread that calls it
  std::array<std::atomic<dif::ProbeId>, vmm::VcpuEvent::kKinds> by_kind_ = {};
  std::array<std::atomic<dif::ProbeId>, EventTable::kReasons> by_reason_ = {};
};

}  // namespace ringside::providers
