// Leads what the host sees of a vCPU (an exit, a port, an MSR) to the probe of the provider `vm`
// that stands for it. At most one probe for each kind of event, and for exits one for each reason.
// In the vCPU's turn, as all that fires. Nothing fires before open() or after close().
// Fire context: on_event() and wants() yes; everything else no.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <tuple>

#include "providers/context/vcpu_contexts.h"
#include "providers/fire/exit_channel.h"
#include "providers/fire/guest_clock.h"
#include "providers/fire/probe_sink.h"

namespace ringside::providers {

class VmDispatcher final : public VcpuEventSink, public FireGate {
 public:
  /// Exits for larger reasons than these are led to "other".
  static constexpr std::uint32_t kReasons = 64;

  explicit VmDispatcher(VcpuContexts& contexts) : contexts_(contexts) {}

  /// Of an event's facts, the reason of an exit; before it come the event's values.
  static constexpr std::uint32_t kReasonFact = std::tuple_size_v<HostFacts> - 1;

  /// Before seal(). `reason`: of an exit; empty for the probe of all reasons without one of their
  /// own (name_reason() says which have one). `plan` says what the arguments of all probes of this
  /// kind are; it must outlive the dispatcher.
  void lead(vmm::VcpuEvent::Kind kind, std::optional<std::uint32_t> reason, dif::ProbeId probe,
            const ArgumentPlan& plan);
  /// Says that exits for this reason have a probe of their own, enabled or not.
  void name_reason(std::uint32_t reason);
  /// Where firings go and what time they get. Once, before open().
  void seal(ProbeSink& sink, GuestClock& clock);

  /// Which kinds of events any probe wants.
  const vmm::VcpuExits::Wanted& wanted() const { return wanted_; }
  bool wants_any() const;

  void open() override { open_.store(true, std::memory_order_release); }
  void close() override { open_.store(false, std::memory_order_release); }
  bool wants(const vmm::VcpuEvent& event) const override { return probe_of(event) != kNone; }
  void on_event(vmm::StoppedVcpu& vcpu, const vmm::VcpuEvent& event) override;

 private:
  static constexpr dif::ProbeId kNone{0};
  dif::ProbeId probe_of(const vmm::VcpuEvent& event) const;

  VcpuContexts& contexts_;
  ProbeSink* sink_ = nullptr;
  GuestClock* clock_ = nullptr;
  std::atomic<bool> open_ = false;
  vmm::VcpuExits::Wanted wanted_;
  std::array<dif::ProbeId, vmm::VcpuEvent::kKinds> by_kind_ = {};       // Exit: of any other reason
  std::array<const ArgumentPlan*, vmm::VcpuEvent::kKinds> plans_ = {};  // where a probe is led to
  std::array<dif::ProbeId, kReasons> by_reason_ = {};
  std::array<bool, kReasons> named_ = {};
};

}  // namespace ringside::providers
