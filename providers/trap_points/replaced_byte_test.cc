#include "providers/trap_points/replaced_byte.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "disasm/decoder.h"

namespace ringside::providers {
namespace {

constexpr GuestVirt kAt{0xffffffff81234567}, kSlot{0xffffffff91800100};
using Bytes = std::vector<std::byte>;

Bytes bytes(std::initializer_list<unsigned> list) {
  Bytes made;
  for (const unsigned byte : list) made.push_back(static_cast<std::byte>(byte));
  return made;
}

/// The instruction at kAt while an int3 is in it, and something else after it.
Bytes armed(Bytes instruction) {
  instruction[0] = std::byte{0xcc};
  for (const unsigned behind : {0x48, 0x89, 0xe5, 0x41, 0x57, 0x90, 0x90}) {
    instruction.push_back(static_cast<std::byte>(behind));
  }
  return instruction;
}

Bytes slot_of(const Bytes& instruction, GuestVirt slot = kSlot) {
  auto code = disasm::relocate(instruction, kAt, slot);
  EXPECT_TRUE(code) << code.error().message;
  code->insert(code->end(), 3, std::byte{0xe8});  // the next slot
  return *code;
}

class Replaced : public testing::TestWithParam<Bytes> {};

TEST_P(Replaced, IsFoundFromTheSlot) {
  const Bytes& instruction = GetParam();

  const auto found =
      find_replaced(armed(instruction), kAt, instruction[0], slot_of(instruction), kSlot);

  ASSERT_TRUE(found);
  EXPECT_EQ(*found, instruction[0]);
}

TEST_P(Replaced, IsFoundFromASlotThatReturns) {
  const Bytes& instruction = GetParam();
  const auto code = disasm::relocate_with_return(instruction, kAt, kSlot);
  if (!code) return;

  const auto found = find_replaced(armed(instruction), kAt, instruction[0], code->bytes, kSlot);

  ASSERT_TRUE(found);
  EXPECT_EQ(*found, instruction[0]);
  EXPECT_FALSE(find_replaced(armed(instruction), kAt, instruction[0],
                             std::span(code->bytes).first(code->bytes.size() - 1), kSlot));
}

TEST_P(Replaced, IsFoundBehindAFarewell) {
  const Bytes& instruction = GetParam();
  Bytes code(22, std::byte{0x48});
  const Bytes moved = slot_of(instruction, GuestVirt(kSlot.raw() + 22));
  code.insert(code.end(), moved.begin(), moved.end());

  const auto found = find_replaced(armed(instruction), kAt, instruction[0], code, kSlot);

  ASSERT_TRUE(found);
  EXPECT_EQ(*found, instruction[0]);
}

INSTANTIATE_TEST_SUITE_P(
    Instructions, Replaced,
    testing::Values(bytes({0x55}),                                      // push %rbp
                    bytes({0xc3}),                                      // ret
                    bytes({0x41, 0x57}),                                // push %r15
                    bytes({0x48, 0x8b, 0x05, 0x10, 0x20, 0x30, 0x00}),  // mov rel(%rip)
                    bytes({0xeb, 0x12}),                                // jmp, 8 bits
                    bytes({0xe9, 0x12, 0x34, 0x00, 0x00}),              // jmp, 32 bits
                    bytes({0x2e, 0xe9, 0x12, 0x34, 0x00, 0x00}),        // with a prefix
                    bytes({0x74, 0x84}),                                // je, 8 bits
                    bytes({0x0f, 0x84, 0x10, 0x00, 0x00, 0x00}),        // je, 32 bits
                    bytes({0xe8, 0x10, 0x20, 0x00, 0x00}),              // call
                    bytes({0x68, 0x10, 0x20, 0x00, 0x00}),              // push imm32
                    bytes({0x48, 0xc7, 0x05, 1, 0, 0, 0, 2, 0, 0,
                           0})));  // movq, like a kexec_notice

TEST(Replaced, IsNothingThatTheSlotDoesNotProve) {
  const Bytes instruction = bytes({0x48, 0x8b, 0x07});
  Bytes code = slot_of(instruction);
  const Bytes text = armed(instruction);
  const std::byte byte = instruction[0];
  ASSERT_TRUE(find_replaced(text, kAt, byte, code, kSlot));

  Bytes changed = text;
  changed[2] = std::byte{0x0f};  // the guest has changed its code after the int3
  EXPECT_FALSE(find_replaced(changed, kAt, byte, code, kSlot));
  EXPECT_FALSE(find_replaced(text, GuestVirt(kAt.raw() + 1), byte, code, kSlot))
      << "leads back elsewhere";
  EXPECT_FALSE(find_replaced(text, kAt, std::byte{0x4c}, code, kSlot)) << "another instruction";
  EXPECT_FALSE(find_replaced(text, kAt, std::byte{0x06}, code, kSlot)) << "none";
  EXPECT_FALSE(find_replaced(instruction, kAt, byte, code, kSlot)) << "no int3 is there";
  EXPECT_FALSE(find_replaced(text, kAt, byte, std::span(code).first(2), kSlot)) << "cut off";
  EXPECT_FALSE(find_replaced(text, kAt, byte, {}, kSlot));
  EXPECT_FALSE(find_replaced({}, kAt, byte, code, kSlot));
}

/// push rbp; lea rax, [rip + 0x40]; and behind it something else.
const Bytes kRun = bytes({0x55, 0x48, 0x8d, 0x05, 0x40, 0, 0, 0});
constexpr GuestVirt kJumpEntry{0xffffffff91600080};

struct LeftJump {
  Bytes text = kRun, record;
  LeftJump() {
    vmm::JumpRecord head{.address = kAt, .replaced = {}};
    std::copy_n(kRun.begin(), head.replaced.size(), head.replaced.begin());
    const auto encoded = head.encode(kSlot, kJumpEntry);
    record.assign(encoded.begin(), encoded.end());
    const auto code = disasm::relocate_run(kRun, kAt, kSlot.wrapping_add(record.size()));
    record.insert(record.end(), code->begin(), code->end());
    record.insert(record.end(), 9, std::byte{0xe8});  // what follows in the slots
    const auto jump = vmm::jump_between(kAt, kSlot.wrapping_add(vmm::JumpRecord::kEntry));
    std::copy(jump->begin(), jump->end(), text.begin());
    text.insert(text.end(), 11, std::byte{0x90});
  }
  std::optional<vmm::JumpBytes> find() const {
    return find_replaced_by_jump(text, kAt, record, kSlot, kJumpEntry);
  }
};

TEST(ReplacedByJump, IsFoundFromTheRecord) {
  const auto found = LeftJump().find();

  ASSERT_TRUE(found);
  EXPECT_TRUE(std::equal(found->begin(), found->end(), kRun.begin()));
}

TEST(ReplacedByJump, IsNotBelievedWhereAByteOfTheRecordIsAnother) {
  const std::size_t whole = LeftJump().record.size() - 9;
  for (std::size_t n = 0; n < whole; ++n) {
    LeftJump left;
    left.record[n] ^= std::byte{0x10};
    EXPECT_FALSE(left.find()) << n;
  }
  LeftJump left;
  left.text[6] ^= std::byte{1};
  EXPECT_FALSE(left.find()) << "the guest has changed what follows";
}

TEST(ReplacedByJump, NeedsAllOfIt) {
  LeftJump left;
  const Bytes whole = left.record;
  for (std::size_t size = 0; size < whole.size() - 9; ++size) {
    left.record.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(left.find()) << size;
  }
  left = {};
  left.text.resize(4);
  EXPECT_FALSE(left.find());
}

}  // namespace
}  // namespace ringside::providers
