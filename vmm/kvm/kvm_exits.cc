#include "vmm/kvm/kvm_exits.h"

#include <fmt/format.h>
#include <linux/kvm.h>

#include <array>
#include <cstdint>

namespace ringside::vmm::kvm {
namespace {

using Kind = VcpuEvent::Kind;

bool wants(const VcpuExits::Wanted& wanted, Kind kind) {
  return wanted.kinds[static_cast<std::size_t>(kind)];
}

struct MsrFilter {
  bool reads = false, writes = false;
};

/// Of the first base, not filtered.
constexpr std::uint32_t kTsc = 0x10, kTscAdjust = 0x3b;
/// The ranges of registers: Intel's and AMD's architectural ones, Hyper-V's, KVM's own, AMD's two.
constexpr std::uint32_t kBases[] = {0, 0x4000'0000, 0x4b56'4d00, 0xc000'0000, 0xc001'0000};

/// Makes accesses of model-specific registers leave the guest, so that they become events. The
/// vCPU's thread then makes the access in the guest's place (IoExits). While the machine is
/// paused. With neither, the guest's accesses stay in KVM again. Io where KVM refuses.
/// api.rst: 4.97 KVM_X86_SET_MSR_FILTER, 7.21 KVM_CAP_X86_USER_SPACE_MSR. Does not: reach the
/// x2APIC's registers, which KVM never filters; nor the TSC, whose value would be late by the way
/// out and in; nor IA32_TSC_ADJUST, which moves the TSC only when the guest itself writes it: KVM
/// takes our writes for a state that is being restored (kvm/x86.c, 6.1 and 6.12).
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

}  // namespace

KvmExits::KvmExits(const KvmSystem& system, KvmGuest& guest)
    : guest_(guest),
      filters_msrs_(system.check(KVM_CAP_X86_MSR_FILTER) > 0 &&
                    system.check(KVM_CAP_X86_USER_SPACE_MSR) > 0) {}

void KvmExits::set_sink(PausedMachine&, ExitSink* sink) {
  const Vcpu* const here = Vcpu::current();
  guest_.subscription().slot().set(sink, here != nullptr ? here->index() : SinkSlot::kNoVcpu);
}

std::optional<std::string> KvmExits::cannot(Kind kind) const {
  switch (kind) {
    case Kind::MsrRead:
    case Kind::MsrWrite:
      if (filters_msrs_) return std::nullopt;
      return "this host's KVM lacks KVM_CAP_X86_MSR_FILTER (Linux 5.10 has it)";
    case Kind::Dirty:
      if (guest_.vm().dirty_ring_size() != 0) return std::nullopt;
      return "this host's KVM lacks KVM_CAP_DIRTY_LOG_RING (Linux 5.11 has it)";
    case Kind::Cpuid:
    case Kind::Hlt: {
      const std::lock_guard lock(host_mutex_);
      return host_.cannot(kind);
    }
    case Kind::Exit:
    case Kind::PortIn:
    case Kind::PortOut:
    case Kind::MmioRead:
    case Kind::MmioWrite:
    case Kind::Inject: return std::nullopt;
  }
  return std::nullopt;
}

Result<void> KvmExits::want(PausedMachine&, const Wanted& wanted) {
  for (std::size_t i = 0; i < wanted.kinds.size(); ++i) {
    const auto why = wanted.kinds[i] ? cannot(static_cast<Kind>(i)) : std::nullopt;
    if (why) return fail(ErrorCode::Unsupported, *why);
  }
  const MsrFilter filter{wants(wanted, Kind::MsrRead), wants(wanted, Kind::MsrWrite)};
  const MsrFilter before{wants(wanted_, Kind::MsrRead), wants(wanted_, Kind::MsrWrite)};
  if (filter.reads != before.reads || filter.writes != before.writes) {
    TRY(filter_msrs(guest_.vm(), filter));
  }
  if (wants(wanted, Kind::Dirty) != wants(wanted_, Kind::Dirty)) {
    TRY(guest_.log_dirty_pages(wants(wanted, Kind::Dirty)));
  }
  if (wants(wanted, Kind::Cpuid) != wants(wanted_, Kind::Cpuid) ||
      wants(wanted, Kind::Hlt) != wants(wanted_, Kind::Hlt)) {
    TRY(listen_to_host({wants(wanted, Kind::Cpuid), wants(wanted, Kind::Hlt)}));
  }
  wanted_ = wanted;
  guest_.subscription().want(wanted);
  return {};
}

Result<void> KvmExits::listen_to_host(VcpuTracepoints::Wanted wanted) {
  std::vector<std::unique_ptr<VcpuTracepoints>> points(guest_.vcpu_count());
  for (std::size_t i = 0; i < points.size() && (wanted.cpuid || wanted.halts); ++i) {
    points[i] = TRY(
        VcpuTracepoints::open(host_.formats(), wanted, guest_.vcpus()[i]->tid(), kick_signal()));
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    guest_.vcpus()[i]->listen_to_host(std::move(points[i]));
  }
  return {};
}

Result<void> KvmExits::set_breakpoints(PausedMachine&, std::span<const GuestVirt> addresses,
                                       const LoadedAt& loaded_at) {
  const auto locate = [&](GuestVirt at) { return guest_.locate(at, loaded_at); };
  TRY(guest_.breakpoints().replace(addresses, locate));
  for (const auto& vcpu : guest_.vcpus()) TRY(vcpu->arm());
  return {};
}

void KvmExits::sample(std::uint64_t tag) {
  for (const auto& vcpu : guest_.vcpus()) vcpu->ask_sample(tag);
}

std::uint64_t KvmExits::lost_events() const {
  std::uint64_t lost = 0;
  for (const auto& vcpu : guest_.vcpus()) lost += vcpu->lost_events();
  return lost;
}

}  // namespace ringside::vmm::kvm
