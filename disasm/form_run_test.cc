// The runner of forms itself: what it sees, on instructions whose effect is known.
#include <gtest/gtest.h>

#include "disasm/code_for_tests.h"
#include "disasm/form_run_for_tests.h"

namespace ringside::disasm {
namespace {

using Verdict = FormVerdict::Kind;

TEST(FormOf, LeavesOutDisplacementAndImmediate) {
  EXPECT_EQ(form_of(code({0x83, 0x46, 0x08, 5})), form_of(code({0x83, 0x46, 0x10, 6})));
  EXPECT_EQ(form_of(code({0xe8, 1, 2, 3, 4})), form_of(code({0xe8, 5, 6, 7, 8})));
  EXPECT_NE(form_of(code({0x83, 0x46, 0x08, 5})), form_of(code({0x83, 0x47, 0x08, 5})));
}

class FormRuns : public testing::Test {
 protected:
  Verdict kind(std::initializer_list<int> bytes) {
    const auto verdict = runner_.run(code(bytes), 8);
    EXPECT_NE(verdict.kind, Verdict::Different) << verdict.what;
    return verdict.kind;
  }
  FormRunner runner_;
};

TEST_F(FormRuns, RunWhatAProgramMayDo) {
  EXPECT_EQ(kind({0x48, 0x8b, 0x84, 0xcb, 0, 0x10, 0, 0x80}), Verdict::Same);  // far displacements
  EXPECT_EQ(kind({0x65, 0x48, 0x8b, 0x04, 0x25, 0x40, 0, 0, 0}), Verdict::Same);
  EXPECT_EQ(kind({0x65, 0x48, 0x8b, 0x05, 0, 0, 0, 0x7f}), Verdict::Same);
  EXPECT_EQ(kind({0xff, 0x24, 0xc5, 0, 0, 0, 0x82}), Verdict::Same);  // jmp [table + rax * 8]
  EXPECT_EQ(kind({0xe8, 0, 0, 0, 0}), Verdict::Same);
  EXPECT_EQ(kind({0x0f, 0x84, 0, 0, 0, 0}), Verdict::Same);
  EXPECT_EQ(kind({0x41, 0xff, 0x53, 0x08}), Verdict::Same);
  EXPECT_EQ(kind({0xc3}), Verdict::Same);
  EXPECT_EQ(kind({0x9d}), Verdict::Same);
  EXPECT_EQ(kind({0xf3, 0xa4}), Verdict::Same);
  EXPECT_EQ(kind({0x66, 0x0f, 0xef, 0xc1}), Verdict::Same);  // pxor xmm0, xmm1
}

TEST_F(FormRuns, CompareTheSignalsOfWhatItMayNot) {
  EXPECT_EQ(kind({0xfa}), Verdict::Signal);
  EXPECT_EQ(kind({0x0f, 0x30}), Verdict::Signal);
}

TEST_F(FormRuns, AreRefusedWhereASlotWouldBe) {
  EXPECT_EQ(kind({0xf4}), Verdict::Refused);
}

TEST_F(FormRuns, LeaveOutWhatWouldHurtThisProcess) {
  EXPECT_EQ(kind({0x8e, 0xe0}), Verdict::LeftOut);  // mov fs, eax
  EXPECT_EQ(kind({0x0f, 0x31}), Verdict::LeftOut);  // rdtsc
}

TEST_F(FormRuns, FindEveryKindOfDifference) {
  const auto what = [this](std::initializer_list<int> here, std::initializer_list<int> there) {
    const auto verdict = runner_.run_beside(code(here), code(there), 4);
    EXPECT_EQ(verdict.kind, Verdict::Different);
    return verdict.what;
  };
  EXPECT_EQ(what({0x48, 0xff, 0xc0}, {0x48, 0xff, 0xc8}).substr(0, 10), "register 0");  // inc, dec
  EXPECT_EQ(what({0xf8}, {0xf9}).substr(0, 11), "register 16");                         // clc, stc
  EXPECT_EQ(what({0x88, 0x47, 0x10}, {0x88, 0x67, 0x10}), "memory differs");            // al, ah
  EXPECT_EQ(what({0x66, 0x0f, 0xef, 0xc1}, {0x66, 0x0f, 0xef, 0xc2}), "vectors differ");
  EXPECT_EQ(what({0x74, 0}, {0x75, 0}), "it goes on elsewhere");
  EXPECT_EQ(what({0xfa}, {0x90}), "signal 0 in the slot, 11 in place");
}

TEST_F(FormRuns, LeaveOtherTestsTheirOwnSignals) {
  { FormRunner inner; }
  EXPECT_EQ(kind({0xfa}), Verdict::Signal) << "the outer one's handlers are back";
}

}  // namespace
}  // namespace ringside::disasm
