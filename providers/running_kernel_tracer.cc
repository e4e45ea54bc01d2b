#include "providers/running_kernel_tracer.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "providers/fbt.h"
#include "providers/fire/host_clock.h"
#include "providers/syscall_provider.h"
#include "providers/tracepoint/function_sites.h"

namespace ringside::providers {
namespace {

/// A notice for each of so many changed places; more than that are summed up in one.
constexpr std::size_t kSingleNotices = 4;
/// How often it is looked whether somebody is still inside of the stub.
constexpr unsigned kLeaveTries = 100;
constexpr auto kLeaveWait = std::chrono::milliseconds(10);

}  // namespace

RunningKernelTracer::RunningKernelTracer(vmm::Machine& machine, guest_linux::Kernel& kernel)
    : machine_(machine),
      kernel_(kernel),
      shim_([this] { return install_shim(machine_, kernel_); }),
      table_(machine, shim_, kernel),
      contexts_(std::max(1U, machine.vcpu_count()), machine.memory(), kernel),
      host_reader_(machine.memory(), kernel.table()),
      dispatcher_(kernel, contexts_),
      points_(machine, shim_, table_, dispatcher_) {
  find_farewell();
}

RunningKernelTracer::~RunningKernelTracer() {
  retire();
}

/// Every way into another kernel without a reset goes through machine_kexec(), also a crash's
/// (arch/x86/kernel/machine_kexec_64.c, since 2.6.13): the other vCPUs are stopped by then, and
/// this one still has its interrupt table.
void RunningKernelTracer::find_farewell() {
  const guest_linux::Symbol* symbol = kernel_.symbols().find("machine_kexec", "vmlinux");
  if (symbol == nullptr) return;  // a kernel without kexec
  const auto site = entry_site(table_.original_text(), *symbol, &kernel_.symbols());
  if (!site)
    return notice("a start of another kernel (kexec) is noticed late: " + site.error().message);
  farewell_ = *site;
  table_.set_farewell(*site);
}

void RunningKernelTracer::add_providers(Registry& registry) {
  registry.add(std::make_unique<SyscallProvider>(table_.original_text(), kernel_, points_));
  registry.add(std::make_unique<FbtProvider>(table_.original_text(), kernel_, points_));
}

std::optional<std::uint32_t> RunningKernelTracer::tsc_khz() const {
  const guest_linux::Symbol* symbol = kernel_.symbols().find("tsc_khz", "vmlinux");
  if (symbol == nullptr) return std::nullopt;
  const vmm::PageTableReader reader(machine_.memory(), kernel_.table());
  const auto khz = load<std::uint32_t>(reader, symbol->address);
  return khz ? std::optional(*khz) : std::nullopt;
}

void RunningKernelTracer::load_stack_tables() {
  stack_tables_ = guest_linux::StackTables::load(host_reader_, kernel_);
  stack_tables_->set_moved(moved());
  for (LinuxContext& context : contexts_) {
    context.set_stack_tables(&*stack_tables_);
  }
}

std::vector<guest_linux::StackTables::Moved> RunningKernelTracer::moved() const {
  std::vector<guest_linux::StackTables::Moved> moved;
  for (const auto& slot : table_.slots()) {
    moved.push_back({slot.begin, slot.size, slot.address, slot.length});
  }
  return moved;
}

/// Before anybody runs in a slot that is new. No firing may follow a stack meanwhile, hence in all
/// turns at once.
void RunningKernelTracer::refresh_moved() {
  if (!stack_tables_ || table_.slots().size() == slots_told_) return;
  slots_told_ = table_.slots().size();
  auto fresh = moved();
  std::vector<std::unique_lock<dif::BriefLock>> turns;
  for (unsigned vcpu = 0; vcpu < contexts_.size(); ++vcpu) turns.emplace_back(sink_->turn(vcpu));
  stack_tables_->set_moved(std::move(fresh));
}

void RunningKernelTracer::prepare(ProbeSink& sink, GuestClock& clock, FireLoopParts& parts,
                                  bool stacks) {
  dispatcher_.begin(sink, clock);
  sink_ = &sink;
  clock_ = &clock;
  if (farewell_ && table_.size() != 0) {
    const auto site = table_.examine(*farewell_);
    const auto added = site ? table_.add(*site) : tl::make_unexpected(site.error());
    if (!added) {
      notice("a start of another kernel (kexec) is noticed late: " + added.error().message);
    }
  }
  if (stacks) load_stack_tables();
  for (LinuxContext& context : contexts_) {
    context.set_shim(shim_.installed());
  }
  parts.kernel = &host_reader_;
  parts.first_task = first_task(kernel_);
  parts.look_again = [this] { host_reader_.forget(); };
  if (table_.size() == 0) return;
  // What it does not know by now it will not know at the end either, and then says so.
  if (auto prepared = guest_linux::Occupants::prepare(kernel_)) occupants_ = std::move(*prepared);
  parts.shim = shim_.installed();
  parts.dispatcher = &dispatcher_;
  parts.upkeep = [this] { upkeep(); };
}

Result<void> RunningKernelTracer::arm() {
  if (table_.size() == 0) return {};
  orphans_before_ = shim_.counters().orphans;
  armed_ = true;  // even if it fails half-way: disarm() restores what was written
  return points_.arm();
}

Result<void> RunningKernelTracer::begin_to_add() {
  if (!armed_) {
    return fail(ErrorCode::Unsupported,
                "no probe of the kernel's code was enabled when tracing began, so none can be now: "
                "begin with one");
  }
  look_again();
  return {};
}

Result<void> RunningKernelTracer::arm_added() {
  refresh_moved();
  const std::uint64_t began = host_tsc();
  auto done = points_.arm_added();
  note_pause(began);
  return done;
}

Result<void> RunningKernelTracer::remove(std::span<const dif::ProbeId> probes) {
  if (!armed_) return {};
  const std::uint64_t began = host_tsc();
  auto done = points_.remove(probes);
  note_pause(began);
  return done;
}

/// The guest's TSC may have stood still for a moment since then.
void RunningKernelTracer::note_pause(std::uint64_t began) {
  clock_->paused_between(began, host_tsc());
}

void RunningKernelTracer::disarm() {
  if (!std::exchange(armed_, false)) return;
  const auto done = points_.disarm();
  if (!done && !loss()) notice(done.error().message);
}

void RunningKernelTracer::retire() {
  if (shim_.installed() == nullptr || table_.any_armed() || std::exchange(retired_, true)) return;
  {
    auto paused = vmm::PausedMachine::pause(machine_);
    if (!paused) return;
    if (const auto done = shim_.retire(*paused); !done) return notice(done.error().message);
  }
  if (auto stays = leave(); !stays) {
    notice(fmt::format("the stub stays in {} pages of the guest's memory, and does nothing: {}",
                       shim_.place().bytes / arch::kPageSize, stays.error().message));
  }
}

/// Whoever is inside is let go on for a moment, several times.
Result<void> RunningKernelTracer::leave() {
  if (!occupants_) occupants_ = TRY(guest_linux::Occupants::prepare(kernel_));
  const vmm::ShimPlace place = shim_.place();
  const auto code = guest_linux::Kernel::AddressRange::of(place.base, place.bytes);
  Result<void> stays;
  for (unsigned n = 0; n < kLeaveTries; ++n) {
    if (n > 0) std::this_thread::sleep_for(kLeaveWait);
    auto paused = vmm::PausedMachine::pause(machine_);
    if (!paused) {
      const bool ended = paused.error().code == ErrorCode::MachineGone;
      return ended ? Result<void>() : tl::make_unexpected(paused.error());
    }
    host_reader_.forget();
    const auto inside = occupants_->find(*paused, host_reader_, kernel_, code);
    if (inside && !*inside) return shim_.remove(*paused);
    stays = inside ? fail(ErrorCode::Invalid, fmt::format("{} is inside", **inside))
                   : tl::make_unexpected(inside.error());
  }
  return stays;
}

std::optional<std::string> RunningKernelTracer::loss() const {
  switch (shim_.state()) {
    case vmm::ShimState::There:
    case vmm::ShimState::Retired: return std::nullopt;
    case vmm::ShimState::GuestLeft:
      return "the guest has started another kernel (kexec), which is not traced";
    case vmm::ShimState::Overwritten: break;
  }
  return "the guest has overwritten the shim; if it has started another kernel, that one is not "
         "traced";
}

std::uint64_t RunningKernelTracer::lost_firings() const {
  return shim_.counters().orphans - orphans_before_;
}

void RunningKernelTracer::upkeep() {
  if (shim_.state() != vmm::ShimState::There) return;  // that text is another kernel's
  std::vector<GuestVirt> changed = table_.drop_changed();
  if (changed.empty()) return;
  const std::lock_guard lock(notices_lock_);
  changed_.insert(changed_.end(), changed.begin(), changed.end());
}

void RunningKernelTracer::notice(std::string text) {
  const std::lock_guard lock(notices_lock_);
  notices_.push_back(std::move(text));
}

std::vector<std::string> RunningKernelTracer::take_notices() {
  std::vector<GuestVirt> changed;
  std::vector<std::string> notices;
  {
    const std::lock_guard lock(notices_lock_);
    changed.swap(changed_);
    notices.swap(notices_);
  }
  // Named here and not in upkeep(): the symbols belong to the session's thread.
  const std::size_t singly = changed.size() <= kSingleNotices ? changed.size() : 1;
  for (std::size_t n = 0; n < singly; ++n) {
    notices.push_back(fmt::format("the guest changed its code at {}; the probe there is gone",
                                  kernel_.symbols().describe(changed[n])));
  }
  if (changed.size() > singly) {
    notices.push_back(
        fmt::format("the guest changed its code at {} more probed places (a module "
                    "was unloaded?); the probes there are gone",
                    changed.size() - singly));
  }
  return notices;
}

}  // namespace ringside::providers
