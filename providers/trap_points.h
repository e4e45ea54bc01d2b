// ProbePoints over the real tracepoint table: where providers put their probes in a guest.
// Fire context: no.
#pragma once

#include "providers/fire/binding.h"
#include "providers/fire/dispatch.h"
#include "providers/tracepoint/tracepoint.h"

namespace ringside::providers {

class TrapPoints final : public ProbePoints {
 public:
  explicit TrapPoints(TracepointTable& table) : table_(table) {}
  /// Where bind() leads to; before the first bind().
  void set_dispatcher(TrapDispatcher* dispatcher) { dispatcher_ = dispatcher; }

  Result<ProbeSite> examine(GuestVirt at, SitePolicy policy) override {
    return table_.examine(at, policy);
  }
  std::uint64_t generation() const override { return table_.generation(); }
  Result<void> bind(const ProbeSite& site, const Binding& binding) override {
    TRY(table_.add(site));
    dispatcher_->add(site.address(), binding);
    return {};
  }

 private:
  TracepointTable& table_;
  TrapDispatcher* dispatcher_ = nullptr;
};

}  // namespace ringside::providers
