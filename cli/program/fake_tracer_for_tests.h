// A tracer without providers: the test says which probes there are. Tests of cli only.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "providers/tracer/tracer.h"

namespace ringside::cli {

class FakeTracer : public providers::Tracer {
 public:
  void add(dif::ProbeDescription name) {
    const auto id = static_cast<std::uint32_t>(probes.size()) + 1;
    probes.push_back({dif::ProbeId{id}, std::move(name)});
  }

  Result<void> for_each_probe(const dif::ProbeDescription& pattern,
                              const std::function<void(const providers::Probe&)>& visit) override {
    ++lookups;
    for (const providers::Probe& probe : probes) {
      if (dif::matches(pattern, probe.name)) visit(probe);
    }
    return {};
  }
  Result<void> refusals(const dif::ProbeDescription& pattern,
                        const std::function<void(const providers::Refusal&)>& visit) override {
    for (const providers::Refusal& refusal : refused) {
      if (dif::matches(pattern, refusal.name)) visit(refusal);
    }
    return {};
  }
  Result<std::optional<providers::Probe>> probe_by_id(dif::ProbeId id) override {
    if (id.value < 1 || id.value > probes.size()) return std::nullopt;
    return probes[id.value - 1];
  }
  providers::ProbeArguments arguments(const providers::Probe&) override {
    return {.known = arguments_known, .types = {}, .names = {}, .translated = {}};
  }
  dif::ProviderAttributes attributes(const providers::Probe&) override { return promised; }
  bool has_provider(std::string_view name) override {
    return std::any_of(probes.begin(), probes.end(),
                       [&](const providers::Probe& probe) { return probe.name.provider == name; });
  }
  Result<void> enable(const providers::Probe&) override { return {}; }
  Result<void> add_probes(std::span<const providers::Probe>) override { return {}; }
  Result<void> remove_probes(std::span<const providers::Probe>) override { return {}; }
  std::optional<std::string> cannot(dif::ActionKind) override { return impossible; }
  unsigned vcpu_count() const override { return 1; }
  Result<void> begin(dif::Engine&) override { return {}; }
  Result<void> arm() override { return {}; }
  void halt() override { halted = true; }
  void stop() override {
    if (when_stopped) when_stopped();
    stopped = true;
  }
  providers::FiringPause* firing_pause() override { return kept; }
  std::optional<std::string> loss() const override { return kernel_gone; }
  providers::TraceStatistics statistics() const override { return statistics_now; }
  std::vector<std::string> take_notices() override { return std::exchange(notices, {}); }

  std::vector<providers::Probe> probes;
  std::vector<providers::Refusal> refused;
  bool arguments_known = false;
  dif::ProviderAttributes promised;
  std::optional<std::string> impossible;
  int lookups = 0;
  bool halted = false, stopped = false;
  std::function<void()> when_stopped;
  providers::FiringPause* kept = nullptr;
  std::optional<std::string> kernel_gone;
  providers::TraceStatistics statistics_now;
  std::vector<std::string> notices;
};

}  // namespace ringside::cli
