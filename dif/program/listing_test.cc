#include "dif/program/listing.h"

#include <gtest/gtest.h>

#include "dif/testing/make_dif.h"

namespace ringside::dif {
namespace {

using namespace testing;

TEST(Listing, ShowsOffsetWordAndInstruction) {
  EXPECT_EQ(list_difo(builtin(Builtin::Execname, kString)),
            "DIFO returns D type (string)\n"
            "OFF OPCODE      INSTRUCTION\n"
            "00: 29011801    ldgs DT_VAR(280), %r1\t\t! DT_VAR(280) = \"execname\"\n"
            "01: 23000001    ret  %r1\n"
            "\n"
            "NAME             ID   KND SCP FLAG TYPE\n"
            "execname         118  scl glb r    D type (string)\n");
}

TEST(Listing, NamesConstantsSubroutinesAndVariables) {
  Difo object = difo({encode_indexed(Opcode::Setx, 0, 1), encode_indexed(Opcode::Sets, 1, 2),
                      encode_push(Opcode::Pushtr, TupleType::String, 0, 2),
                      encode_indexed(Opcode::Call, 12, 3), encode(Opcode::Cmp, 1, 3),
                      encode_branch(Opcode::Bne, 7), encode_indexed(Opcode::Stts, 0x500, 3),
                      encode(Opcode::Nop), encode_return(3)});
  object.integers = {0xbeef};
  object.strings += std::string("a\n") + '\0';
  object.variables = {{0x500, VariableScope::Thread, VariableKind::Scalar, kLong, "len"}};

  EXPECT_EQ(list_difo(object),
            "DIFO returns D type (integer) (size 8)\n"
            "OFF OPCODE      INSTRUCTION\n"
            "00: 25000001    setx DT_INTEGER[0], %r1\t\t! 0xbeef\n"
            "01: 26000102    sets DT_STRING[1], %r2\t\t! \"a\\n\"\n"
            "02: 30010002    pushtr DT_TYPE(1), %r2, %r0\n"
            "03: 2f000c03    call DIF_SUBR(12), %r3\t\t! strlen\n"
            "04: 0f010300    cmp  %r1, %r3\n"
            "05: 13000007    bne  7\n"
            "06: 2d050003    stts %r3, DT_VAR(1280)\t\t! DT_VAR(1280) = \"len\"\n"
            "07: 24000000    nop\n"
            "08: 23000003    ret  %r3\n"
            "\n"
            "NAME             ID   KND SCP FLAG TYPE\n"
            "len              500  scl tls w    D type (integer) (size 8)\n");
}

TEST(Listing, SurvivesWordsThatAreNothing) {
  Difo object = difo(
      {0, 0xffff'ffff, encode_indexed(Opcode::Sets, 500, 1), encode_indexed(Opcode::Setx, 500, 1)});
  EXPECT_NE(list_difo(object).find("00: 00000000    ???\n"), std::string::npos);
}

TEST(Listing, NamesArraysStacksAndLoops) {
  const Difo object = difo({encode(Opcode::Ldga, kUregsArray, 1, 2), encode_return(2)},
                           {ValueKind::KernelStack, false, 160});
  EXPECT_EQ(list_difo(object),
            "DIFO returns D type (stack) (size 160)\n"
            "OFF OPCODE      INSTRUCTION\n"
            "00: 28020102    ldga DT_VAR(2), %r1, %r2\t\t! DT_VAR(2) = \"uregs\"\n"
            "01: 23000002    ret  %r2\n");

  Program source = count_by_execname();
  source.clauses[0].probes = {{"dtrace", "", "", "BEGIN"}};
  source.clauses[0].repeat = Repeat{0, 10};
  EXPECT_NE(list_program(source).find(
                "Clause 1 (dtrace:::BEGIN) repeats from clause 1, at most 10 times\n"),
            std::string::npos);
}

TEST(Listing, SaysWhereEachObjectBelongs) {
  Program source = count_by_execname();
  source.clauses[0].probes = {{"fbt", "", "vfs_read", "entry"}};
  source.clauses[0].predicate = constant(1);

  const std::string text = list_program(source);

  EXPECT_NE(text.find("Clause 1 (fbt::vfs_read:entry), predicate: DIFO"), std::string::npos);
  EXPECT_NE(text.find("Clause 1 (fbt::vfs_read:entry), action 1: DIFO"), std::string::npos);
}

TEST(Listing, RelocationsComeLast) {
  Difo object = builtin(Builtin::Pid);
  object.integers = {0x5d8};
  object.result = {ValueKind::Bytes, false, 64};
  object.relocations = {{Relocation::Place::Integer, 0, 1},
                        {Relocation::Place::Result, 0, 0},
                        {Relocation::Place::Integer, 0, 9}};
  const std::vector<KernelName> names = {
      {.kind = KernelName::Kind::Size, .module = "vmlinux", .name = "struct cred"},
      {.kind = KernelName::Kind::Member, .name = "struct task_struct", .path = "cred"}};

  const std::string text = list_difo(object, names);

  EXPECT_EQ(text.substr(text.find("RELOCATION")),
            "RELOCATION       KIND       NAME\n"
            "DT_INTEGER[0]    offsetof   struct task_struct, cred\n"
            "DIFO returns     sizeof     struct cred\n"
            "DT_INTEGER[0]    ???\n");
}

}  // namespace
}  // namespace ringside::dif
