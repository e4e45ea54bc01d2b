#include "vmm/kvm/vcpu/msr_filter.h"

#include <linux/kvm.h>

#include <array>
#include <cstdint>

namespace ringside::vmm::kvm {
namespace {

/// Of the first base, not filtered.
constexpr std::uint32_t kTsc = 0x10, kTscAdjust = 0x3b;
/// The ranges of registers: Intel's and AMD's architectural ones, Hyper-V's, KVM's own, AMD's two.
constexpr std::uint32_t kBases[] = {0, 0x4000'0000, 0x4b56'4d00, 0xc000'0000, 0xc001'0000};

}  // namespace

Result<void> filter_msrs(const KvmVm& vm, const MsrFilter& filter) {
  std::uint32_t flags = 0;
  if (filter.reads) flags |= KVM_MSR_FILTER_READ;
  if (filter.writes) flags |= KVM_MSR_FILTER_WRITE;
  TRY(vm.enable(KVM_CAP_X86_USER_SPACE_MSR, flags != 0 ? KVM_MSR_EXIT_REASON_FILTER : 0,
                "KVM_CAP_X86_USER_SPACE_MSR"));

  // A range has flags for the accesses that it filters; KVM allows accesses that no range filters.
  constexpr std::size_t kBytes = KVM_MSR_FILTER_MAX_BITMAP_SIZE;
  std::array<std::uint8_t, kBytes> denied{}, all_but_tsc{};
  for (const std::uint32_t left : {kTsc, kTscAdjust}) {
    all_but_tsc[left / 8] |= static_cast<std::uint8_t>(1u << (left % 8));
  }
  kvm_msr_filter all{};
  if (flags != 0) {
    all.flags = KVM_MSR_FILTER_DEFAULT_ALLOW;
    for (std::size_t i = 0; i < std::size(kBases); ++i) {
      all.ranges[i].flags = flags;
      all.ranges[i].base = kBases[i];
      all.ranges[i].nmsrs = kBytes * 8;
      all.ranges[i].bitmap = i == 0 ? all_but_tsc.data() : denied.data();
    }
  }
  TRY(kvm_call(vm.fd(), KVM_X86_SET_MSR_FILTER, "KVM_X86_SET_MSR_FILTER", &all));
  return {};
}

}  // namespace ringside::vmm::kvm
