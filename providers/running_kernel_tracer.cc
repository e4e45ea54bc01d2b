// In this file, top to bottom: the trace of a running kernel; its tracer: set-up, the end, notices.
#include "providers/running_kernel_tracer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "providers/context/linux_contexts.h"
#include "providers/fbt.h"
#include "providers/fire/dispatch.h"
#include "providers/fire/host_clock.h"
#include "providers/instr.h"
#include "providers/leave.h"
#include "providers/syscall_provider.h"

namespace ringside::providers {
namespace {

using guest_linux::StackTables;

/// A notice for each of so many changed places; more than that are summed up in one.
constexpr std::size_t kSingleNotices = 4;
/// How often it is looked whether somebody is still inside of the stub.
constexpr LeaveTries kLeaveTries{.anywhere = 100, .in_slots = 100};

std::vector<StackTables::Moved> moved_by(const TracepointTable& table) {
  std::vector<StackTables::Moved> moved;
  for (const auto& slot : table.slots()) {
    moved.push_back({slot.begin, slot.size, slot.address, slot.length});
  }
  return moved;
}

}  // namespace

/// Threads: the session's, but for upkeep() (the fire thread's) and the dispatcher.
class RunningKernelTracer::Trace final : public KernelTrace {
 public:
  Trace(RunningKernelTracer& tracer, ProbeSink& sink, GuestClock& clock, Stacks stacks)
      : tracer_(tracer),
        sink_(sink),
        host_reader_(tracer.machine_.memory(), tracer.kernel_.table()),
        stack_tables_(load_stack_tables(stacks)),
        contexts_(std::max(1U, tracer.machine_.vcpu_count()), tracer.machine_.memory(),
                  tracer.kernel_,
                  LinuxContextParts{.stack_tables = stack_tables_ ? &*stack_tables_ : nullptr,
                                    .shim = tracer.shim_.installed()}),
        dispatcher_(tracer.kernel_, contexts_, sink, clock, tracer.points_.take_first()) {}
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace() override { disarm(); }

  KernelTraps traps() override {
    KernelTraps traps{
        .view = {&host_reader_, first_task(tracer_.kernel_), [this] { host_reader_.forget(); }},
        .inside = {tracer_.kernel_, contexts_}};
    if (tracer_.table_.size() == 0) return traps;
    traps.shim.emplace(ShimTraps{*tracer_.shim_.installed(), dispatcher_});
    traps.gates.push_back(&dispatcher_);
    traps.upkeep = [this] { upkeep(); };
    return traps;
  }

  Result<void> arm() override {
    if (tracer_.table_.size() == 0) return {};
    orphans_before_ = tracer_.shim_.counters().orphans;
    armed_ = true;  // even if it fails half-way: disarm() restores what was written
    return tracer_.points_.arm();
  }
  Result<void> arm_added() override {
    refresh_moved();
    return armed_ ? tracer_.points_.arm_added(dispatcher_) : Result<void>();
  }
  void abandon_added() override { tracer_.points_.abandon_added(); }
  Result<void> remove(std::span<const dif::ProbeId> probes) override {
    return armed_ ? tracer_.points_.remove(dispatcher_, probes) : Result<void>();
  }
  void disarm() override {
    if (!std::exchange(armed_, false)) return;
    const auto done = tracer_.points_.disarm();
    if (!done && !tracer_.loss()) tracer_.notice(done.error().message);
  }
  std::uint64_t lost_firings() const override {
    return tracer_.shim_.counters().orphans - orphans_before_;
  }

 private:
  std::optional<StackTables> load_stack_tables(Stacks stacks) {
    if (stacks == Stacks::Unused) return std::nullopt;
    std::optional<StackTables> tables = StackTables::load(host_reader_, tracer_.kernel_);
    tables->set_moved(moved_by(tracer_.table_));
    slots_told_ = tracer_.table_.slots().size();
    return tables;
  }

  /// Before anybody runs in a slot that is new. No firing may follow a stack meanwhile, hence in
  /// all turns at once.
  void refresh_moved() {
    const std::size_t slots = tracer_.table_.slots().size();
    if (!stack_tables_ || slots == std::exchange(slots_told_, slots)) return;
    auto fresh = moved_by(tracer_.table_);
    std::vector<std::unique_lock<dif::BriefLock>> turns;
    for (unsigned vcpu = 0; vcpu < contexts_.size(); ++vcpu) turns.emplace_back(sink_.turn(vcpu));
    stack_tables_->set_moved(std::move(fresh));
  }

  void upkeep() {
    if (tracer_.shim_.state() != vmm::ShimState::There) return;  // that text is another kernel's
    tracer_.note_changed(tracer_.table_.drop_changed());
  }

  RunningKernelTracer& tracer_;
  ProbeSink& sink_;
  std::size_t slots_told_ = 0;  // to the stack tables
  vmm::PageTableReader host_reader_;
  std::optional<StackTables> stack_tables_;  // only if a stack may be followed
  LinuxContexts contexts_;
  TrapDispatcher dispatcher_;
  bool armed_ = false;
  std::uint64_t orphans_before_ = 0;
};

RunningKernelTracer::RunningKernelTracer(vmm::Machine& machine, guest_linux::Kernel& kernel)
    : machine_(machine),
      kernel_(kernel),
      shim_([this] { return install_shim(machine_, kernel_); }),
      table_(machine, shim_, kernel),
      points_(machine, shim_, table_) {
  if (const auto& farewell = table_.farewell(); !farewell) {
    notice("a start of another kernel (kexec) is noticed late: " + farewell.error().message);
  }
}

RunningKernelTracer::~RunningKernelTracer() {
  retire();
}

void RunningKernelTracer::add_providers(Registry& registry) {
  registry.add(std::make_unique<SyscallProvider>(table_.original_text(), kernel_, points_));
  registry.add(std::make_unique<FbtProvider>(table_.original_text(), kernel_, points_));
}

void RunningKernelTracer::add_wide_providers(Registry& registry) {
  registry.add(std::make_unique<InstrProvider>(table_.original_text(), kernel_, points_));
}

std::optional<std::uint32_t> RunningKernelTracer::tsc_khz() const {
  const guest_linux::Symbol* symbol = kernel_.symbols().find("tsc_khz", "vmlinux");
  if (symbol == nullptr) return std::nullopt;
  const vmm::PageTableReader reader(machine_.memory(), kernel_.table());
  const auto khz = load<std::uint32_t>(reader, symbol->address);
  return khz ? std::optional(*khz) : std::nullopt;
}

std::unique_ptr<KernelTrace> RunningKernelTracer::begin(ProbeSink& sink, GuestClock& clock,
                                                        Stacks stacks) {
  const auto& farewell = table_.farewell();
  const bool traps = table_.size() != 0;
  if (traps && farewell && *farewell) {
    const auto site = table_.examine(**farewell);
    const auto added = site ? table_.add(*site) : tl::make_unexpected(site.error());
    if (!added) {
      notice("a start of another kernel (kexec) is noticed late: " + added.error().message);
    }
  }
  if (traps) {
    // If this fails it will fail at the end, too, and say why.
    if (auto prepared = guest_linux::Occupants::prepare(kernel_)) occupants_ = std::move(*prepared);
  }
  return std::make_unique<Trace>(*this, sink, clock, stacks);
}

void RunningKernelTracer::retire() {
  if (table_.any_armed() || std::exchange(retired_, true)) return;
  if (shim_.installed() != nullptr && !take_out_shim()) return;
  if (const auto given = machine_.give_back_reserved(); !given) notice(given.error().message);
}

bool RunningKernelTracer::take_out_shim() {
  {
    auto paused = vmm::PausedMachine::pause(machine_);
    if (!paused) return false;
    if (const auto done = shim_.retire(*paused); !done) {
      notice(done.error().message);
      return false;
    }
  }
  if (auto stays = leave(); !stays) {
    notice(fmt::format("the stub stays in {} pages of the guest's memory, and does nothing: {}; "
                       "the next ringside uses it again, or takes it out",
                       shim_.place().bytes / arch::kPageSize, stays.error().message));
    return false;
  }
  return true;
}

Result<void> RunningKernelTracer::leave() {
  if (!occupants_) occupants_ = TRY(guest_linux::Occupants::prepare(kernel_));
  return remove_when_empty(machine_, kernel_, *occupants_, shim_.place(), kLeaveTries,
                           [this](vmm::PausedMachine& paused) { return shim_.remove(paused); });
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

void RunningKernelTracer::notice(std::string text) {
  const std::lock_guard lock(notices_lock_);
  notices_.push_back(std::move(text));
}

void RunningKernelTracer::note_changed(const std::vector<GuestVirt>& places) {
  if (places.empty()) return;
  const std::lock_guard lock(notices_lock_);
  changed_.insert(changed_.end(), places.begin(), places.end());
}

std::vector<std::string> RunningKernelTracer::take_notices() {
  std::vector<GuestVirt> changed;
  std::vector<std::string> notices;
  {
    const std::lock_guard lock(notices_lock_);
    changed.swap(changed_);
    notices.swap(notices_);
  }
  // Named here and not when they were noted: the symbols belong to the session's thread.
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
