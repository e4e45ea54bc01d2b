// Capture files, read back block by block, and where an output's packets go.
#include "cli/output/packet_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/output/fake_program_for_tests.h"

namespace ringside::cli {
namespace {

using namespace testing_support;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint32_t kSection = 0x0a0d'0d0a, kInterfaceBlock = 1, kPacketBlock = 6;

std::uint32_t word(std::string_view text, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, text.substr(at, 4).data(), 4);
  return value;
}

struct ReadBlock {
  std::uint32_t type = 0;
  std::string body;
  /// The texts of the options of that number; they begin at `from`.
  std::vector<std::string> options(std::size_t from, std::uint16_t wanted) const {
    std::vector<std::string> found;
    for (std::size_t at = from; at + 4 <= body.size();) {
      const std::uint32_t head = word(body, at), length = head >> 16;
      if ((head & 0xffff) == wanted) found.push_back(body.substr(at + 4, length));
      at += 4 + (length + 3) / 4 * 4;
    }
    return found;
  }
};

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Checks on the way that each block ends with its length.
std::vector<ReadBlock> blocks_of(const std::string& text) {
  std::vector<ReadBlock> blocks;
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t size = word(text, at + 4);
    EXPECT_EQ(size % 4, 0u);
    if (size < 12 || size > text.size() - at || word(text, at + size - 4) != size) {
      ADD_FAILURE() << "a block of " << size << " at " << at;
      break;
    }
    blocks.push_back({word(text, at), text.substr(at + 8, size - 12)});
    at += size;
  }
  return blocks;
}

std::vector<std::uint32_t> types_of(const std::string& path) {
  std::vector<std::uint32_t> types;
  for (const ReadBlock& block : blocks_of(contents(path))) types.push_back(block.type);
  return types;
}

class PacketOutput : public OutputFixture {
 protected:
  static constexpr std::size_t kBytes = 8;
  struct Field {
    dif::PacketHeader header;
    std::array<char, kBytes> bytes{};
  };
  static Field field(std::string_view bytes, std::string_view device = "eth0") {
    Field made{.header = {.walltimestamp = 0x1'0000'0002,
                          .captured = static_cast<std::uint32_t>(bytes.size()),
                          .length = 1500,
                          .pid = 42,
                          .process = {"curl"}}};
    std::copy(bytes.begin(), bytes.end(), made.bytes.begin());
    std::copy(device.begin(), device.end(), made.header.device.begin());
    return made;
  }
  /// Owns what the packet refers to.
  static Packet packet(const Field& from, std::uint16_t link = 1) {
    return *read_packet(std::as_bytes(std::span(&from, 1)), link);
  }
  dif::EcbId pcap_clause(std::vector<Action> before = {}) {
    const auto place = static_cast<std::uint32_t>(before.size());
    before.push_back(action(ActionKind::Pcap));
    const ValueType bytes{ValueKind::Bytes, false, sizeof(Field)};
    const ValueType number{ValueKind::Integer, false, 8};
    return program_.add(
        {"sdt", "vmlinux", "kfree_skb_reason", "kfree_skb"}, std::move(before),
        {{place, 0, 0, sizeof(Field), bytes}, {place, 1, sizeof(Field), 8, number}});
  }
  static Action freopen(std::string_view path) {
    Action made = action(ActionKind::Freopen);
    made.format = path;
    return made;
  }
  std::string path(std::string_view name) { return folder_ / name; }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_ = [] {
    char name[] = "/tmp/ringside-packets-XXXXXX";
    return std::string(mkdtemp(name));
  }();
};

TEST_F(PacketOutput, HaveAnInterfaceForEachMachineDeviceAndLinkType) {
  auto file = CaptureFile::append_to(path("a"));
  ASSERT_TRUE(file);
  const Field one = field("1"), other = field("22", "lo\xff");
  file->add(packet(one), {"web1", "p:m:f:n", 3, 0});
  file->add(packet(one), {"web1", "p:m:f:n", 3, 0});
  file->add(packet(one, 101), {"web1", "p:m:f:n", 3, 0});
  file->add(packet(one), {"web2", "p:m:f:n", 3, 0});
  file->add(packet(other), {"web1", "p:m:f:n", 3, 0});
  ASSERT_TRUE(file->flush());

  std::vector<std::string> interfaces;
  std::vector<std::uint32_t> of_packets;
  for (const ReadBlock& block : blocks_of(contents(path("a")))) {
    if (block.type == kPacketBlock) of_packets.push_back(word(block.body, 0));
    if (block.type != kInterfaceBlock) continue;
    EXPECT_THAT(block.options(8, 9), ElementsAre("\x09"));
    interfaces.push_back(block.options(8, 3).at(0) + ' ' + block.options(8, 2).at(0) + ' ' +
                         std::to_string(word(block.body, 0)));
  }
  EXPECT_THAT(interfaces,
              ElementsAre("web1 eth0 1", "web1 eth0 101", "web2 eth0 1", "web1 lo\xef\xbf\xbd 1"));
  EXPECT_THAT(of_packets, ElementsAre(0, 0, 1, 2, 3));
}

TEST_F(PacketOutput, HaveTimeLengthsBytesAndComments) {
  auto file = CaptureFile::append_to(path("a"));
  ASSERT_TRUE(file);
  const Field from = field("12345");
  file->add(packet(from), {"", "sdt:vmlinux:f:kfree_skb", 3, 0x1'0000'0002});
  ASSERT_TRUE(file->flush());

  const auto blocks = blocks_of(contents(path("a")));
  ASSERT_THAT(blocks, SizeIs(3));
  EXPECT_THAT(blocks[1].options(8, 3), IsEmpty()) << "there is one machine, without a name";
  const std::string& body = blocks[2].body;
  EXPECT_EQ(word(body, 4), 1u);  // of the time, in ns
  EXPECT_EQ(word(body, 8), 2u);
  EXPECT_EQ(word(body, 12), 5u);
  EXPECT_EQ(word(body, 16), 1500u);
  EXPECT_EQ(body.substr(20, 8), std::string("12345\0\0\0", 8));
  EXPECT_THAT(blocks[2].options(28, 1),
              ElementsAre("probe sdt:vmlinux:f:kfree_skb", "process curl, pid 42, CPU 3"));
}

TEST_F(PacketOutput, BeginAnotherSectionWhenAGuestMakesUpDevices) {
  auto file = CaptureFile::append_to(path("a"));
  ASSERT_TRUE(file);
  for (unsigned i = 0; i < 300; ++i) {
    const Field from = field("x", std::to_string(i));
    file->add(packet(from), {"", "p:m:f:n", 0, 0});
  }
  ASSERT_TRUE(file->flush());

  unsigned sections = 0, interfaces = 0;
  for (const ReadBlock& block : blocks_of(contents(path("a")))) {
    if (block.type == kSection) ++sections, interfaces = 0;
    if (block.type == kInterfaceBlock) ++interfaces;
    if (block.type != kPacketBlock) continue;
    EXPECT_EQ(word(block.body, 0), interfaces - 1);
  }
  EXPECT_EQ(sections, 2u);
}

TEST_F(PacketOutput, AreAppendedToButNothingElseIs) {
  { ASSERT_TRUE(CaptureFile::append_to(path("a"))); }
  ASSERT_TRUE(CaptureFile::append_to(path("a")));
  EXPECT_THAT(types_of(path("a")), ElementsAre(kSection, kSection));
  std::ofstream(path("text")) << "some text";
  EXPECT_THAT(CaptureFile::append_to(path("text")).error().message,
              HasSubstr("has something in it that is no capture"));
  EXPECT_EQ(contents(path("text")), "some text");
  EXPECT_EQ(CaptureFile::append_to(path("no/folder")).error().code, ErrorCode::Io);
}

TEST_F(PacketOutput, ThatSomebodyElseWritesToGetNothingMore) {
  auto file = CaptureFile::append_to(path("a"));
  ASSERT_TRUE(file);
  std::ofstream(path("a"), std::ios::app) << "text";
  const Field from = field("x");
  file->add(packet(from), {"", "p:m:f:n", 0, 0});

  EXPECT_THAT(file->flush().error().message, HasSubstr("text was written to it, too"));
  file->add(packet(from), {"", "p:m:f:n", 0, 0});
  EXPECT_TRUE(file->flush()) << "it is told once";
  EXPECT_TRUE(contents(path("a")).ends_with("text"));
}

TEST_F(PacketOutput, AreNotMadeOfRecordsThatCannotBe) {
  Field from = field("x");
  from.header.captured = kBytes + 1;
  EXPECT_FALSE(read_packet(std::as_bytes(std::span(&from, 1)), 1));
  EXPECT_FALSE(read_packet(std::as_bytes(std::span(&from, 1)).first(8), 1));
}

TEST_F(PacketOutput, WithoutOnePacketsArePrintedAsBytesAndALineSaysWhatToDo) {
  settings_.quiet = true;
  const auto ecb = pcap_clause();
  fire(ecb, field("\x01p"), std::uint64_t{1});
  fire(ecb, field("\x02q"), std::uint64_t{1});

  const std::string printed = text();
  EXPECT_THAT(printed, HasSubstr("         0: 01 70 "));
  EXPECT_THAT(printed, HasSubstr("         0: 02 71 "));
  EXPECT_THAT(output().take_messages(), ElementsAre(HasSubstr("-x pcapfile=FILE")));
}

TEST_F(PacketOutput, AreThatOfTheOptionUnlessFreopenOpensAnother) {
  settings_.quiet = true;
  settings_.packet_file = path("first");
  const auto first = pcap_clause(), other = pcap_clause({freopen(path("other"))}),
             back = pcap_clause({freopen("")});
  Action end = action(ActionKind::Printf);
  end.format = "end";
  const auto last = program_.add({"dtrace", "", "", "END"}, {freopen(""), end});
  for (const auto ecb : {first, other, other, back, other}) {
    fire(ecb, field("x"), std::uint64_t{1});
  }

  fire(last);
  EXPECT_EQ(text(), "end") << "packets are no text";
  EXPECT_THAT(output().take_messages(), IsEmpty());
  EXPECT_THAT(types_of(path("first")),
              ElementsAre(kSection, kInterfaceBlock, kPacketBlock, kPacketBlock));
  EXPECT_THAT(types_of(path("other")),
              ElementsAre(kSection, kInterfaceBlock, kPacketBlock, kPacketBlock, kPacketBlock));
}

TEST_F(PacketOutput, TimesAreTheFiringsOnTheClockOfTheFirst) {
  settings_.quiet = true;
  settings_.packet_file = path("a");
  const auto ecb = pcap_clause();
  for (const std::uint64_t timestamp : {1000, 1500}) {
    struct {
      Field field;
      std::uint64_t link;
    } data{field("x"), 1};
    // The host came later to the second one than to the first.
    data.field.header.walltimestamp = static_cast<std::int64_t>(timestamp * timestamp);
    dif::TraceData trace_data;
    trace_data.records.push_back({ecb, 0, timestamp, std::as_bytes(std::span(&data, 1))});
    output().consume(trace_data);
  }

  std::vector<std::uint32_t> times;
  for (const ReadBlock& block : blocks_of(contents(path("a")))) {
    if (block.type == kPacketBlock) times.push_back(word(block.body, 8));
  }
  EXPECT_THAT(times, ElementsAre(1000'000, 1000'500));
}

TEST_F(PacketOutput, BeginAgainWhenFtruncateEmptiesThem) {
  settings_.quiet = true;
  const auto fill = pcap_clause({freopen(path("a"))});
  const auto empty = pcap_clause({action(ActionKind::Ftruncate)});
  fire(fill, field("x"), std::uint64_t{1});
  fire(fill, field("x"), std::uint64_t{1});
  fire(empty, field("x"), std::uint64_t{1});

  EXPECT_THAT(output().take_messages(), IsEmpty());
  EXPECT_THAT(types_of(path("a")), ElementsAre(kSection, kInterfaceBlock, kPacketBlock));
}

TEST_F(PacketOutput, ThatCannotBeOpenedAreToldOnce) {
  settings_.quiet = true;
  std::ofstream(path("text")) << "some text";
  const auto ecb = pcap_clause({freopen(path("text"))});
  fire(ecb, field("x"), std::uint64_t{1});
  fire(ecb, field("x"), std::uint64_t{1});

  EXPECT_THAT(output().take_messages(), ElementsAre(HasSubstr("is no capture")));
  settings_.packet_file = path("text");
  const ProgramView& view = program_;
  EXPECT_THAT(Output::create(view, settings_, sink_).error().message, HasSubstr("is no capture"));
}

TEST_F(PacketOutput, StructuredOutputHasThePacketToo) {
  settings_.format = OutputFormat::JsonLines;
  settings_.packet_file = path("a");
  const auto ecb = pcap_clause();
  fire(ecb, field("\x01p"), std::uint64_t{1});

  const auto record = nlohmann::json::parse(text());
  EXPECT_EQ(record["output"][0], (nlohmann::json{{"packet", "0170"},
                                                 {"length", 1500},
                                                 {"link-type", 1},
                                                 {"walltimestamp", 0x1'0000'0002},
                                                 {"process", "curl"},
                                                 {"pid", 42},
                                                 {"device", "eth0"}}));
  EXPECT_THAT(types_of(path("a")), ElementsAre(kSection, kInterfaceBlock, kPacketBlock));
}

}  // namespace
}  // namespace ringside::cli
