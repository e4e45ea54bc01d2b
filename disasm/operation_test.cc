// Classes of instructions, the memory that they work on, their text, additions to memory.
#include <gtest/gtest.h>

#include <string>

#include "disasm/code_for_tests.h"
#include "disasm/decoder.h"

namespace ringside::disasm {
namespace {

struct Form {
  std::vector<std::byte> bytes;
  const char* text;
  InstructionClass kind;
};
std::ostream& operator<<(std::ostream& out, const Form& form) {
  return out << form.text;
}

class Forms : public testing::TestWithParam<Form> {};

TEST_P(Forms, HaveTheirClassAndText) {
  const auto operation = decode_operation(GetParam().bytes, kHere);

  ASSERT_TRUE(operation);
  EXPECT_EQ(name_of(operation->kind), name_of(GetParam().kind));
  EXPECT_EQ(operation->length, GetParam().bytes.size());
  EXPECT_EQ(assembly(GetParam().bytes, kHere), GetParam().text);
}

using Kind = InstructionClass;
INSTANTIATE_TEST_SUITE_P(
    Operations, Forms,
    testing::Values(Form{code({0xe8, 0xfb, 0, 0, 0}), "call 0xffffffff81000100", Kind::Call},
                    Form{code({0xff, 0x53, 0x08}), "call [rbx+0x8]", Kind::Call},
                    Form{code({0xeb, 0xfe}), "jmp 0xffffffff81000000", Kind::Jmp},
                    Form{code({0xff, 0xe0}), "jmp rax", Kind::Jmp},
                    Form{code({0x74, 0}), "jz 0xffffffff81000002", Kind::Jcc},
                    Form{code({0xe3, 0}), "jrcxz 0xffffffff81000002", Kind::Jcc},
                    Form{code({0xc3}), "ret", Kind::Ret},
                    Form{code({0x48, 0x8b, 0x07}), "mov rax, [rdi]", Kind::Load},
                    Form{code({0x48, 0x39, 0x07}), "cmp [rdi], rax", Kind::Load},
                    Form{code({0x48, 0x89, 0x07}), "mov [rdi], rax", Kind::Store},
                    Form{code({0x48, 0x01, 0x07}), "add [rdi], rax", Kind::Store},
                    Form{code({0xf0, 0x48, 0x01, 0x07}), "lock add [rdi], rax", Kind::Lock},
                    Form{code({0x48, 0x87, 0x07}), "xchg [rdi], rax", Kind::Lock},
                    Form{code({0x48, 0x87, 0xc7}), "xchg rdi, rax", Kind::Other},
                    Form{code({0x55}), "push rbp", Kind::Store},
                    Form{code({0x5d}), "pop rbp", Kind::Load},
                    Form{code({0xff, 0x33}), "push [rbx]", Kind::Load},
                    Form{code({0x8f, 0x03}), "pop [rbx]", Kind::Store},
                    Form{code({0x9c}), "pushfq", Kind::Store},
                    Form{code({0x9d}), "popfq", Kind::Load},
                    Form{code({0xf3, 0x48, 0xab}), "rep stosq", Kind::String},
                    Form{code({0xa4}), "movsb", Kind::String}, Form{code({0xfb}), "sti", Kind::Sti},
                    Form{code({0xfa}), "cli", Kind::Cli},
                    Form{code({0x0f, 0xb6, 0x07}), "movzx eax, byte ptr [rdi]", Kind::Load},
                    Form{code({0x48, 0x8d, 0x47, 0x08}), "lea rax, [rdi+0x8]", Kind::Other},
                    Form{code({0x0f, 0x1f, 0x40, 0x00}), "nop [rax], eax", Kind::Other},
                    Form{code({0x0f, 0x18, 0x0f}), "prefetcht0 [rdi]", Kind::Other},
                    Form{code({0x0f, 0x0b}), "ud2", Kind::Other},
                    Form{code({0xc5, 0xfe, 0x6f, 0x07}), "vmovdqu ymm0, [rdi]", Kind::Load}));

Registers some_registers() {
  Registers registers;
  registers.rsp = 0xffff'c900'0000'1000;
  registers.rbp = 0xffff'c900'0000'1040;
  registers.rbx = 0xffff'8880'0000'2000;
  registers.rcx = 3;
  registers.rdi = 0xffff'8880'0000'3000;
  registers.rsi = 0xffff'8880'0000'4000;
  registers.gs_base = 0xffff'8880'7dc0'0000;
  return registers;
}

struct Access {
  std::vector<std::byte> bytes;
  std::uint64_t address;
  unsigned size;
};

class Accesses : public testing::TestWithParam<Access> {};

TEST_P(Accesses, AreWhereTheRegistersSay) {
  const auto operation = decode_operation(GetParam().bytes, kHere);

  ASSERT_TRUE(operation && operation->memory);
  EXPECT_EQ(effective_address(*operation->memory, some_registers()), GetParam().address);
  EXPECT_EQ(operation->bytes, GetParam().size);
}

INSTANTIATE_TEST_SUITE_P(
    Operations, Accesses,
    testing::Values(
        Access{code({0x48, 0x8b, 0x44, 0xcb, 0xf8}), 0xffff'8880'0000'2010, 8},  // -8(%rbx,%rcx,8)
        Access{code({0x0f, 0xb6, 0x07}), 0xffff'8880'0000'3000, 1},              // movzbl (%rdi)
        Access{code({0x8b, 0x05, 0x10, 0, 0, 0}), 0xffff'ffff'8100'0016, 4},     // 0x10(%rip)
        Access{code({0x65, 0x48, 0x8b, 0x04, 0x25, 0x40, 0, 0, 0}), 0xffff'8880'7dc0'0040, 8},
        Access{code({0x65, 0x8b, 0x05, 0, 0, 0, 0x7f}), 0xffff'8880'7dc0'0000 + 0x07, 4},
        Access{code({0x67, 0x8b, 0x03}), 0x2000, 4},  // (%ebx)
        Access{code({0x48, 0xa1, 1, 2, 3, 4, 5, 6, 7, 0x88}), 0x8807'0605'0403'0201, 8},
        Access{code({0x55}), 0xffff'c900'0000'0ff8, 8},        // push: below the stack pointer
        Access{code({0x5d}), 0xffff'c900'0000'1000, 8},        // pop
        Access{code({0xc9}), 0xffff'c900'0000'1040, 8},        // leave: by the frame pointer
        Access{code({0xff, 0x33}), 0xffff'8880'0000'2000, 8},  // pushq (%rbx)
        Access{code({0xf0, 0x0f, 0xb1, 0x0f}), 0xffff'8880'0000'3000, 4},
        Access{code({0xf3, 0xa4}), 0xffff'8880'0000'3000, 1},          // rep movsb: to where
        Access{code({0x48, 0xad}), 0xffff'8880'0000'4000, 8},          // lodsq: from where
        Access{code({0xff, 0x53, 0x08}), 0xffff'8880'0000'2008, 8}));  // call *8(%rbx)

TEST(Operations, SayWhichRegisterAnIndirectBranchFollows) {
  const auto call = decode_operation(code({0x41, 0xff, 0xd3}), kHere);

  ASSERT_TRUE(call);
  EXPECT_TRUE(call->target_register == &Registers::r11);
  EXPECT_FALSE(call->memory);
}

TEST(Operations, SayWhichRegisterAMovStores) {
  const auto stored = [](std::initializer_list<int> bytes) {
    return decode_operation(code(bytes), kHere)->stored;
  };

  EXPECT_EQ(stored({0x48, 0x89, 0x43, 0x50}), &Registers::rax);       // mov [rbx + 0x50], rax
  EXPECT_EQ(stored({0x4d, 0x89, 0x44, 0x24, 0x50}), &Registers::r8);  // mov [r12 + 0x50], r8
  EXPECT_EQ(stored({0x89, 0x43, 0x50}), nullptr) << "eax is a part of one";
  EXPECT_EQ(stored({0x48, 0xc7, 0x43, 0x50, 1, 0, 0, 0}), nullptr) << "a number";
  EXPECT_EQ(stored({0x48, 0x8b, 0x43, 0x50}), nullptr) << "a load";
  EXPECT_EQ(stored({0x48, 0x01, 0x43, 0x50}), nullptr) << "add";
}

TEST(Operations, KnowNoPlaceOfAnOperandByRegistersThatNoTrapKeeps) {
  const auto xlat = decode_operation(code({0xd7}), kHere);

  ASSERT_TRUE(xlat);
  EXPECT_EQ(xlat->kind, Kind::Other);
  EXPECT_FALSE(xlat->memory);
}

TEST(Operations, RepeatOnlyWithAPrefix) {
  EXPECT_TRUE(decode_operation(code({0xf3, 0xaa}), kHere)->repeats);
  EXPECT_FALSE(decode_operation(code({0xaa}), kHere)->repeats);
}

TEST(Operations, HaveClassesByName) {
  for (const char* name :
       {"call", "jmp", "jcc", "ret", "load", "store", "lock", "string", "sti", "cli", "other"}) {
    const auto kind = class_named(name);
    ASSERT_TRUE(kind) << name;
    EXPECT_EQ(name_of(*kind), name);
  }
  EXPECT_FALSE(class_named("mov"));
}

TEST(Operations, OfNoInstructionAreNone) {
  EXPECT_FALSE(decode_operation(code({0x06}), kHere)) << "no instruction in 64-bit mode";
  EXPECT_EQ(assembly(code({0x06}), kHere), "");
}

Registers per_cpu_registers() {
  Registers registers;
  registers.rax = 0x1000;
  registers.rdx = 3;
  registers.gs_base = 0x70'0000;
  return registers;
}

TEST(Additions, GoWhereTheInstructionSays) {
  const auto where = [](std::initializer_list<int> bytes) {
    const auto found = decode_operation(code(bytes), kHere);
    return found && found->adds_to_memory() ? effective_address(*found->memory, per_cpu_registers())
                                            : 0;
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
        decode_operation(code(bytes), kHere)->added(per_cpu_registers()));
  };

  EXPECT_EQ(added({0x65, 0x48, 0xff, 0x00}), 1);                  // inc
  EXPECT_EQ(added({0x65, 0x48, 0xff, 0x08}), -1);                 // dec
  EXPECT_EQ(added({0x65, 0x48, 0x83, 0x00, 0xfe}), -2);           // add, -2
  EXPECT_EQ(added({0x65, 0x48, 0x81, 0x00, 0, 2, 0, 0}), 0x200);  // add, 0x200
  EXPECT_EQ(added({0x65, 0x48, 0x01, 0x10}), 3);                  // add, rdx
  EXPECT_EQ(added({0x65, 0x48, 0x29, 0x10}), -3);                 // sub, rdx
}

TEST(Additions, OtherInstructionsAreNone) {
  const auto adds = [](std::initializer_list<int> bytes) {
    return decode_operation(code(bytes), kHere)->adds_to_memory();
  };

  EXPECT_FALSE(adds({0x65, 0xff, 0x00})) << "4 bytes";
  EXPECT_FALSE(adds({0xf0, 0x48, 0xff, 0x00})) << "locked";
  EXPECT_FALSE(adds({0x48, 0xff, 0xc0})) << "a register";
  EXPECT_FALSE(adds({0x48, 0x03, 0x00})) << "from memory";
  EXPECT_FALSE(adds({0x65, 0x48, 0x89, 0x10})) << "mov";
  EXPECT_FALSE(adds({0x66, 0x01, 0x10})) << "2 bytes";
}

}  // namespace
}  // namespace ringside::disasm
