#include "cli/program/kernel_needs.h"

#include <gtest/gtest.h>

namespace ringside::cli {
namespace {

using guest_linux::KernelPartIdentity;

constexpr std::string_view kHere = "6.12.0";

dif::KernelNeed needing(bool types, bool addresses, std::string module = "vmlinux") {
  dif::KernelNeed need;
  need.module = std::move(module);
  need.types = types;
  need.addresses = addresses;
  need.release = "6.1.0";
  need.build = "0123456789abcdef0123";
  need.types_hash = 7;
  need.place = 0xffff'ffff'8100'0000;
  return need;
}

const KernelPartIdentity kSame{"0123456789abcdef0123", 7, 0xffff'ffff'8100'0000};

/// "" when the program may run.
std::string refusal(const dif::KernelNeed& need, std::optional<KernelPartIdentity> now) {
  const auto checked = check_need(need, std::string(kHere), now, "x.dof");
  return checked ? "" : checked.error().message;
}

TEST(KernelNeeds, TheSameBootHasAll) {
  EXPECT_EQ(refusal(needing(true, true), kSame), "");
  EXPECT_EQ(refusal(needing(true, true, "loop"), kSame), "");
}

TEST(KernelNeeds, TypesOutliveABootAndARebuild) {
  EXPECT_EQ(refusal(needing(true, false), KernelPartIdentity{"fedcba", 7, 1}), "");
}

TEST(KernelNeeds, OtherTypesAreRefusedWithBothKernelsNames) {
  EXPECT_EQ(
      refusal(needing(true, false), KernelPartIdentity{"fedcba9876543210", 8, 1}),
      "x.dof was compiled for Linux 6.1.0 (build 0123456789ab) and contains structure offsets; "
      "Linux 6.12.0 (build fedcba987654) runs here: compile the program again here");
}

TEST(KernelNeeds, AddressesAreOfOneBoot) {
  KernelPartIdentity moved = kSame;
  moved.place += 0x2000'0000;
  EXPECT_EQ(
      refusal(needing(false, true), moved),
      "x.dof was compiled for another boot of Linux 6.1.0 and contains addresses; that kernel "
      "lay at 0xffffffff81000000, the one here lies at 0xffffffffa1000000 (KASLR): compile the "
      "program again here, or boot with nokaslr");
  EXPECT_EQ(refusal(needing(false, true), kSame), "") << "nothing has moved";
}

TEST(KernelNeeds, AddressesAreOfOneBuildThoughItLiesWhereTheOtherDid) {
  KernelPartIdentity rebuilt = kSame;
  rebuilt.build = "names-0123456789abcdef";
  EXPECT_NE(refusal(needing(false, true), rebuilt).find("(build names-0123456789abcdef) runs here"),
            std::string::npos);
}

TEST(KernelNeeds, AModuleHasToBeThereAndWhereItWas) {
  KernelPartIdentity moved = kSame;
  moved.place += 0x1000;
  EXPECT_EQ(refusal(needing(true, false, "loop"), std::nullopt),
            "x.dof was compiled for Linux 6.1.0 with the module loop, which is not loaded in the "
            "Linux 6.12.0 here: load it, or compile the program again here");
  EXPECT_NE(refusal(needing(false, true, "loop"), moved).find("had the module loop elsewhere"),
            std::string::npos);
  EXPECT_EQ(refusal(needing(true, false, "loop"), moved), "");
}

TEST(KernelNeeds, WithoutAGuestOnlyWhatNeedsNoneRuns) {
  dif::Program program;
  const Guest nobody{};
  EXPECT_TRUE(check_kernel(program, nobody, "x.dof"));
  program.needs = {needing(true, false)};
  EXPECT_EQ(
      check_kernel(program, nobody, "x.dof").error().message,
      "x.dof was compiled for Linux 6.1.0 and contains structure offsets of vmlinux, but there "
      "is no guest: name one with --image or --kernel");
}

}  // namespace
}  // namespace ringside::cli
