// The sink that is an engine: firings are evaluated by its clauses. It also counts them, and
// remembers the last ones if it is told to.
// Used by the tracer. Fire context: as its base class.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "dif/engine/engine.h"
#include "providers/dispatch/firing_pause.h"
#include "providers/dispatch/probe_sink.h"

namespace ringside::providers {

class EngineSink : public ProbeSink {
 public:
  enum class Remember : std::uint8_t { Nothing, LastFirings };

  /// `engine`, which was made for as many `vcpus` at least, must outlive the sink.
  EngineSink(dif::Engine& engine, unsigned vcpus, Remember remember = Remember::Nothing)
      : engine_(engine), remember_(remember), recent_(std::max(vcpus, engine.host_vcpu() + 1)) {}

  BriefLock& firing_lock(std::uint32_t vcpu) override { return engine_.firing_lock(vcpu); }
  void wait_for_firings() override { engine_.wait_for_firings(); }
  void fire(dif::ProbeId probe, const dif::FireRecord& record,
            const dif::GuestContext& guest) override {
    RecentFirings& recent = recent_[record.vcpu];
    recent.count();
    if (remember_ == Remember::LastFirings) recent.remember({record.timestamp, probe});
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

  /// On any thread.
  std::uint64_t firings() const {
    std::uint64_t sum = 0;
    for (const RecentFirings& recent : recent_) sum += recent.firings();
    return sum;
  }
  /// The very last one first; empty unless they are remembered. After the last one.
  std::vector<dif::ProbeId> last_firings() const {
    std::vector<Fired> all;
    for (const RecentFirings& recent : recent_) recent.append_to(all);
    std::ranges::stable_sort(all, std::ranges::greater(), &Fired::time);
    std::vector<dif::ProbeId> firings;
    for (const Fired& fired : std::span(all).first(std::min(all.size(), kRemembered))) {
      firings.push_back(fired.probe);
    }
    return firings;
  }

 private:
  static constexpr std::size_t kRemembered = 8;
  struct Fired {
    std::uint64_t time = 0;
    dif::ProbeId probe;
  };
  /// The firings of one vCPU; used under its firing lock.
  class alignas(64) RecentFirings {
   public:
    void count() { count_.store(firings() + 1, std::memory_order_relaxed); }
    /// The one that was counted last.
    void remember(const Fired& fired) { last_[firings() % kRemembered] = fired; }
    std::uint64_t firings() const { return count_.load(std::memory_order_relaxed); }
    void append_to(std::vector<Fired>& all) const {
      const std::uint64_t kept = std::min<std::uint64_t>(firings(), kRemembered);
      for (std::uint64_t n = 0; n < kept; ++n) all.push_back(last_[(firings() - n) % kRemembered]);
    }

   private:
    std::array<Fired, kRemembered> last_{};
    std::atomic<std::uint64_t> count_ = 0;
  };

  dif::Engine& engine_;
  FiringPause* firing_pause_ = nullptr;
  const Remember remember_;
  std::vector<RecentFirings> recent_;
};

}  // namespace ringside::providers
