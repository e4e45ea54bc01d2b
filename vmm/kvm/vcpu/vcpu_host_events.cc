// A vCPU and what KVM's tracepoints tell of it: events of the kinds Cpuid and Hlt.
#include <array>

#include "vmm/kvm/vcpu/vcpu.h"

namespace ringside::vmm::kvm {

using Kind = VcpuEvent::Kind;

int Vcpu::tid() const {
  tid_.wait(0);
  return tid_.load(std::memory_order_acquire);
}

void Vcpu::listen_to_host(std::unique_ptr<VcpuTracepoints> points) {
  const std::lock_guard lock(host_mutex_);
  if (host_) lost_ += host_->lost();
  host_ = std::move(points);
}

std::uint64_t Vcpu::lost_events() const {
  const std::lock_guard lock(host_mutex_);
  return lost_ + (host_ ? host_->lost() : 0);
}

/// Between KVM_RUN and the exit that it brought: what is told here was before that.
void Vcpu::tell_host_events() {
  host_events_.clear();
  {
    const std::lock_guard lock(host_mutex_);
    if (!host_) return;
    const bool kicked = __atomic_load_n(&kvm_.state().immediate_exit, __ATOMIC_SEQ_CST) != 0;
    host_->drain(host_events_, {kicked, [this] { return kvm_.is_halted(); }});
  }
  if (host_events_.empty()) return;
  const std::uint64_t left = left_tsc_;
  const TscOfTime::Moment now = TscOfTime::now();
  for (const HostEvent& event : host_events_) {
    if (!wants(event.event.kind)) continue;
    left_tsc_ = tsc_of_time_.at(event.time, now);
    step_back_to(event.event.kind);
    tell(event.event);
  }
  left_tsc_ = left;
  registers_.reset();
}

/// KVM has moved rip behind the cpuid or the hlt, if nothing else has been executed since.
void Vcpu::step_back_to(Kind kind) {
  constexpr std::array kCpuid{std::byte{0x0f}, std::byte{0xa2}};
  constexpr std::array kHlt{std::byte{0xf4}};
  const std::span<const std::byte> wanted =
      kind == Kind::Cpuid ? std::span<const std::byte>(kCpuid) : kHlt;
  registers_.reset();
  const GuestVirt before(registers().rip - wanted.size());
  std::array<std::byte, 2> code{};
  const auto found = std::span(code).first(wanted.size());
  if (read_code(before, found) != wanted.size()) return;
  if (std::equal(found.begin(), found.end(), wanted.begin())) registers_->rip = before.raw();
}

}  // namespace ringside::vmm::kvm
