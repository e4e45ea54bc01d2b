#include "vmm/kvm/host/cpuid.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace ringside::vmm::kvm {
namespace {

kvm_cpuid_entry2 leaf(std::uint32_t function, std::uint32_t index = 0) {
  kvm_cpuid_entry2 entry{};
  entry.function = function;
  entry.index = index;
  return entry;
}

std::unique_ptr<CpuidTable> table_of(const std::vector<kvm_cpuid_entry2>& entries) {
  auto table = std::make_unique<CpuidTable>();
  std::copy(entries.begin(), entries.end(), table->room);
  table->count = static_cast<std::uint32_t>(entries.size());
  return table;
}

TEST(FitCpuid, SetsTheHypervisorBitThatKvmLeavesClear) {
  const auto table = table_of({leaf(1)});

  fit_cpuid(*table, {});

  EXPECT_EQ(table->find(1)->ecx >> 31, 1u);
}

TEST(FitCpuid, OffersTheDeadlineTimerOnlyWhereKvmHasIt) {
  auto with = table_of({leaf(1)}), without = table_of({leaf(1)});
  without->room[0].ecx = 1u << 24;

  fit_cpuid(*with, {.tsc_deadline = true});
  fit_cpuid(*without, {.tsc_deadline = false});

  EXPECT_EQ(with->find(1)->ecx >> 24 & 1, 1u);
  EXPECT_EQ(without->find(1)->ecx >> 24 & 1, 0u);
}

TEST(FitCpuid, GivesEachVcpuItsApicIdInAllLeavesThatTellIt) {
  const auto table = table_of({leaf(1), leaf(0xb), leaf(0x1f), leaf(0x8000'001e)});
  table->room[0].ebx = 0x1234'5678;

  fit_cpuid(*table, {.apic_id = 3, .vcpus = 6});

  EXPECT_EQ(table->find(1)->ebx, 0x0308'5678u);  // ids of 3 bits: 8 of them
  EXPECT_EQ(table->find(1)->edx >> 28 & 1, 1u);
  for (const std::uint32_t topology : {0xbu, 0x1fu}) {
    EXPECT_EQ(table->find(topology, 0)->edx, 3u);
    EXPECT_EQ(table->find(topology, 1)->edx, 3u);
  }
  EXPECT_EQ(table->find(0x8000'001e)->eax, 3u);
}

TEST(FitCpuid, ReplacesTheHostsTopologyByOneThreadACore) {
  auto smt = leaf(0xb, 0), core = leaf(0xb, 1);
  smt.eax = 1, smt.ebx = 2, smt.ecx = 0x100;
  core.eax = 7, core.ebx = 96, core.ecx = 0x201;
  const auto table = table_of({smt, leaf(1), core});

  fit_cpuid(*table, {.apic_id = 1, .vcpus = 4});

  ASSERT_EQ(table->entries().size(), 4u);
  EXPECT_EQ(table->find(0xb, 0)->eax, 0u);
  EXPECT_EQ(table->find(0xb, 0)->ebx, 1u);
  EXPECT_EQ(table->find(0xb, 1)->eax, 2u);
  EXPECT_EQ(table->find(0xb, 1)->ebx, 4u);
  EXPECT_EQ(table->find(0xb, 1)->ecx, 0x201u);
  EXPECT_EQ(table->find(0xb, 2)->ebx, 0u);
  EXPECT_NE(table->find(1), nullptr);
}

TEST(FitCpuid, AddsNoTopologyLeafThatKvmDoesNotHave) {
  const auto table = table_of({leaf(0), leaf(1)});

  fit_cpuid(*table, {.vcpus = 2});

  EXPECT_EQ(table->entries().size(), 2u);
}

TEST(FitCpuid, AFullTableKeepsItsSize) {
  const auto table = table_of(std::vector<kvm_cpuid_entry2>(CpuidTable::kRoom, leaf(0xb)));
  table->room[1] = leaf(1);
  table->count = UINT32_MAX;

  fit_cpuid(*table, {.vcpus = 2});

  EXPECT_LE(table->entries().size(), CpuidTable::kRoom);
}

TEST(FitCpuid, OneVcpuIsNoMultiprocessor) {
  const auto table = table_of({leaf(1)});
  table->room[0].edx = 1u << 28;

  fit_cpuid(*table, {});

  EXPECT_EQ(table->find(1)->edx >> 28 & 1, 0u);
  EXPECT_EQ(table->find(1)->ebx >> 16 & 0xff, 1u);
}

}  // namespace
}  // namespace ringside::vmm::kvm
