#include <gtest/gtest.h>

#include "vmm/kvm/vcpu/pending_events.h"

namespace ringside::vmm::kvm {
namespace {

using Kind = VcpuEvent::Kind;

class FakeSource final : public HostEventSource {
 public:
  FakeSource(std::vector<HostEvent> events, std::uint64_t lost)
      : events_(std::move(events)), lost_(lost) {}
  void drain(std::vector<HostEvent>& events, const Vcpu&) override {
    events.insert(events.end(), events_.begin(), events_.end());
    events_.clear();
  }
  std::uint64_t lost() const override { return lost_; }

 private:
  std::vector<HostEvent> events_;
  const std::uint64_t lost_;
};

HostEvent event(Kind kind, std::uint64_t value, std::uint64_t time) {
  return {time, {kind, 0, {value}}};
}

TEST(VcpuHostEvents, AreHandedOverOnceInOrderWithTheirTimes) {
  VcpuHostEvents events;
  const TscOfTime::Moment start = TscOfTime::now();
  events.listen(std::make_unique<FakeSource>(
      std::vector{event(Kind::Cpuid, 1, start.ns), event(Kind::Hlt, 2, start.ns + 1)}, 0));
  std::vector<std::pair<std::uint64_t, VcpuEvent>> told;
  const auto tell = [&](std::uint64_t tsc, const VcpuEvent& event) {
    told.emplace_back(tsc, event);
  };
  // Time must have passed between an event and its telling.
  while (TscOfTime::now().ns <= start.ns + 1) continue;

  events.take({}, tell);
  events.take({}, tell);

  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].second.kind, Kind::Cpuid);
  EXPECT_EQ(told[1].second.kind, Kind::Hlt);
  EXPECT_LE(told[0].first, told[1].first);
  EXPECT_LE(told[1].first, TscOfTime::now().tsc);
}

TEST(VcpuHostEvents, WithoutASourceThereIsNothing) {
  VcpuHostEvents events;

  events.take({}, [](std::uint64_t, const VcpuEvent&) { FAIL(); });

  EXPECT_EQ(events.lost(), 0u);
}

TEST(VcpuHostEvents, LossesOfSourcesThatAreGoneAreKept) {
  VcpuHostEvents events;

  events.listen(std::make_unique<FakeSource>(std::vector<HostEvent>{}, 3));
  EXPECT_EQ(events.lost(), 3u);
  events.listen(std::make_unique<FakeSource>(std::vector<HostEvent>{}, 2));
  EXPECT_EQ(events.lost(), 5u);
  events.listen(nullptr);

  EXPECT_EQ(events.lost(), 5u);
}

TEST(VcpuHostEvents, EachKindHasItsInstruction) {
  EXPECT_EQ(instruction_of(Kind::Cpuid).size(), 2u);
  EXPECT_EQ(std::to_integer<int>(instruction_of(Kind::Hlt)[0]), 0xf4);
}

}  // namespace
}  // namespace ringside::vmm::kvm
