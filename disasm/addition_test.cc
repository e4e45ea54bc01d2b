// Additions to memory: which instructions are some, where they go and how much they add.
#include "disasm/addition.h"

#include <gtest/gtest.h>

#include "disasm/code_for_tests.h"

namespace ringside::disasm {
namespace {

Registers per_cpu_registers() {
  Registers registers;
  registers.rax = 0x1000;
  registers.rdx = 3;
  registers.gs_base = 0x70'0000;
  return registers;
}

TEST(Additions, GoWhereTheInstructionSays) {
  const auto where = [](std::initializer_list<int> bytes) {
    const auto found = decode_addition(code(bytes), kHere);
    return found ? effective_address(found->memory, per_cpu_registers()) : 0;
  };

  // inc qword gs:[0x1234], by absolute number and by rip
  EXPECT_EQ(where({0x65, 0x48, 0xff, 0x04, 0x25, 0x34, 0x12, 0, 0}), 0x70'1234u);
  EXPECT_EQ(where({0x65, 0x48, 0xff, 0x05, 0x34, 0x12, 0, 0x7f}),
            0x70'0000 + kHere.raw() + 8 + 0x7f00'1234u);
  // inc qword gs:[rax + 0x58]; add qword gs:[rdx * 8 + 0x100], rax
  EXPECT_EQ(where({0x65, 0x48, 0xff, 0x40, 0x58}), 0x70'1058u);
  EXPECT_EQ(where({0x65, 0x48, 0x01, 0x04, 0xd5, 0, 1, 0, 0}), 0x70'0118u);
}

TEST(Additions, AreOfANumberOrARegister) {
  const auto added = [](std::initializer_list<int> bytes) {
    return static_cast<std::int64_t>(
        amount(*decode_addition(code(bytes), kHere), per_cpu_registers()));
  };

  EXPECT_EQ(added({0x65, 0x48, 0xff, 0x00}), 1);                  // inc
  EXPECT_EQ(added({0x65, 0x48, 0xff, 0x08}), -1);                 // dec
  EXPECT_EQ(added({0x65, 0x48, 0x83, 0x00, 0xfe}), -2);           // add, -2
  EXPECT_EQ(added({0x65, 0x48, 0x81, 0x00, 0, 2, 0, 0}), 0x200);  // add, 0x200
  EXPECT_EQ(added({0x65, 0x48, 0x01, 0x10}), 3);                  // add, rdx
  EXPECT_EQ(added({0x65, 0x48, 0x29, 0x10}), -3);                 // sub, rdx
}

TEST(Additions, OtherInstructionsAreNone) {
  EXPECT_FALSE(decode_addition(code({0x65, 0xff, 0x00}), kHere)) << "4 bytes";
  EXPECT_FALSE(decode_addition(code({0xf0, 0x48, 0xff, 0x00}), kHere)) << "locked";
  EXPECT_FALSE(decode_addition(code({0x48, 0xff, 0xc0}), kHere)) << "a register";
  EXPECT_FALSE(decode_addition(code({0x48, 0x03, 0x00}), kHere)) << "from memory";
  EXPECT_FALSE(decode_addition(code({0x65, 0x48, 0x89, 0x10}), kHere)) << "mov";
  EXPECT_FALSE(decode_addition(code({0x65, 0x48}), kHere)) << "cut off";
}

}  // namespace
}  // namespace ringside::disasm
