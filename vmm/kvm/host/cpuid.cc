#include "vmm/kvm/host/cpuid.h"

#include <bit>

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint32_t kHypervisor = 1u << 31, kTscDeadline = 1u << 24;  // leaf 1 ECX
constexpr std::uint32_t kSeveral = 1u << 28;                              // leaf 1 EDX: HTT
constexpr std::uint32_t kTopology = 0xb, kTopologyV2 = 0x1f;
constexpr std::uint32_t kSmtLevel = 1, kCoreLevel = 2;  // ECX[15:8] of the topology leaves

void set_bits(std::uint32_t& word, std::uint32_t bits, bool on) {
  word = on ? word | bits : word & ~bits;
}

/// How many bits of the APIC id number the cores.
std::uint32_t core_bits(std::uint32_t vcpus) {
  return static_cast<std::uint32_t>(std::bit_width(vcpus - 1));
}

void fit_features(kvm_cpuid_entry2& entry, const CpuidPlan& plan) {
  const std::uint32_t ids = 1u << core_bits(plan.vcpus);
  entry.ebx = (entry.ebx & 0xffff) | std::min(ids, 255u) << 16 | (plan.apic_id & 0xff) << 24;
  set_bits(entry.ecx, kHypervisor, true);
  set_bits(entry.ecx, kTscDeadline, plan.tsc_deadline);
  set_bits(entry.edx, kSeveral, plan.vcpus > 1);
}

/// Intel's deterministic cache parameters: which CPUs share a cache, and the cores of the package.
void fit_cache(kvm_cpuid_entry2& entry, const CpuidPlan& plan) {
  if ((entry.eax & 0x1f) == 0) return;  // no more caches
  const std::uint32_t most = (1u << core_bits(plan.vcpus)) - 1;
  const std::uint32_t level = entry.eax >> 5 & 7;
  const std::uint32_t sharing = level >= 3 ? most : 0;
  entry.eax = (entry.eax & 0x3fff) | std::min(sharing, 0xfffu) << 14 | std::min(most, 63u) << 26;
}

/// AMD's: threads that share the cache only.
void fit_amd_cache(kvm_cpuid_entry2& entry, const CpuidPlan& plan) {
  const std::uint32_t level = entry.eax >> 5 & 7;
  const std::uint32_t sharing = level >= 3 ? plan.vcpus - 1 : 0;
  entry.eax = (entry.eax & ~(0xfffu << 14)) | std::min(sharing, 0xfffu) << 14;
}

/// Replaces a topology leaf by ours: one thread a core, all cores in one package.
void fit_topology(CpuidTable& table, std::uint32_t leaf, const CpuidPlan& plan) {
  const auto entries = table.entries();
  const auto kept = std::remove_if(entries.begin(), entries.end(),
                                   [&](const auto& entry) { return entry.function == leaf; });
  const auto count = static_cast<std::uint32_t>(kept - entries.begin());
  if (count == entries.size() || count + 3 > CpuidTable::kRoom) return;  // KVM has no such leaf
  const auto add = [&](std::uint32_t level, std::uint32_t bits, std::uint32_t cpus,
                       std::uint32_t type) {
    kvm_cpuid_entry2& entry = table.room[count + level];
    entry = {};
    entry.function = leaf;
    entry.index = level;
    entry.flags = KVM_CPUID_FLAG_SIGNIFCANT_INDEX;
    entry.eax = bits;
    entry.ebx = cpus;
    entry.ecx = level | type << 8;
    entry.edx = plan.apic_id;
  };
  add(0, 0, 1, kSmtLevel);
  add(1, core_bits(plan.vcpus), plan.vcpus, kCoreLevel);
  add(2, 0, 0, 0);  // "no more levels"
  table.count = count + 3;
}

void fit_entry(kvm_cpuid_entry2& entry, const CpuidPlan& plan) {
  switch (entry.function) {
    case 1: return fit_features(entry, plan);
    case 4: return fit_cache(entry, plan);
    case 0x8000'0008:  // AMD: ApicIdSize and NC; elsewhere reserved and zero
      if (entry.ecx != 0) entry.ecx = core_bits(plan.vcpus) << 12 | (plan.vcpus - 1);
      return;
    case 0x8000'001d: return fit_amd_cache(entry, plan);
    case 0x8000'001e:  // AMD: extended APIC id, one thread a core, one node
      entry.eax = plan.apic_id;
      entry.ebx = plan.apic_id & 0xff;
      entry.ecx = 0;
      return;
    default: return;
  }
}

}  // namespace

const kvm_cpuid_entry2* CpuidTable::find(std::uint32_t leaf, std::uint32_t subleaf) const {
  for (const kvm_cpuid_entry2& entry : entries()) {
    if (entry.function == leaf && entry.index == subleaf) return &entry;
  }
  return nullptr;
}

void fit_cpuid(CpuidTable& table, const CpuidPlan& plan) {
  for (kvm_cpuid_entry2& entry : table.entries()) fit_entry(entry, plan);
  fit_topology(table, kTopology, plan);
  fit_topology(table, kTopologyV2, plan);
}

}  // namespace ringside::vmm::kvm
