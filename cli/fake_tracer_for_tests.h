// A tracer without providers: the test says which probes there are. Tests of cli only.
// Fire context: no.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "providers/tracer.h"

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
    return {arguments_known, {}, {}};
  }
  Result<void> enable(const providers::Probe&) override { return {}; }
  unsigned vcpu_count() const override { return 1; }
  Result<void> start(dif::Engine&) override { return {}; }
  void stop() override { stopped = true; }
  std::uint64_t lost_firings() const override { return lost; }
  std::vector<std::string> take_notices() override { return std::exchange(notices, {}); }

  std::vector<providers::Probe> probes;
  std::vector<providers::Refusal> refused;
  bool arguments_known = false;
  int lookups = 0;
  bool stopped = false;
  std::uint64_t lost = 0;
  std::vector<std::string> notices;
};

}  // namespace ringside::cli
