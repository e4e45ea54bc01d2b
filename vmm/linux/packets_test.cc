#include "vmm/linux/packets.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "vmm/linux/processes/user_fakes_for_tests.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kSkbRam = 0xffff'8880'0000'0000, kSkbPageArray = 0xffff'ea00'0000'0000;
constexpr std::uint64_t kSkbPageSize = 4096, kSkbStructPage = 64, kSkbMostFrags = 32;
// Where the members lie in this kernel.
constexpr std::uint64_t kSkbNext = 0, kSkbDevice = 8, kSkbLength = 16, kSkbDataLength = 20,
                        kSkbLink = 24, kSkbNetwork = 26, kSkbEnd = 28, kSkbHead = 32, kSkbData = 40;
constexpr std::uint64_t kSkbCount = 2, kSkbMore = 8, kSkbFrags = 16, kSkbFragBytes = 16;
constexpr std::uint64_t kSkbName = 8;
constexpr std::uint32_t kSkbRoom = 256;  // of the linear part; skb_shared_info follows

/// The parts of an element of skb_shared_info.frags, as a kernel names them.
struct FragNames {
  const char *page, *at, *length;
};

class PacketTypes {
 public:
  explicit PacketTypes(const FragNames& names = {"bv_page", "bv_offset", "bv_len"},
                       bool has_data_length = true) {
    const TypeId word = types.add({.kind = TypeKind::Integer, .name = "unsigned long", .size = 8});
    const TypeId half = types.add({.kind = TypeKind::Integer, .name = "unsigned int", .size = 4});
    const TypeId quarter = types.add({.kind = TypeKind::Integer, .name = "__u16", .size = 2});
    const TypeId byte = types.add({.kind = TypeKind::Integer, .name = "__u8", .size = 1});
    const Member buffer[] = {{"next", word, kSkbNext * 8, 0},
                             {"dev", word, kSkbDevice * 8, 0},
                             {"len", half, kSkbLength * 8, 0},
                             {has_data_length ? "data_len" : "", half, kSkbDataLength * 8, 0},
                             {"mac_header", quarter, kSkbLink * 8, 0},
                             {"network_header", quarter, kSkbNetwork * 8, 0},
                             {"end", half, kSkbEnd * 8, 0},
                             {"head", word, kSkbHead * 8, 0},
                             {"data", word, kSkbData * 8, 0}};
    types.index(types.add_struct(TypeKind::Struct, "sk_buff", 64, buffer));
    const Member frag[] = {
        {names.page, word, 0, 0}, {names.length, half, 64, 0}, {names.at, half, 96, 0}};
    const TypeId piece = types.add_struct(TypeKind::Struct, "bio_vec", kSkbFragBytes, frag);
    const Member shared[] = {{"nr_frags", byte, kSkbCount * 8, 0},
                             {"frag_list", word, kSkbMore * 8, 0},
                             {"frags", types.array_of(piece, kSkbMostFrags), kSkbFrags * 8, 0}};
    types.index(types.add_struct(TypeKind::Struct, "skb_shared_info",
                                 kSkbFrags + kSkbMostFrags * kSkbFragBytes, shared));
    const Member device[] = {{"name", types.array_of(byte, 16), kSkbName * 8, 0}};
    types.index(types.add_struct(TypeKind::Struct, "net_device", 64, device));
    types.index(types.add_struct(TypeKind::Struct, "page", kSkbStructPage, {}));
  }

  TypeGraph types;
};

class LinuxPacketBytes : public ::testing::Test {
 protected:
  std::uint64_t room(std::uint64_t size) { return kSkbRam + (used_ += size) - size; }
  void put_bytes(std::uint64_t at, std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) memory_.put(at + i, text[i]);
  }
  /// A buffer whose linear part has this text at `begin`; the lengths count nothing else.
  std::uint64_t buffer(std::string_view text, std::uint16_t begin = 64) {
    const std::uint64_t skb = room(64), head = room(1024);
    memory_.put(skb + kSkbLength, static_cast<std::uint32_t>(text.size()));
    memory_.put(skb + kSkbDataLength, std::uint32_t{0});
    memory_.put(skb + kSkbLink, std::uint16_t{0xffff});
    memory_.put(skb + kSkbNetwork, std::uint16_t{0});
    memory_.put(skb + kSkbEnd, kSkbRoom);
    memory_.put(skb + kSkbHead, head);
    memory_.put(skb + kSkbData, head + begin);
    put_bytes(head + begin, text);
    return skb;
  }
  std::uint64_t head_of(std::uint64_t skb) {
    return load<std::uint64_t>(memory_, GuestVirt(skb + kSkbHead)).value();
  }
  std::uint64_t shared(std::uint64_t skb) { return head_of(skb) + kSkbRoom; }
  template <class T>
  void add_to(std::uint64_t at, T value) {
    memory_.put(at, static_cast<T>(load<T>(memory_, GuestVirt(at)).value_or(0) + value));
  }
  void lengthen(std::uint64_t skb, std::size_t bytes) {
    add_to(skb + kSkbLength, static_cast<std::uint32_t>(bytes));
    add_to(skb + kSkbDataLength, static_cast<std::uint32_t>(bytes));
  }
  std::uint64_t struct_page(std::uint64_t at) {
    return kSkbPageArray + (at - kSkbRam) / kSkbPageSize * kSkbStructPage;
  }
  /// One more piece, which begins `from` bytes into a page and has this text.
  std::uint64_t add_page(std::uint64_t skb, std::string_view text, std::uint32_t from) {
    pages_ += 4 * kSkbPageSize;
    const std::uint64_t page = kSkbRam + pages_;
    put_bytes(page + from, text);
    const auto count = load<std::uint8_t>(memory_, GuestVirt(shared(skb) + kSkbCount)).value();
    const std::uint64_t piece = shared(skb) + kSkbFrags + count * kSkbFragBytes;
    memory_.put(piece, struct_page(page));
    memory_.put(piece + 8, static_cast<std::uint32_t>(text.size()));
    memory_.put(piece + 12, from);
    add_to(shared(skb) + kSkbCount, std::uint8_t{1});
    lengthen(skb, text.size());
    return piece;
  }
  Result<CopiedPacket, Fault> copy(std::uint64_t skb, PacketPart part, std::string& bytes) {
    return LinuxPackets(kernel_.types, symbols_)
        .copy(memory_, GuestVirt(skb), part, std::as_writable_bytes(std::span(bytes)));
  }
  /// The packet's bytes.
  std::string bytes_of(std::uint64_t skb, PacketPart part = PacketPart::Data,
                       std::size_t most = 8192) {
    std::string bytes(most, '?');
    const auto packet = copy(skb, part, bytes);
    return packet ? bytes.substr(0, packet->captured) : "(fault)";
  }
  Fault fault_of(std::uint64_t skb, PacketPart part = PacketPart::Data) {
    std::string bytes(8192, '?');
    const auto packet = copy(skb, part, bytes);
    return packet ? Fault{} : packet.error();
  }

  PacketTypes kernel_;
  SymbolTable symbols_;
  fakes::PagedGuest memory_;
  std::uint64_t used_ = 0, pages_ = 1 << 20;
};

TEST_F(LinuxPacketBytes, AreThoseOfTheLinearPartThePagesAndTheFurtherBuffers) {
  const std::uint64_t skb = buffer("linear,");
  add_page(skb, "first page,", 100);
  add_page(skb, std::string(2 * kSkbPageSize, 'x') + ",", 4090);
  const std::uint64_t second = buffer("second buffer,"), third = buffer("third,");
  add_page(third, "its page.", 0);
  memory_.put(shared(skb) + kSkbMore, second);
  memory_.put(second + kSkbNext, third);
  memory_.put(third + kSkbNext, std::uint64_t{0});
  const std::string wanted =
      "linear,first page," + std::string(2 * kSkbPageSize, 'x') + ",second buffer,third,its page.";
  lengthen(skb, wanted.size() - wanted.find("second"));

  std::string bytes(wanted.size() + 10, '?');
  const auto packet = copy(skb, PacketPart::Data, bytes);

  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->length, wanted.size());
  EXPECT_EQ(packet->captured, wanted.size());
  EXPECT_EQ(bytes, wanted + "??????????");
}

TEST_F(LinuxPacketBytes, EndWhereThereIsNoRoomButTheLengthIsThePackets) {
  const std::uint64_t skb = buffer("linear,");
  add_page(skb, "page,", 0);
  add_page(skb, "another", 0);
  for (const std::size_t most : {0u, 3u, 7u, 9u, 12u, 19u}) {
    std::string bytes(most, '?');
    const auto packet = copy(skb, PacketPart::Data, bytes);
    ASSERT_TRUE(packet);
    EXPECT_EQ(packet->captured, most);
    EXPECT_EQ(packet->length, 19u);
    EXPECT_EQ(bytes, std::string("linear,page,another").substr(0, most));
  }
}

TEST_F(LinuxPacketBytes, BeginWhereTheHeaderIs) {
  const std::uint64_t skb = buffer("ETHIPUDPrest", 60);
  memory_.put(skb + kSkbLink, std::uint16_t{60});
  memory_.put(skb + kSkbNetwork, std::uint16_t{63});
  memory_.put(skb + kSkbData,
              head_of(skb) + 65);  // the kernel has passed both, and has come to UDP
  memory_.put(skb + kSkbLength, std::uint32_t{7});
  std::string bytes(20, '?');

  const auto link = copy(skb, PacketPart::Link, bytes);
  ASSERT_TRUE(link);
  EXPECT_TRUE(link->has_link);
  EXPECT_EQ(bytes.substr(0, link->captured), "ETHIPUDPrest");
  EXPECT_EQ(link->length, 12u);
  EXPECT_EQ(bytes_of(skb, PacketPart::Network), "IPUDPrest");
  EXPECT_EQ(bytes_of(skb, PacketPart::Data), "UDPrest");

  memory_.put(skb + kSkbData, head_of(skb) + 60);  // it is about to be sent
  memory_.put(skb + kSkbLength, std::uint32_t{12});
  EXPECT_EQ(bytes_of(skb, PacketPart::Network), "IPUDPrest");
  EXPECT_EQ(bytes_of(skb, PacketPart::Link), "ETHIPUDPrest");
}

TEST_F(LinuxPacketBytes, BeginAtTheNetworkHeaderWhereThereIsNoLinkHeader) {
  const std::uint64_t skb = buffer("IPUDPrest", 60);
  std::string bytes(9, '?');
  for (const std::uint16_t link : {0xffff, 60}) {  // not known yet; of a tunnel
    memory_.put(skb + kSkbLink, link);
    memory_.put(skb + kSkbNetwork, std::uint16_t{60});
    const auto packet = copy(skb, PacketPart::Link, bytes);
    ASSERT_TRUE(packet);
    EXPECT_FALSE(packet->has_link);
    EXPECT_EQ(bytes, "IPUDPrest");
  }
  memory_.put(skb + kSkbLink, std::uint16_t{0xffff});
  memory_.put(skb + kSkbNetwork, std::uint16_t{0});
  EXPECT_EQ(bytes_of(skb, PacketPart::Network), "IPUDPrest") << "nobody has looked at it yet";
}

TEST_F(LinuxPacketBytes, HaveTheNameOfTheirDevice) {
  const std::uint64_t skb = buffer("x"), device = room(64);
  put_bytes(device + kSkbName, std::string("eth0\0\0\0\0\0\0\0\0\0\0\0\0", 16));
  std::string bytes(1, '?');

  EXPECT_EQ(copy(skb, PacketPart::Data, bytes)->device, (std::array<char, 16>{}));
  memory_.put(skb + kSkbDevice, device);
  EXPECT_EQ(copy(skb, PacketPart::Data, bytes)->device, (std::array<char, 16>{"eth0"}));
  memory_.put(skb + kSkbDevice, std::uint64_t{0x1234});  // a socket's own number
  EXPECT_EQ(copy(skb, PacketPart::Data, bytes)->device, (std::array<char, 16>{}));
}

TEST_F(LinuxPacketBytes, AreFoundByTheNamesOfEachKernel) {
  for (const FragNames& names :
       {FragNames{"netmem", "offset", "len"}, FragNames{"page", "page_offset", "size"},
        FragNames{"bv_page", "bv_offset", "bv_len"}}) {
    const PacketTypes kernel(names);
    EXPECT_TRUE(PacketLayout::from(kernel.types, symbols_)) << names.page;
  }
  EXPECT_FALSE(PacketLayout::from(PacketTypes({"page", "at", "size"}).types, symbols_));
  EXPECT_FALSE(
      PacketLayout::from(PacketTypes({"page", "page_offset", "size"}, false).types, symbols_));
  const PacketTypes none({"page", "at", "size"});
  EXPECT_EQ(LinuxPackets(none.types, symbols_)
                .copy(memory_, GuestVirt(buffer("x")), PacketPart::Data, {})
                .error()
                .kind,
            FaultKind::IllegalOperation);
}

TEST_F(LinuxPacketBytes, AreFoundByThePlacesOfThisBoot) {
  constexpr std::uint64_t kArray = 0xffff'f000'0000'0000, kVariables = 0xffff'ffff'8240'0000;
  SymbolTable symbols;
  symbols.add_module(
      {.name = "vmlinux", .text_base = GuestVirt(kVariables - 4096)},
      {{.address = GuestVirt(kVariables), .name = "vmemmap_base", .type = 'D'},
       {.address = GuestVirt(kVariables + 8), .name = "page_offset_base", .type = 'D'}});
  symbols.seal();
  memory_.put(kVariables, kArray);
  memory_.put(kVariables + 8, kSkbRam + 4 * kSkbPageSize);
  const std::uint64_t skb = buffer("linear,"), piece = add_page(skb, "page", 0);
  const auto page = load<std::uint64_t>(memory_, GuestVirt(piece)).value();
  memory_.put(piece, kArray + page - kSkbPageArray - 4 * kSkbStructPage);
  std::string bytes(11, '?');

  const auto packet = LinuxPackets(kernel_.types, symbols)
                          .copy(memory_, GuestVirt(skb), PacketPart::Data,
                                std::as_writable_bytes(std::span(bytes)));

  ASSERT_TRUE(packet);
  EXPECT_EQ(bytes, "linear,page");
}

TEST_F(LinuxPacketBytes, InMemoryOfADeviceAreLeftOut) {
  const std::uint64_t skb = buffer("linear,");
  add_page(skb, "page,", 0);
  const std::uint64_t piece = add_page(skb, "elsewhere", 0);
  add_page(skb, "behind", 0);
  add_to(piece, std::uint64_t{1});

  EXPECT_EQ(bytes_of(skb), "linear,page,");
}

TEST_F(LinuxPacketBytes, OfAForgedBufferAreAFault) {
  const std::uint64_t skb = buffer("linear");
  const auto expect_fault = [&](PacketPart part = PacketPart::Data) {
    EXPECT_EQ(fault_of(skb, part).kind, FaultKind::BadAddress);
  };
  EXPECT_EQ(fault_of(0).kind, FaultKind::BadAddress);
  memory_.put(skb + kSkbLength, kSkbRoom - 64 + 1);  // beyond the buffer's end
  expect_fault();
  memory_.put(skb + kSkbLength, std::uint32_t{UINT32_MAX});
  expect_fault();
  memory_.put(skb + kSkbLength, std::uint32_t{6});
  memory_.put(skb + kSkbDataLength, std::uint32_t{7});
  expect_fault();
  memory_.put(skb + kSkbDataLength, std::uint32_t{0});
  for (const std::uint16_t header : {71, 0xfffe}) {  // one beyond the linear part's end
    memory_.put(skb + kSkbNetwork, header);
    expect_fault(PacketPart::Network);
    memory_.put(skb + kSkbLink, header);
    expect_fault(PacketPart::Link);
  }
  const std::uint64_t head = head_of(skb);
  for (const std::uint64_t bad :
       {head - 1, head + kSkbRoom + 1, std::uint64_t{0}, ~std::uint64_t{0}}) {
    memory_.put(skb + kSkbData, bad);
    expect_fault();
  }
  memory_.put(skb + kSkbData, head + 64);
  memory_.put(skb + kSkbHead, ~std::uint64_t{0} - 10);  // its end wraps
  expect_fault();
}

TEST_F(LinuxPacketBytes, OfForgedPagesAreAFault) {
  const std::uint64_t skb = buffer("linear"), piece = add_page(skb, "page", 0);
  const auto page = load<std::uint64_t>(memory_, GuestVirt(piece)).value();
  for (const std::uint64_t bad :
       {std::uint64_t{0}, page + 8, kSkbPageArray - kSkbStructPage, ~std::uint64_t{63}}) {
    memory_.put(piece, bad);
    EXPECT_EQ(fault_of(skb).kind, FaultKind::BadAddress) << bad;
  }
  memory_.put(piece, page);
  memory_.put(piece + 12, std::uint32_t{0x4000'0000});  // far behind the page
  EXPECT_EQ(fault_of(skb).kind, FaultKind::BadAddress);
  memory_.put(piece + 12, std::uint32_t{0});
  memory_.put(shared(skb) + kSkbCount, std::uint8_t{kSkbMostFrags + 1});
  EXPECT_EQ(fault_of(skb).kind, FaultKind::BadAddress);
}

TEST_F(LinuxPacketBytes, OfALongPieceAreReadNoFurtherThanThereIsRoom) {
  const std::uint64_t skb = buffer("linear,"), piece = add_page(skb, "page", 0);
  memory_.put(piece + 8, std::uint32_t{UINT32_MAX});

  EXPECT_EQ(bytes_of(skb, PacketPart::Data, 11), "linear,page");
}

TEST_F(LinuxPacketBytes, OfEmptyPagesWithoutNumberEnd) {
  const std::uint64_t skb = buffer(""), next = buffer("");
  for (unsigned i = 0; i < kSkbMostFrags; ++i) add_page(next, "", 0);
  memory_.put(next + kSkbDataLength, std::uint32_t{1});
  memory_.put(next + kSkbLength, std::uint32_t{1});
  memory_.put(shared(skb) + kSkbMore, next);
  memory_.put(next + kSkbNext, next);
  lengthen(skb, 100);
  memory_.reads = 0;

  EXPECT_EQ(bytes_of(skb), "");
  EXPECT_LT(memory_.reads, 4000u);
}

TEST_F(LinuxPacketBytes, OfBuffersThatFollowThemselvesEnd) {
  const std::uint64_t skb = buffer(""), empty = buffer("");
  memory_.put(shared(skb) + kSkbMore, empty);
  memory_.put(empty + kSkbNext, empty);
  lengthen(skb, 100);
  memory_.reads = 0;

  EXPECT_EQ(bytes_of(skb), "");
  EXPECT_LT(memory_.reads, 1000u);
  memory_.put(empty + kSkbNext, std::uint64_t{0x10});
  EXPECT_EQ(fault_of(skb).kind, FaultKind::BadAddress);
}

}  // namespace
}  // namespace ringside::guest_linux
