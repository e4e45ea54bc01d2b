// A fake of vCPUs on threads of this process: it records the calls, and a test calls the sink as a
// vCPU's thread would. Not linked into the product.
// Does not: run anything, or wait in set_sink() for calls under way (a test's own business).
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vmm/vcpu_exits.h"

namespace ringside::vmm {

class FakeStoppedVcpu final : public StoppedVcpu {
 public:
  explicit FakeStoppedVcpu(unsigned index = 0) : index_(index) {}
  unsigned index() const override { return index_; }
  const Registers& registers() override {
    ++fetched;
    return state;
  }
  std::uint64_t guest_tsc() const override { return tsc; }

  Registers state;
  std::uint64_t tsc = 1'000'000;
  unsigned fetched = 0;  // times that registers were asked for

 private:
  const unsigned index_;
};

class FakeVcpuExits final : public VcpuExits {
 public:
  void set_sink(PausedMachine&, ExitSink* to) override { sink = to; }
  Result<void> want(PausedMachine&, const Wanted& kinds) override {
    ++asked;
    wanted = kinds;
    if (refuses_all) return fail(ErrorCode::Unsupported, "the fake host tells nothing");
    return {};
  }
  std::optional<std::string> cannot(VcpuEvent::Kind kind) const override {
    const auto found = reasons.find(kind);
    return found == reasons.end() ? std::nullopt : std::optional(found->second);
  }
  Result<void> set_breakpoints(PausedMachine&, std::span<const GuestVirt> addresses,
                               const LoadedAt& where) override {
    breakpoints.assign(addresses.begin(), addresses.end());
    loaded_at = where;
    return {};
  }
  void sample(std::uint64_t tag) override { sampled = tag; }
  bool wants(VcpuEvent::Kind kind) const { return wanted.kinds[static_cast<std::size_t>(kind)]; }

  ExitSink* sink = nullptr;
  Wanted wanted;
  unsigned asked = 0;
  std::atomic<std::uint64_t> sampled = 0;  // the last tag; the fire thread asks
  bool refuses_all = false;
  std::map<VcpuEvent::Kind, std::string> reasons;
  std::vector<GuestVirt> breakpoints;
  LoadedAt loaded_at;  // as of the last set_breakpoints()
};

}  // namespace ringside::vmm
