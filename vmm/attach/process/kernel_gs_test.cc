#include <gtest/gtest.h>

#include "vmm/attach/process/process_vcpus.h"

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kPerCpu = 0xffff'8881'0000'0000, kOfProgram = 0x7f12'3456'7000;

Registers of(std::uint64_t cs, std::uint64_t gs_base) {
  Registers registers;
  registers.cs = cs;
  registers.gs_base = gs_base;
  return registers;
}

TEST(KernelGs, IsTheOneThatTheVcpuHadInTheKernel) {
  KernelGs known;
  Registers unknown = of(0x33, kOfProgram), kernel = of(0x10, kPerCpu),
            entry = of(0x10, kOfProgram), program = of(0x33, kOfProgram),
            other = of(0x33, kOfProgram);

  known.complete(0, unknown);
  known.complete(0, kernel);
  known.complete(0, entry);  // before swapgs
  known.complete(0, program);
  known.complete(1, other);

  EXPECT_EQ(unknown.kernel_gs_base, 0u);
  EXPECT_EQ(kernel.kernel_gs_base, 0u);
  EXPECT_EQ(program.kernel_gs_base, kPerCpu);
  EXPECT_EQ(program.gs_base, kOfProgram);
  EXPECT_EQ(other.kernel_gs_base, 0u) << "each vCPU has its own";
}

}  // namespace
}  // namespace ringside::vmm
