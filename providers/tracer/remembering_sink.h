// The engine's sink, which also counts firings and remembers the last ones.
// Used by the tracer. Fire context: fire() yes.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "providers/dispatch/engine_sink.h"

namespace ringside::providers {

class RememberingSink final : public EngineSink {
 public:
  /// `remembers`: for last_firings().
  RememberingSink(dif::Engine& engine, bool remembers, unsigned vcpus)
      : EngineSink(engine), remembers_(remembers), lately_(std::max(vcpus, host_vcpu() + 1)) {}
  void fire(dif::ProbeId probe, const dif::FireRecord& record,
            const dif::GuestContext& guest) override {
    Lately& lately = lately_[record.vcpu];
    lately.count();
    if (remembers_) lately.remember({record.timestamp, probe});
    EngineSink::fire(probe, record, guest);
  }

  /// On any thread.
  std::uint64_t firings() const {
    std::uint64_t sum = 0;
    for (const Lately& lately : lately_) sum += lately.firings();
    return sum;
  }
  std::vector<dif::ProbeId> last_firings() const {
    std::vector<Fired> all;
    for (const Lately& lately : lately_) lately.append_to(all);
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
  /// The firings of one vCPU; used in its turn.
  class alignas(64) Lately {
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

  const bool remembers_;
  std::vector<Lately> lately_;
};

}  // namespace ringside::providers
