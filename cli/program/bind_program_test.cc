#include "cli/program/bind_program.h"

#include <gtest/gtest.h>

namespace ringside::cli {
namespace {

using guest_linux::KernelPartIdentity;

constexpr std::string_view kHere = "6.12.0";

dif::KernelNeed needing(std::string module = "vmlinux") {
  dif::KernelNeed need;
  need.module = std::move(module);
  need.type = "struct {...} *";
  need.release = "6.1.0";
  need.build = "0123456789abcdef0123";
  need.types_hash = 7;
  return need;
}

const KernelPartIdentity kSame{"0123456789abcdef0123", 7};

/// "" when the program may run.
std::string refusal(const dif::KernelNeed& need, std::optional<KernelPartIdentity> now) {
  const auto checked = check_need(need, std::string(kHere), now, "x.dof");
  return checked ? "" : checked.error().message;
}

TEST(KernelNeeds, TheSameTypesOutliveABootAndARebuild) {
  EXPECT_EQ(refusal(needing(), kSame), "");
  EXPECT_EQ(refusal(needing("loop"), kSame), "");
  EXPECT_EQ(refusal(needing(), KernelPartIdentity{"fedcba", 7}), "");
}

TEST(KernelNeeds, OtherTypesAreRefusedWithBothKernelsNames) {
  EXPECT_EQ(refusal(needing(), KernelPartIdentity{"fedcba9876543210", 8}),
            "x.dof was compiled for Linux 6.1.0 (build 0123456789ab) and contains struct {...} *, "
            "which has no name to find it by in the Linux 6.12.0 (build fedcba987654) here: "
            "compile the program again here");
  EXPECT_NE(refusal(needing("loop"), KernelPartIdentity{"names-0123456789abcdef", 8})
                .find("struct {...} * of its module loop, which has no name to find it by in the "
                      "Linux 6.12.0 (build names-0123456789abcdef)"),
            std::string::npos);
}

TEST(KernelNeeds, AModuleHasToBeThere) {
  EXPECT_EQ(refusal(needing("loop"), std::nullopt),
            "x.dof was compiled for Linux 6.1.0 with the module loop, which is not loaded in the "
            "Linux 6.12.0 here: load it, or compile the program again here");
}

}  // namespace
}  // namespace ringside::cli
