#include "vmm/attach/monitor/shim_card.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace ringside::vmm {
namespace {

using nlohmann::json;

constexpr std::int64_t kAddress = 0x1'0000'0000;

/// A QEMU with a guest that has room for cards of `room` bytes.
class CardQemu final : public Monitor {
 public:
  Result<json> execute(std::string_view command, const json& arguments) override {
    asked.emplace_back(command);
    if (command == "query-status") return json{{"status", status}};
    if (command == "query-pci") return pci();
    if (command == "query-memdev") return memdevs();
    if (command == "object-add") return add_memory(arguments);
    if (command == "object-del") return remove_memory(arguments);
    if (command == "device_add") return add_card(arguments);
    if (command == "device_del") return json(card = card && lets_go ? false : card);
    return fail(ErrorCode::Invalid, "no such command");
  }
  Result<void> pass_descriptor(std::string_view, int) override { return {}; }
  int event_fd() const override { return -1; }
  Result<std::vector<QmpEvent>> take_events() override { return std::vector<QmpEvent>(); }

  std::int64_t room = 16 << 20, size = 0, address = kAddress;
  std::string memory;
  std::set<std::string> names;
  bool card = false, lets_go = true, has_slots = true;
  std::string status = "running", bus;
  std::vector<std::string> asked;

 private:
  json pci() {
    json devices = json::array({{{"qdev_id", "nic"}, {"regions", json::array()}}});
    json port{{"qdev_id", "port1"}, {"pci_bridge", {{"bus", json::object()}}}};
    if (card) {
      // The guest reads the size first; then it gives an address.
      const bool fits = size <= room && looks_++ > 1;
      const json device{
          {"qdev_id", "ringside-card"},
          {"regions",
           json::array({{{"bar", 0}, {"type", "memory"}, {"address", 0x2000'0000}, {"size", 256}},
                        {{"bar", 2},
                         {"type", "memory"},
                         {"address", fits ? address : -1},
                         {"size", size}}})}};
      if (bus.empty()) {
        devices.push_back(device);
      } else {
        port["pci_bridge"]["devices"] = json::array({device});
      }
    }
    devices.push_back(port);
    return json::array({{{"bus", 0}, {"devices", devices}}});
  }
  json memdevs() const {
    json all = json::array({{{"id", "pc.ram"}}});
    if (!memory.empty()) all.push_back({{"id", memory}});
    return all;
  }
  Result<json> add_memory(const json& arguments) {
    if (!memory.empty()) return fail(ErrorCode::Invalid, "the last one is still there");
    memory = arguments.value("id", "");
    EXPECT_TRUE(names.insert(memory).second) << "QEMU aborts when it meets a name again";
    size = arguments.value("size", std::int64_t{0});
    return json::object();
  }
  Result<json> remove_memory(const json& arguments) {
    if (arguments.value("id", "") != memory || card) return fail(ErrorCode::Invalid, "in use");
    memory.clear();
    return json::object();
  }
  Result<json> add_card(const json& arguments) {
    bus = arguments.value("bus", "");
    if (bus.empty() && !has_slots) {
      return fail(ErrorCode::Invalid, "Bus 'pcie.0' does not support hotplugging");
    }
    if (!bus.empty() && bus != "port1") return fail(ErrorCode::Invalid, "no such bus");
    card = true;
    looks_ = 0;
    return json::object();
  }

  unsigned looks_ = 0;
};

TEST(ShimCard, LiesWhereTheGuestPutsIt) {
  CardQemu qemu;

  const auto card = ShimCard::plug(qemu);

  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card->place().base, GuestPhys(kAddress));
  EXPECT_EQ(card->place().size, 16U << 20);
  const auto found = ShimCard::find(qemu);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->place().base, card->place().base);
  EXPECT_EQ((*found)->memory(), qemu.memory);
  EXPECT_TRUE(ShimCard::unplug(qemu));
  EXPECT_FALSE(qemu.card);
  EXPECT_EQ(qemu.memory, "");
  EXPECT_TRUE(ShimCard::plug(qemu)) << "and again, by another name";
}

TEST(ShimCard, GoesBehindAPortWhereTheFirstBusTakesNone) {
  CardQemu qemu;
  qemu.has_slots = false;

  ASSERT_TRUE(ShimCard::plug(qemu));

  EXPECT_EQ(qemu.bus, "port1");
}

TEST(ShimCard, IsRefusedWhereTheGuestGivesItNoAddress) {
  CardQemu qemu;
  qemu.status = "paused";  // nobody waits for it

  const auto card = ShimCard::plug(qemu);

  ASSERT_FALSE(card);
  EXPECT_EQ(card.error().code, ErrorCode::Unsupported);
  EXPECT_FALSE(qemu.card);
  EXPECT_EQ(qemu.memory, "") << "nothing stays";
}

TEST(ShimCard, AddressesThatMakeNoSenseAreNone) {
  for (const std::int64_t address :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{0x1001}, std::int64_t{1} << 60}) {
    CardQemu qemu;
    qemu.card = true;
    qemu.size = 2 << 20;
    qemu.address = address;

    for (int n = 0; n < 4; ++n) {
      const auto found = ShimCard::find(qemu);
      ASSERT_TRUE(found);
      EXPECT_FALSE(*found) << address;
    }
  }
}

TEST(ShimCard, OneThatTheGuestKeepsIsTold) {
  CardQemu qemu;
  qemu.card = true;
  qemu.memory = "ringside-memory-1";
  qemu.lets_go = false;
  qemu.status = "paused";

  const auto unplugged = ShimCard::unplug(qemu);
  const auto second = ShimCard::plug(qemu);

  ASSERT_FALSE(unplugged);
  EXPECT_EQ(unplugged.error().code, ErrorCode::Io);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("still there"), std::string::npos);
  EXPECT_NE(qemu.memory, "");
}

TEST(ShimCard, IsEmptyWhenNoByteOfItIsSet) {
  CardQemu qemu;
  qemu.room = 2 << 20;
  qemu.size = 2 << 20;
  qemu.card = true;
  for (int n = 0; n < 3; ++n) (void)ShimCard::find(qemu);
  const auto card = ShimCard::find(qemu);
  ASSERT_TRUE(card && *card);
  std::vector<std::byte> bytes(2 << 20);
  const GuestMemory memory({{GuestPhys(kAddress), bytes}});

  EXPECT_TRUE((*card)->is_empty(memory));
  bytes.back() = std::byte{1};
  EXPECT_FALSE((*card)->is_empty(memory));
  EXPECT_FALSE((*card)->is_empty(GuestMemory())) << "nobody knows";
}

}  // namespace
}  // namespace ringside::vmm
