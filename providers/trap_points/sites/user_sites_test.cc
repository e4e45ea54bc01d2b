#include "providers/trap_points/sites/user_sites.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "vmm/linux/processes/elf_file_for_tests.h"

namespace ringside::providers {
namespace {

using guest_linux::FileFunction, guest_linux::FileFunctions, guest_linux::FilePiece;
using guest_linux::fakes::ElfFile;

constexpr std::uint64_t kText = 0x1000;  // where a file's text begins

/// A file with text and the symbols of its functions.
class UserSites : public testing::Test {
 protected:
  /// Puts code at this distance from the begin of the text.
  void put(std::uint64_t at, std::initializer_list<unsigned char> code) {
    for (const unsigned char byte : code) file_.byte(kText + at++) = std::byte{byte};
  }
  void function(std::string name, std::uint64_t at, std::uint64_t size) {
    file_.add_function(std::move(name), kText + at, size);
  }
  ReadFile reader() {
    return
        [this](std::uint64_t offset, std::span<std::byte> out) { return file_.read(offset, out); };
  }
  /// A piece of code that the unwind table has.
  void piece(std::uint64_t at, std::uint64_t size, bool may_be_called) {
    pieces_.push_back({kText + at, size, may_be_called});
  }
  FindPiece pieces() const {
    return [this](std::uint64_t offset) -> std::optional<FilePiece> {
      for (const FilePiece& one : pieces_) {
        if (offset - one.offset < one.size) return one;
      }
      return std::nullopt;
    };
  }
  /// Of the function at the begin of the text: distances from there, with a minus where the value
  /// is not known.
  std::vector<std::int64_t> ways_out(std::uint64_t size) {
    functions_ = file_.functions();
    const auto found = user_returns(reader(), functions_, pieces(), {"own", kText, size});
    EXPECT_TRUE(found) << found.error().message;
    std::vector<std::int64_t> result;
    for (const UserReturn& one : found.value_or(std::vector<UserReturn>())) {
      const auto at = static_cast<std::int64_t>(one.offset - kText);
      result.push_back(one.has_value ? at : -at);
    }
    return result;
  }
  Result<std::vector<PageRoom>> room() {
    auto text = TRY(decoded());
    return std::move(text.rooms);
  }
  Result<PageText> decoded() {
    functions_ = file_.functions();
    return decode_page(reader(), functions_, kText / 4096);
  }

  ElfFile file_{kText, 0x2000};
  FileFunctions functions_;
  std::vector<FilePiece> pieces_;
};

TEST_F(UserSites, RoomLiesBetweenFunctions) {
  function("first", 0, 2), function("second", 16, 3), function("third", 48, 1);
  put(0, {0x55, 0xc3});                                         // push %rbp; ret
  put(2, {0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0});  // a nop of 11 bytes
  put(13, {0x0f, 0x1f, 0x00});                                  // and of 3
  put(16, {0x31, 0xc0, 0xc3});                                  // xor; ret
  std::fill_n(&file_.byte(kText + 19), 29, std::byte{0xcc});
  put(48, {0xc3});
  const auto found = room();
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].begin, 2);
  EXPECT_EQ((*found)[0].end, 16);
  EXPECT_EQ((*found)[1].begin, 19);
  EXPECT_EQ((*found)[1].end, 48) << "no function begins with an int3";
}

TEST_F(UserSites, RoomEndsWhereAFunctionMayBegin) {
  function("first", 0, 1), function("second", 64, 1);
  put(0, {0xc3});
  std::fill_n(&file_.byte(kText + 1), 63, std::byte{0x90});
  put(64, {0xc3});
  const auto found = room();
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ((*found)[0].begin, 1);
  EXPECT_EQ((*found)[0].end, 16);
}

TEST_F(UserSites, RoomOfInt3sEndsAtASymbol) {
  function("first", 0, 1), function("second", 32, 1), function("third", 48, 1);
  put(0, {0xc3});
  std::fill_n(&file_.byte(kText + 1), 47, std::byte{0xcc});
  put(48, {0xc3});
  const auto found = room();
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_FALSE(found->empty());
  EXPECT_EQ((*found)[0].begin, 1);
  EXPECT_EQ((*found)[0].end, 32);
}

TEST_F(UserSites, APageThatNoFunctionBeginsBeforeHasRoomBehindItsFirstOne) {
  function("first", 32, 1), function("second", 48, 1);
  std::fill_n(&file_.byte(kText), 32, std::byte{0xcc});
  put(32, {0xc3});
  std::fill_n(&file_.byte(kText + 33), 15, std::byte{0xcc});
  put(48, {0xc3});
  const auto found = room();
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_FALSE(found->empty());
  EXPECT_EQ((*found)[0].begin, 33);
  EXPECT_EQ((*found)[0].end, 48);
}

TEST_F(UserSites, NopsThatAreRunIntoAreNoRoom) {
  function("loop", 0, 32), function("next", 32, 1);
  put(0, {0x31, 0xc0, 0x90, 0x90});  // xor, and nops up to the loop's head
  std::fill_n(&file_.byte(kText + 4), 12, std::byte{0x90});
  put(16, {0xff, 0xc0, 0xeb, 0xfc});  // inc; jmp back
  std::fill_n(&file_.byte(kText + 20), 12, std::byte{0x90});
  put(32, {0xc3});
  const auto found = room();
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ((*found)[0].begin, 20);
  EXPECT_EQ((*found)[0].end, 32);
}

TEST_F(UserSites, AReturnInTheMiddleOfAnInstructionIsNone) {
  function("adds", 0, 16), function("next", 16, 1);
  put(0, {0x01, 0xc3});  // add %eax, %ebx, whose second byte is ret's
  std::fill_n(&file_.byte(kText + 2), 14, std::byte{0x90});
  put(16, {0xc3});
  const auto found = room();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->empty());
}

TEST_F(UserSites, NothingIsBelievedWhereDecodingMissesASymbol) {
  function("first", 0, 3), function("inside", 2, 1), function("next", 16, 1);
  put(0, {0x48, 0x89, 0xe5, 0xc3});  // an instruction of 3 bytes
  std::fill_n(&file_.byte(kText + 4), 12, std::byte{0x90});
  put(16, {0xc3});
  EXPECT_FALSE(room());
}

TEST_F(UserSites, ZerosBetweenTwoSectionsAreNeitherCodeNorRoom) {
  function("last", 0, 3), function("_fini", 4, 13);
  put(0, {0x31, 0xc0, 0xc3, 0x00});  // xor; ret; the gap
  put(4, {0x48, 0x83, 0xec, 0x08, 0x48, 0x83, 0xc4, 0x08, 0xc3});
  const auto found = room();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->empty());
}

TEST_F(UserSites, NothingIsKnownOfAPageThatIsNotInMemory) {
  function("first", 0, 0x1800), function("next", 0x1800, 1);
  file_.forget_page(kText + 0x1000);
  const auto found = room();
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("page 0x2000 of the file is not in"), std::string::npos)
      << found.error().message;
}

TEST_F(UserSites, ASlotLeadsBackBehindTheInstruction) {
  put(0, {0x55, 0x48, 0x89, 0xe5});
  const auto site = examine_user_site(reader(), kText);
  ASSERT_TRUE(site) << site.error().message;
  EXPECT_EQ(site->instruction.size(), 1u);
  EXPECT_EQ(site->slot_bytes, 6u);
  const auto slot = displace_user_site(*site, kText + 0x100);
  ASSERT_TRUE(slot);
  // push %rbp; jmp: from 0x106 to 1.
  const std::array expected{std::byte{0x55}, std::byte{0xe9}, std::byte{0xfb},
                            std::byte{0xfe}, std::byte{0xff}, std::byte{0xff}};
  EXPECT_TRUE(std::ranges::equal(*slot, expected));
}

TEST_F(UserSites, ACallLeavesTheOriginalReturnAddress) {
  put(0, {0xe8, 0, 1, 0, 0});
  const auto anywhere = examine_user_site(reader(), kText);
  ASSERT_TRUE(anywhere) << anywhere.error().message;
  EXPECT_TRUE(anywhere->calls);
  EXPECT_EQ(anywhere->slot_bytes, 17u);
  const auto slot = displace_user_site(*anywhere, kText + 0x100);
  ASSERT_TRUE(slot);
  // push %rax; lea: from 0x108 to 5; xchg %rax, (%rsp); jmp: from 0x111 to 0x105.
  const std::array expected{std::byte{0x50}, std::byte{0x48}, std::byte{0x8d}, std::byte{0x05},
                            std::byte{0xfd}, std::byte{0xfe}, std::byte{0xff}, std::byte{0xff},
                            std::byte{0x48}, std::byte{0x87}, std::byte{0x04}, std::byte{0x24},
                            std::byte{0xe9}, std::byte{0xf4}, std::byte{0xff}, std::byte{0xff},
                            std::byte{0xff}};
  EXPECT_TRUE(std::ranges::equal(*slot, expected));
}

TEST_F(UserSites, ACallOfAProgramAtAFixedAddressTakesFewerBytes) {
  put(0, {0xe8, 0, 1, 0, 0});
  const auto site = examine_user_site(reader(), kText, GuestVirt(0x401000));
  ASSERT_TRUE(site) << site.error().message;
  EXPECT_EQ(site->slot_bytes, 10u);
  const auto slot = displace_user_site(*site, kText + 0x100);
  ASSERT_TRUE(slot);
  // push $0x401005; jmp: from 0x10a to 0x105.
  const std::array expected{std::byte{0x68}, std::byte{0x05}, std::byte{0x10}, std::byte{0x40},
                            std::byte{0x00}, std::byte{0xe9}, std::byte{0xfb}, std::byte{0xff},
                            std::byte{0xff}, std::byte{0xff}};
  EXPECT_TRUE(std::ranges::equal(*slot, expected));
}

TEST_F(UserSites, WhatCannotRunElsewhereIsRefused) {
  put(0, {0xff, 0x54, 0x24, 0x08});   // call *8(%rsp), which the displaced call would move
  put(16, {0xf3, 0x0f, 0x1e, 0xfa});  // endbr64
  put(32, {0x0f, 0x05});              // syscall
  put(48, {0xcc});                    // somebody else's breakpoint
  put(64, {0x06});                    // no instruction
  for (const std::uint64_t at : {0, 16, 32, 48, 64}) {
    EXPECT_FALSE(examine_user_site(reader(), kText + at)) << at;
  }
  file_.forget_page(kText);
  EXPECT_FALSE(examine_user_site(reader(), kText));
}

// Programs of Go.

TEST_F(UserSites, AFunctionOfGoIsEnteredBehindItsStackCheck) {
  put(0, {0x49, 0x3b, 0x66, 0x10, 0x76, 0x20, 0x48, 0x83, 0xec, 0x30});  // cmp; jbe; sub
  EXPECT_EQ(go_entry(reader(), {"small", kText, 32}), kText + 6);
  put(0x40, {0x4c, 0x8d, 0xa4, 0x24, 0x48, 0xfe, 0xff, 0xff, 0x4d, 0x3b, 0x66, 0x10, 0x0f,
             0x86, 0x00, 0x01, 0x00, 0x00, 0x48, 0x81, 0xec, 0x38, 0x02, 0x00, 0x00});
  EXPECT_EQ(go_entry(reader(), {"large", kText + 0x40, 64}), kText + 0x40 + 18);
  put(0x80, {0x49, 0x3b, 0x66, 0x10, 0x76, 0x20, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x30});
  EXPECT_EQ(go_entry(reader(), {"since 1.21", kText + 0x80, 32}), kText + 0x80 + 10);
  put(0xc0, {0x48, 0x01, 0xd8, 0xc3});  // add; ret
  EXPECT_EQ(go_entry(reader(), {"leaf", kText + 0xc0, 4}), kText + 0xc0);
}

TEST_F(UserSites, WithoutRoomTheStubMakesAFrameAndReturnsGoOnInsideOfAnInstruction) {
  // push %rbp; mov %rsp, %rbp; mov %rax, %rbx (48 89 c3); pop %rbp; ret
  put(0, {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xc3, 0x5d, 0xc3});
  function("framed", 0, 9), function("next", 9, 4);
  const auto text = decoded();
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_FALSE(text->inner[0] || text->inner[1] || text->inner[7] || text->inner[8]);
  EXPECT_TRUE(text->inner[2] && text->inner[3] && text->inner[6]);
  const auto inside = find_inner_return(reader(), kText / 4096, *text);
  EXPECT_EQ(inside, kText + 6);
  EXPECT_EQ(frame_entry(reader(), kText), kText + 1);
  EXPECT_FALSE(frame_entry(reader(), kText + 7));

  const auto frame = done_by_stub(*examine_user_site(reader(), kText + 1), std::nullopt);
  ASSERT_TRUE(frame);
  EXPECT_TRUE(frame->makes_frame);
  EXPECT_EQ(frame->goes_on, 3);
  const auto back = done_by_stub(*examine_user_site(reader(), kText + 8), inside);
  ASSERT_TRUE(back);
  EXPECT_FALSE(back->makes_frame);
  EXPECT_EQ(back->goes_on, -2);
  EXPECT_FALSE(done_by_stub(*examine_user_site(reader(), kText + 8), std::nullopt));
  EXPECT_FALSE(done_by_stub(*examine_user_site(reader(), kText), inside)) << "a push";
  const auto free = [this](std::uint64_t taken) {
    return find_free_return(reader(), functions_, kText / 4096,
                            [=](std::uint64_t at) { return at != taken; });
  };
  EXPECT_EQ(free(0), kText + 8) << "and not inside of an instruction";
  EXPECT_FALSE(free(kText + 8));
  EXPECT_FALSE(find_free_return(reader(), functions_, kText / 4096 + 1, [](auto) { return true; }));
}

TEST_F(UserSites, WithoutRoomTheStubGoesOnBehindANop) {
  put(0, {0x90, 0x0f, 0x1f, 0x44, 0x00, 0x00});  // nops of one and of five bytes
  for (const auto& [at, length] : {std::pair(0, 1), std::pair(1, 5)}) {
    const auto nop = done_by_stub(*examine_user_site(reader(), kText + at), std::nullopt);
    ASSERT_TRUE(nop);
    EXPECT_EQ(std::pair(nop->goes_on, nop->down), std::pair(std::optional(length), 0U));
    EXPECT_FALSE(nop->makes_frame);
  }
}

TEST_F(UserSites, OfGoTheStubDoesWhatTheInstructionDoes) {
  put(0, {0x48, 0x83, 0xec, 0x30});                     // sub $0x30, %rsp
  put(16, {0x48, 0x81, 0xec, 0x38, 0x02, 0x00, 0x00});  // sub $0x238, %rsp
  put(32, {0x48, 0x83, 0xc4, 0x80});                    // add $-128, %rsp
  const auto check = [this](std::uint64_t at, std::uint32_t down, std::int32_t length) {
    const auto site = examine_go_site(reader(), kText + at, std::nullopt);
    ASSERT_TRUE(site) << site.error().message;
    EXPECT_EQ(site->down, down);
    EXPECT_EQ(site->goes_on, length);
  };
  check(0, 0x30, 4);
  check(16, 0x238, 7);
  check(32, 0x80, 4);
}

TEST_F(UserSites, OfGoAReturnGoesOnAtAnotherOne) {
  function("main.main", 0, 32), function("runtime.asm", 64, 16), function("runtime.gc", 128, 32);
  put(31, {0xc3});
  put(64, {0x31, 0xc0, 0xc3});  // xor; ret
  put(128, {0x49, 0x3b, 0x66, 0x10, 0x76, 0x02, 0x31, 0xc0, 0xc3});
  functions_ = file_.functions();
  const auto spare = find_spare_return(reader(), functions_);
  ASSERT_TRUE(spare);
  EXPECT_EQ(*spare, kText + 136) << "no function without a stack check is of Go";
  const auto site = examine_go_site(reader(), kText + 31, spare);
  ASSERT_TRUE(site) << site.error().message;
  EXPECT_EQ(site->goes_on, 136 - 31);
  EXPECT_EQ(site->down, 0u);
  EXPECT_FALSE(examine_go_site(reader(), *spare, spare)) << "others go on there";
  EXPECT_FALSE(examine_go_site(reader(), kText + 31, std::nullopt));
  EXPECT_FALSE(examine_go_site(reader(), kText + 64, spare)) << "xor";
}

TEST_F(UserSites, AFunctionIsEnteredBehindItsLandingPad) {
  put(0, {0xf3, 0x0f, 0x1e, 0xfa, 0x55});
  EXPECT_EQ(user_entry(reader(), {"padded", kText, 8}), kText + 4);
  EXPECT_EQ(user_entry(reader(), {"plain", kText + 4, 4}), kText + 4);
}

TEST_F(UserSites, WaysOutAreReturnsAndJumpsToOtherFunctions) {
  // je to its cold part; ret; jmp within; jmp away; ret imm16
  put(0, {0x74, 0x20, 0xc3, 0xeb, 0x00, 0xe9, 0x00, 0x01, 0x00, 0x00, 0xc2, 0x08, 0x00});
  function("ends", 0, 13), function("other", 0x10a, 1);
  functions_ = file_.functions();
  const auto found = user_returns(reader(), functions_, pieces(), {"ends", kText, 13});
  ASSERT_FALSE(found) << "je leads where nothing is known";
  function("ends.cold", 0x22, 2);
  put(0x22, {0xeb, 0xde});  // jmp back
  functions_ = file_.functions();
  const auto with_part = user_returns(reader(), functions_, pieces(), {"ends", kText, 13});
  ASSERT_TRUE(with_part) << with_part.error().message;
  ASSERT_EQ(with_part->size(), 3u);
  EXPECT_EQ((*with_part)[0].offset, kText + 2);
  EXPECT_TRUE((*with_part)[0].has_value);
  EXPECT_EQ((*with_part)[1].offset, kText + 5);
  EXPECT_FALSE((*with_part)[1].has_value);
  EXPECT_EQ((*with_part)[1].condition, arch::kNoCondition);
  EXPECT_EQ((*with_part)[2].offset, kText + 10);
  EXPECT_FALSE(user_returns(reader(), functions_, pieces(), {"unsized", kText, 0}));
  EXPECT_FALSE(
      user_returns(reader(), functions_, pieces(), {"huge", kText, std::uint64_t{1} << 40}));
}

TEST_F(UserSites, AJumpToAnImportLeaves) {
  put(0, {0xe9, 0xfb, 0x00, 0x00, 0x00});            // jmp 0x100
  put(0x100, {0xff, 0x25, 0, 0, 0, 0, 0x66, 0x90});  // jmp *0(%rip)
  function("tail", 0, 5);
  functions_ = file_.functions();
  const auto found = user_returns(reader(), functions_, pieces(), {"tail", kText, 5});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 1u);
  EXPECT_FALSE((*found)[0].has_value);
}

// A stripped C library has functions and parts without a symbol.

TEST_F(UserSites, AJumpToAFunctionWithoutASymbolLeaves) {
  put(0, {0x75, 0x3e, 0xc3});  // jne 0x40; ret
  put(0x40, {0x31, 0xc0, 0xc3});
  function("own", 0, 3), piece(0x40, 3, true);
  EXPECT_EQ(ways_out(3), (std::vector<std::int64_t>{0, 2}));
}

TEST_F(UserSites, APieceThatIsEnteredWithAFrameIsAPart) {
  put(0, {0x75, 0x3e, 0xc3});           // jne 0x40; ret
  put(0x40, {0x5b, 0xc3, 0xeb, 0xfc});  // pop %rbx; ret; jmp to itself
  function("own", 0, 3), piece(0x40, 4, false);
  EXPECT_EQ(ways_out(3), (std::vector<std::int64_t>{2, 0x41}));
}

TEST_F(UserSites, APieceThatIsEnteredInItsMiddleIsAPart) {
  put(0, {0x75, 0x3e, 0x74, 0x3e, 0xc3});  // jne 0x40; je 0x42; ret
  put(0x40, {0x31, 0xc0, 0xc3});
  function("own", 0, 5), piece(0x40, 3, true);
  EXPECT_EQ(ways_out(5), (std::vector<std::int64_t>{4, 0x42}))
      << "the first jump stays inside, too";
}

TEST_F(UserSites, APieceThatJumpsBackIsAPart) {
  put(0, {0x75, 0x3e, 0xc3});     // jne 0x40; ret
  put(0x40, {0x90, 0xeb, 0xbf});  // nop; jmp 2
  function("own", 0, 3), piece(0x40, 3, true);
  EXPECT_EQ(ways_out(3), (std::vector<std::int64_t>{2}));
  put(0x40, {0x90, 0xeb, 0xbd});  // nop; jmp 0
  EXPECT_EQ(ways_out(3), (std::vector<std::int64_t>{0, 2})) << "it calls the function anew";
}

TEST_F(UserSites, PartsHavePartsOfTheirOwn) {
  put(0, {0xeb, 0x3e});              // jmp 0x40
  put(0x40, {0x75, 0x1e, 0xc3});     // jne 0x60; ret
  put(0x60, {0xe9, 0x1b, 0, 0, 0});  // jmp 0x80
  function("own", 0, 2), piece(0x40, 3, false), piece(0x60, 5, false), piece(0x80, 1, true);
  EXPECT_EQ(ways_out(2), (std::vector<std::int64_t>{0x42, -0x60}));
}

TEST_F(UserSites, TailCallsAreFollowedOnRequest) {
  put(0, {0x74, 0x3e, 0xeb, 0x1c});                  // je 0x40; jmp 0x20
  put(0x20, {0xc3});                                 // without a symbol
  put(0x40, {0x75, 0xbe, 0xe9, 0xb9, 0x00, 0, 0});   // jne 0; jmp 0x100
  put(0x100, {0xff, 0x25, 0, 0, 0, 0, 0x66, 0x90});  // an import
  function("own", 0, 4), function("other", 0x40, 7), piece(0x20, 1, true);
  functions_ = file_.functions();
  const auto found =
      user_returns(reader(), functions_, pieces(), {"own", kText, 4}, OnTailCall::Follow);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].offset, kText + 0x42);
  EXPECT_FALSE((*found)[0].has_value);
  EXPECT_EQ((*found)[1].offset, kText + 0x20);
  EXPECT_TRUE((*found)[1].has_value);
}

TEST_F(UserSites, APieceOfAnotherFunctionIsNoPart) {
  put(0, {0x75, 0x3f, 0xc3});  // jne 0x41; ret
  put(0x40, {0x90, 0xc3});
  function("own", 0, 3), function("other", 0x40, 2), piece(0x40, 2, true);
  functions_ = file_.functions();
  EXPECT_FALSE(user_returns(reader(), functions_, pieces(), {"own", kText, 3}))
      << "its return is the other one's, too";
}

}  // namespace
}  // namespace ringside::providers
