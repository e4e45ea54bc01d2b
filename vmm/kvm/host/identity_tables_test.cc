#include "vmm/kvm/host/identity_tables.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "vmm/base/bytes.h"

namespace ringside::vmm::kvm {
namespace {

TEST(IdentityTables, MapTheFirstLargePageOneToOneAndNothingElse) {
  constexpr std::uint64_t kRoot = 0x1000;
  std::vector<std::byte> memory(0x8000);

  write_identity_tables(memory, kRoot);

  const auto load64 = [&](GuestPhys at) {
    return std::optional(load_at<std::uint64_t>(memory, at.raw()));
  };
  const auto mapped = [&](std::uint64_t at) {
    const GuestVirt virt(at);
    return arch::translation(arch::walk(load64, {GuestPhys(kRoot)}, virt, 1), virt);
  };
  for (const std::uint64_t at : {std::uint64_t{0}, kRoot, arch::kLargePageSize - 1}) {
    const auto found = mapped(at);
    ASSERT_TRUE(found) << at;
    EXPECT_EQ(found->address, GuestPhys(at));
  }
  EXPECT_FALSE(mapped(arch::kLargePageSize));
}

}  // namespace
}  // namespace ringside::vmm::kvm
