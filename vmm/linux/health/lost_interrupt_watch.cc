#include "vmm/linux/health/lost_interrupt_watch.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kStep = kSecond / 50;
/// By how many seconds the guest's wall clock may be wrong before a look is longer for it: a guest
/// begins with the board's clock, which counts whole seconds.
constexpr std::uint64_t kWallError = 3;

bool waits_for_interrupts(const HealthReport& report, std::uint32_t cpu) {
  const auto vcpu =
      std::ranges::find_if(report.vcpus, [&](const VcpuReport& each) { return each.cpu == cpu; });
  if (vcpu == report.vcpus.end()) return report.vcpus.empty();
  return vcpu->mode == VcpuReport::Mode::Kernel && vcpu->is_halted && vcpu->interrupts_on;
}

}  // namespace

HostTime HostTime::real() {
  using namespace std::chrono;
  const auto count = [](auto since) { return static_cast<std::uint64_t>(since.count()); };
  return {[=] { return count(nanoseconds(steady_clock::now().time_since_epoch())); },
          [=] { return count(duration_cast<seconds>(system_clock::now().time_since_epoch())); },
          [](std::uint64_t time) {
            std::this_thread::sleep_for(nanoseconds(static_cast<std::int64_t>(time)));
          }};
}

/// The CPU takes all entries at once, and later ones come in front: the oldest one tells whether it
/// has.
std::optional<GuestVirt> LostInterruptWatch::oldest_call(std::uint32_t cpu) const {
  constexpr std::size_t kMost = 4096;
  std::optional<GuestVirt> oldest;
  auto link = view_.percpu("call_single_queue", cpu);  // llist_head.first, then llist_node.next
  for (std::size_t n = 0; n < kMost; ++n) {
    const auto next = view_.load<std::uint64_t>(link);
    if (!next) return std::nullopt;
    if (*next == 0) return oldest;
    link = oldest = GuestVirt(*next);
  }
  return std::nullopt;
}

LostInterruptWatch::Calls LostInterruptWatch::find_waiting_calls(const HealthReport& report) const {
  Calls calls;
  for (const CpuReport& cpu : report.cpus) {
    if (!cpu.is_idle || !cpu.is_online || !waits_for_interrupts(report, cpu.cpu)) continue;
    if (const auto call = oldest_call(cpu.cpu)) calls.emplace(cpu.cpu, *call);
  }
  return calls;
}

/// Where the guest's wall clock was moved on a moment ago, as time goes here, its clock goes.
std::optional<LostInterruptWatch::Standing> LostInterruptWatch::find_standing_clock(
    const HealthReport& report) const {
  const auto clock = clocks_.monotonic();
  std::optional<std::uint64_t> first;
  for (const CpuReport& cpu : report.cpus) {
    const auto timer = cpu.is_online ? clocks_.next_timer(cpu.cpu) : std::nullopt;
    if (timer && *timer < first.value_or(UINT64_MAX)) first = timer;
  }
  if (!clock || !first) return std::nullopt;
  const std::uint64_t ahead = *first - std::min(*first, *clock);
  if (ahead + kLong > kLongest) return std::nullopt;
  const std::uint64_t here = host_.wall_seconds();
  const auto there = clocks_.wall_seconds();
  const bool goes =
      there && *there <= here + kWallError && here < *there + ahead / kSecond + kWallError;
  return goes ? std::nullopt : std::optional(Standing{*clock, ahead});
}

/// The kinds of entries are CSD_FLAG_TYPE_MASK of u_flags: a call is 0 or 0x10.
std::string LostInterruptWatch::called_function(GuestVirt call) const {
  constexpr std::uint64_t kKinds = 0xf0, kCall = 0x10;
  const auto kind =
      view_.value(call, view_.field("__call_single_data", {"node.u_flags", "u_flags"}));
  const auto function = view_.pointer(call, view_.field("__call_single_data", "func"));
  if (!kind || (*kind & kKinds) > kCall || !function) return {};
  const std::string name = view_.code_name(function->raw());
  return name.ends_with("+0x0") ? name.substr(0, name.size() - 4) : std::string();
}

void LostInterruptWatch::confirm(const Calls& calls, std::uint64_t waited,
                                 HealthReport& report) const {
  for (CpuReport& cpu : report.cpus) {
    const auto call = calls.find(cpu.cpu);
    if (call == calls.end()) continue;
    cpu.call_waits = waited;
    cpu.called_function = called_function(call->second);
  }
}

void LostInterruptWatch::confirm(const Standing& clock, std::uint64_t waited,
                                 HealthReport& report) const {
  report.clock_stands = true;
  for (CpuReport& cpu : report.cpus) {
    const auto timer = cpu.is_online ? clocks_.next_timer(cpu.cpu) : std::nullopt;
    if (timer && *timer < clock.clock + waited) cpu.timer_overdue = clock.clock + waited - *timer;
  }
}

void LostInterruptWatch::watch(HealthReport& report) {
  clocks_.read();
  const std::uint64_t began = host_.now();  // after the clock was read: it is at least that now
  Calls calls = find_waiting_calls(report);
  auto clock = find_standing_clock(report);
  while (!calls.empty() || clock) {
    host_.sleep(kStep);
    const std::uint64_t waited = host_.now() - began;
    forget_();
    clocks_.read();
    if (clock && clocks_.monotonic() != clock->clock) clock.reset();
    std::erase_if(calls, [&](const auto& each) { return oldest_call(each.first) != each.second; });
    if (!calls.empty() && waited >= kLong) {
      confirm(calls, waited, report);
      calls.clear();
    }
    if (clock && waited >= clock->ahead + kLong) {
      confirm(*clock, waited, report);
      clock.reset();
    }
  }
}

}  // namespace ringside::guest_linux
