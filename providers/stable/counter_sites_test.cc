// Counters of a fake kernel: which instructions add to them, and what a probe there knows.
#include "providers/stable/counter_sites.h"

#include <array>

#include "providers/testing/functions_for_tests.h"

namespace ringside::providers {
namespace {

constexpr std::uint64_t kEvents = 0x1000;   // per-CPU offset of the array
constexpr std::uint64_t kNet = 0x3000;      // guest-physical
constexpr std::uint64_t kMibOfNet = 24;     // bytes
constexpr std::uint64_t kPackets = 0x5000;  // per-CPU offset that the network's pointer has

class Counters : public FunctionProviders {
 protected:
  Counters() {
    TypeGraph& types = kernel_.own_types();
    const Enumerator events[] = {{"FAULTS", 2}, {"SCANS", 5}};
    types.index(types.add_enum("events", 4, false, events));
    const TypeId word = *types.find("unsigned long");
    const Member pointer[] = {{"packets", types.pointer_to(word), 64, 0}};
    const TypeId mib = types.add_struct(TypeKind::Struct, "mib", 16, pointer);
    const Member inside[] = {{"mib", mib, (kMibOfNet - 8) * 8, 0}};
    types.index(types.add_struct(TypeKind::Struct, "net", 64, inside));
    memory_.put64(kNet + kMibOfNet, kPackets);
    functions_.push_back({GuestVirt(kEvents), 0, "vm_event_states", 'A', 0});
  }
  void seal_with_net() {
    data("init_net", kNet);
    seal();
  }
  /// Whether a stand's arrival fires with these registers; then what it adds, and to what.
  struct Fired {
    std::uint64_t amount = 0, counter = 0;
    bool operator==(const Fired&) const = default;
  };
  std::optional<Fired> arrive(const BoundSite& bound) {
    FilterValues out;
    const ArgumentMoment moment{registers_, text_, 0, {}, nullptr, kernel_address(kPercpu0)};
    if (!bound.binding.filter->fires(moment, out)) return std::nullopt;
    const auto counter = out.words[1] - kernel_address(kPercpu0).raw();
    return Fired{out.words[0], counter};
  }
  std::string reason(std::string_view counter) {
    const auto sites = sites_.sites_of(counter);
    return sites ? std::string() : sites.error().message;
  }

  Registers registers_;
  CounterSites sites_{text_, kernel_, points_};
};

TEST_F(Counters, AreWhereTheirInstructionsStand) {
  function("other", {0x65, 0x48, 0xff, 0x04, 0x25, 0x18, 0x10, 0, 0, 0xc3});  // inc gs:[0x1018]
  const GuestVirt fault =  // inc gs:[0x1010], after a mov whose number looks like one
      function("fault", {0x48, 0xb8, 0x65, 0x48, 0xff, 0x04, 0x25, 0x10, 0x10, 0,
                         0x65, 0x48, 0xff, 0x04, 0x25, 0x10, 0x10, 0,    0,    0xc3});
  seal_with_net();

  const auto sites = sites_.sites_of("vm_event_states[FAULTS]");

  ASSERT_TRUE(sites) << sites.error().message;
  ASSERT_EQ(sites->size(), 1u);
  EXPECT_EQ(sites->front().site.address().raw(), fault.raw() + kNopSize + 10);
  EXPECT_EQ(arrive(sites->front()), (Fired{1, kEvents + 16}));
}

TEST_F(Counters, AnIndexedAdditionCountsWhereItGoesThere) {
  function("scan", {0x65, 0x48, 0x01, 0x34, 0xc5, 0x08, 0x10, 0, 0, 0xc3});  // gs:[rax*8+0x1008]
  seal_with_net();
  const auto sites = sites_.sites_of("vm_event_states[SCANS]");
  ASSERT_TRUE(sites) << sites.error().message;
  ASSERT_EQ(sites->size(), 1u);

  registers_.rsi = 7;
  registers_.rax = 4;
  EXPECT_EQ(arrive(sites->front()), (Fired{7, kEvents + 40}));
  registers_.rax = 3;
  EXPECT_EQ(arrive(sites->front()), std::nullopt) << "another element";
}

TEST_F(Counters, OfTheNetworkAreWhereTheRegisterLeads) {
  function("receive", {0x65, 0x48, 0xff, 0x40, 0x10, 0xc3});  // inc gs:[rax+0x10]
  function("send", {0x65, 0x48, 0xff, 0x40, 0x18, 0xc3});
  seal_with_net();
  const auto sites = sites_.sites_of("init_net.mib.packets[NONE|FAULTS]");
  ASSERT_TRUE(sites) << sites.error().message;
  ASSERT_EQ(sites->size(), 1u);

  registers_.rax = kPackets;
  EXPECT_EQ(arrive(sites->front()), (Fired{1, kPackets + 16}));
  registers_.rax = kPackets + 0x1000;
  EXPECT_EQ(arrive(sites->front()), std::nullopt) << "another network's";
}

TEST_F(Counters, OneThatCannotBeCountedEverywhereIsRefused) {
  const GuestVirt fault = function("fault", {0x65, 0x48, 0xff, 0x04, 0x25, 0x10, 0x10, 0, 0, 0xc3});
  seal_with_net();
  points_.refused = {fault.raw() + kNopSize};

  EXPECT_EQ(reason("vm_event_states[FAULTS]"), "the test says no");
  EXPECT_EQ(reason("vm_event_states[SCANS]"),
            "nothing in this kernel adds to vm_event_states[SCANS]");
  EXPECT_EQ(reason("vm_event_states[NONE]"), "this kernel has no counter NONE");
  EXPECT_EQ(reason("absent[FAULTS]"), "this kernel has no counter absent");
  EXPECT_EQ(reason("init_net.mib.none[FAULTS]"), "struct mib of this kernel has no member none");
}

}  // namespace
}  // namespace ringside::providers
