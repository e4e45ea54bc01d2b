// The sink that is an engine: firings are evaluated by its clauses.
// Used by the tracer.
// Fire context: as its base class.
#pragma once

#include "dif/engine/engine.h"
#include "providers/dispatch/firing_pause.h"
#include "providers/dispatch/probe_sink.h"

namespace ringside::providers {

class EngineSink : public ProbeSink {
 public:
  /// `engine` must outlive the sink.
  explicit EngineSink(dif::Engine& engine) : engine_(engine) {}

  BriefLock& turn(std::uint32_t vcpu) override { return engine_.turn(vcpu); }
  void wait_for_turns() override { engine_.wait_for_turns(); }
  void fire(dif::ProbeId probe, const dif::FireRecord& record,
            const dif::GuestContext& guest) override {
    engine_.fire(probe, record, guest);
  }
  std::uint32_t host_vcpu() const override { return engine_.host_vcpu(); }
  bool finished() const override { return engine_.exit_status().has_value(); }
  /// Before anything fires: vCPUs can be kept. It must outlive the sink.
  void set_firing_pause(FiringPause& firing_pause) { firing_pause_ = &firing_pause; }
  void keep(std::uint32_t cpu, const FiringVcpu& kept) override {
    if (firing_pause_ != nullptr) firing_pause_->ask(cpu, kept);
  }
  void settle(std::uint32_t cpu) override {
    if (firing_pause_ != nullptr) firing_pause_->settle(cpu);
  }

 private:
  dif::Engine& engine_;
  FiringPause* firing_pause_ = nullptr;
};

}  // namespace ringside::providers
