#include "vmm/attach/monitor/memory_map.h"

#include <gtest/gtest.h>

#include <string>

#include "vmm/attach/monitor/fake_monitor_for_tests.h"

namespace ringside::vmm {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMiB = 1 << 20;

json backends() {
  return json::array({{{"id", "pc.ram"}, {"size", 24 * kMiB}}, {{"id", "dimm1"}, {"size", kMiB}}});
}

std::string view(const std::string& lines) {
  return "FlatView #0\n AS \"memory\", root: system\n Root memory region: system\n" + lines;
}

/// "" when the map was taken.
std::string map_refusal(const std::string& lines, const json& memdevs = backends()) {
  const auto map = read_memory_map(memdevs, view(lines));
  return map ? "" : map.error().message;
}

TEST(MemoryMap, HasTheRamOfTheSystemAndNothingOfDevices) {
  const auto map = read_memory_map(backends(), FakeMonitor::tree());

  ASSERT_TRUE(map) << map.error().message;
  ASSERT_EQ(map->pieces.size(), 2U);
  EXPECT_EQ(map->pieces[0].base, GuestPhys(0));
  EXPECT_EQ(map->pieces[0].size, 16 * kMiB) << "read-only parts of the same RAM belong to it";
  EXPECT_EQ(map->pieces[1].base, GuestPhys(0x1'0000'0000));
  EXPECT_EQ(map->pieces[1].size, 8 * kMiB);
  EXPECT_EQ(map->pieces[1].offset, 16 * kMiB);
}

TEST(MemoryMap, TellsBackendsApartByTheirWholeName) {
  const auto map = read_memory_map(
      json::array({{{"id", "ram"}, {"size", kMiB}}, {{"id", "ram @1"}, {"size", kMiB}}}),
      view("  0000000000000000-00000000000fffff (prio 0, ram): ram @1\n"
           "  0000000000100000-00000000001fffff (prio 0, ram): ram @0000000000000000 KVM\n"
           "  0000000000200000-00000000002fffff (prio 0, ram): rammed\n"));

  ASSERT_TRUE(map) << map.error().message;
  ASSERT_EQ(map->pieces.size(), 2U);
  EXPECT_EQ(map->pieces[0].backend, 1U);
  EXPECT_EQ(map->pieces[1].backend, 0U);
}

TEST(MemoryMap, RefusesWhatDoesNotFitTogether) {
  const std::string good = "  0000000000000000-00000000000fffff (prio 0, ram): pc.ram\n";
  EXPECT_EQ(map_refusal(good), "");
  EXPECT_NE(map_refusal(""), "") << "no RAM";
  EXPECT_NE(map_refusal("  0000000000000800-00000000000fffff (prio 0, ram): pc.ram\n"), "")
      << "half a page";
  EXPECT_NE(map_refusal("  0000000000100000-00000000000fffff (prio 0, ram): pc.ram\n"), "")
      << "no bytes";
  EXPECT_NE(map_refusal("  0000000000000000-00000000ffffffff (prio 0, ram): pc.ram\n"), "")
      << "more than the backend has";
  EXPECT_NE(
      map_refusal("  0000000000000000-00000000000fffff (prio 0, ram): pc.ram @ffffffffffff0000\n"),
      "")
      << "an offset that wraps";
  EXPECT_NE(map_refusal("  fffffffffff00000-ffffffffffffffff (prio 0, ram): pc.ram\n"), "")
      << "beyond what page tables name";
  EXPECT_NE(map_refusal(good + "  0000000000080000-00000000000fffff (prio 0, ram): dimm1\n"), "")
      << "two at one address";
  EXPECT_NE(map_refusal(good + "  0000000000200000-00000000002fffff (prio 0, ram): pc.ram\n"), "")
      << "one at two addresses";
  EXPECT_NE(map_refusal(good, json::array()), "") << "no backends";
  EXPECT_NE(map_refusal(good, json::array({{{"id", "pc.ram"}, {"size", -1}}})), "");
  EXPECT_NE(map_refusal(good, json::array({{{"id", 7}, {"size", kMiB}}})), "");
  EXPECT_NE(map_refusal(good, json::array({{{"id", "pc.ram"}, {"size", kMiB}},
                                           {{"id", "pc.ram"}, {"size", kMiB}}})),
            "")
      << "two of one name";
}

TEST(MemoryMap, IsBoundedInItsParts) {
  std::string lines;
  for (unsigned i = 0; i < 2000; ++i) {
    std::array<char, 120> line;
    std::snprintf(line.data(), line.size(), "  %016x-%016x (prio 0, ram): pc.ram @%016x\n",
                  i * 0x2000, i * 0x2000 + 0xfff, i * 0x1000);
    lines += line.data();
  }

  EXPECT_NE(map_refusal(lines).find("too many parts"), std::string::npos);
}

TEST(MemoryMap, HasAPlaceForWhatIsPluggedIn) {
  const auto none = read_plug_window(FakeMonitor::tree());
  const auto some = read_plug_window(
      "address-space: memory\n    00000001c0000000-000000033fffffff (prio 0, i/o): "
      "device-memory\n");
  const auto bad =
      read_plug_window("    00000001c0000000-00000001bfffffff (prio 0, i/o): device-memory\n");

  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  ASSERT_TRUE(some && *some);
  EXPECT_EQ((*some)->base, GuestPhys(0x1'c000'0000));
  EXPECT_EQ((*some)->size, 0x1'8000'0000U);
  EXPECT_FALSE(bad);
}

TEST(HostAddress, IsThatOfTheBackendThatWasAskedFor) {
  const std::string answer = "Host virtual address for 0x0 (pc.ram) is 0x7f2197e00000\r\n";

  const auto address = read_host_address(answer, "pc.ram");

  ASSERT_TRUE(address);
  EXPECT_EQ(*address, 0x7f2197e00000U);
  EXPECT_FALSE(read_host_address(answer, "dimm1"));
  EXPECT_FALSE(read_host_address("No memory is mapped at address 0x0\r\n", "pc.ram"));
  EXPECT_FALSE(read_host_address(answer.substr(0, answer.size() - 2) + "junk", "pc.ram"));
  EXPECT_FALSE(
      read_host_address("Host virtual address for 0x0 (pc.ram) is 0x7f2197e00001", "pc.ram"));
  EXPECT_FALSE(read_host_address("Host virtual address for 0x0 (pc.ram) is 0x", "pc.ram"));
}

}  // namespace
}  // namespace ringside::vmm
