// In this file, top to bottom: the trace of a running kernel; its tracer: set-up, the end, notices.
#include "providers/tracer/running_kernel_tracer.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "providers/cleanup/leave.h"
#include "providers/clock/host_clock.h"
#include "providers/context/linux_context.h"
#include "providers/dispatch/dispatch.h"
#include "providers/functions/fbt.h"
#include "providers/functions/syscall_provider.h"
#include "providers/instr/instr.h"
#include "providers/pid/pid_provider.h"
#include "providers/pid/usdt_provider.h"
#include "providers/sdt/sdt.h"
#include "providers/stable/stable_provider.h"
#include "providers/tracer/fetch_planner.h"
#include "vmm/linux/kernel_variables.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/shim_facts.h"
#include "vmm/linux/stacks/stack_tables.h"

namespace ringside::providers {
namespace {

using guest_linux::StackTables;
using LateModule = guest_linux::Kernel::LateModule;

/// For records that CPUs write when probes are taken out, as ProbeArmer waits for late traps.
constexpr auto kLateRecords = std::chrono::seconds(2);
constexpr auto kLateRecordWait = std::chrono::microseconds(100);
/// A notice for each of so many changed places; more than that are summed up in one.
constexpr std::size_t kSingleNotices = 4;
/// How often it is looked whether somebody is still inside of the stub.
constexpr LeaveTries kLeaveTries{.anywhere = 100, .in_slots = 100, .up_to = EndOrder::Hurried};
/// The same while a fault may have to be mended: a page comes from a disk, say.
constexpr LeaveTries kFaultTries{.anywhere = 1000, .in_slots = 1000, .up_to = EndOrder::Hurried};

std::vector<StackTables::Moved> moved_by(const TrapPointTable& table) {
  std::vector<StackTables::Moved> moved;
  for (const auto& slot : table.slots()) {
    moved.push_back({slot.begin, slot.size, slot.address, slot.length, slot.words});
  }
  return moved;
}

}  // namespace

/// Threads: the session's, but for upkeep() (the fire thread's) and the dispatcher.
class RunningKernelTracer::Trace final : public KernelTrace {
 public:
  Trace(RunningKernelTracer& tracer, ProbeSink& sink, GuestClock& clock, const Wants& wants)
      : tracer_(tracer),
        sink_(sink),
        host_reader_(tracer.machine_.memory(), tracer.kernel_.table()),
        orc_layout_(guest_linux::OrcLayout::from(tracer.kernel_.types())),
        stack_tables_(load_stack_tables(wants.stacks)),
        contexts_(std::max({1U, tracer.machine_.vcpu_count(), tracer.possible_cpus()}),
                  tracer.machine_.memory(), tracer.kernel_,
                  LinuxContextParts{.stack_tables = stack_tables_ ? &*stack_tables_ : nullptr,
                                    .shim = tracer.shim_.installed(),
                                    .host_tables = tracer.host_tables()}),
        first_(tracer.points_.take_first()),
        dispatcher_(tracer.kernel_, contexts_, sink, clock, first_) {
    make_handlers(dispatcher_);
    if (wants.record_needs) record(wants, clock);
  }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace() override { disarm(); }

  KernelTraps traps() override {
    KernelTraps traps{
        .view = {&host_reader_, first_task(tracer_.kernel_),
                 guest_linux::LinuxPaths(tracer_.kernel_.types()),
                 guest_linux::LinuxPackets(tracer_.kernel_.types(), tracer_.kernel_.symbols()),
                 LinuxLocks(tracer_.kernel_.types()), [this] { host_reader_.forget(); }},
        .inside = {tracer_.kernel_, contexts_}};
    if (!tracer_.has_points()) return traps;
    traps.shim.emplace(ShimTraps{*tracer_.shim_.installed(), *handlers_});
    traps.replay = replay_ ? &*replay_ : nullptr;
    // Stacks of interrupts are not recorded, nor are all modules that come later.
    traps.expects_waits = !replay_ || obstacle_ || stack_tables_ || tracer_.modules_;
    traps.gates.push_back(&dispatcher_);
    traps.upkeep = [this] { return upkeep(); };
    return traps;
  }

  std::optional<std::string> recording_obstacle() const override { return obstacle_; }

  Result<void> arm() override {
    if (!tracer_.has_points()) return {};
    counters_before_ = tracer_.counters();
    displaced_before_ = tracer_.displaced();
    armed_ = true;  // even if it fails half-way: disarm() restores what was written
    TRY(tracer_.points_.arm());
    began_ = true;
    return {};
  }
  Result<void> arm_added() override {
    refresh_moved();
    TRY(watch_added_files());
    TRY(record_added());
    if (replay_) replay_->empty_rings();  // what has passed the new places fires without them
    const auto wait = taken_ ? ProbeArmer::WaitFor::QuietKprobes : ProbeArmer::WaitFor::QuietText;
    return armed_ ? tracer_.points_.arm_added(dispatcher_, wait) : Result<void>();
  }
  void abandon_added() override { tracer_.points_.abandon_added(); }
  int modules_fd() const override { return tracer_.modules_ ? tracer_.modules_->event_fd() : -1; }
  std::optional<LateModule> take_module() override;
  bool let_go(const LateModule& module) override {
    taken_ = false;
    return tracer_.modules_->let_go(module.structure);
  }
  Result<void> remove(std::span<const dif::ProbeId> probes) override {
    if (!armed_) return {};
    if (replay_) replay_->empty_rings();  // what has passed them has fired before
    auto done = tracer_.points_.remove(dispatcher_, probes);
    if (replay_) await_records();
    return done;
  }
  void disarm() override {
    if (tracer_.modules_) tracer_.modules_->end();
    if (!std::exchange(armed_, false)) return;
    armed_at_end_ = tracer_.armed();
    recording_at_end_ = tracer_.table_.recording();
    jumps_at_end_ = tracer_.table_.jumps();
    auto done = tracer_.points_.disarm();
    if (tracer_.hibernation_) tracer_.hibernation_->end();
    tracer_.end_user_slots();
    if (done) done = tracer_.end_fault_search();
    if (began_) note_changed();  // what has changed since the last time is told, too
    if (!done && !tracer_.loss()) tracer_.notice(done.error().message);
  }
  const TrapDispatcher* limited() const override { return armed_ ? &dispatcher_ : nullptr; }
  KernelStatistics statistics() const override {
    const std::uint64_t forgotten =  // once: it goes on growing
        tracer_.displaced() - displaced_before_ + dispatcher_.counters().lost_returns;
    const vmm::ShimCounters counters = tracer_.counters();
    const std::uint64_t orphans = counters.orphans - counters_before_.orphans;
    const std::uint64_t dropped = counters.dropped - counters_before_.dropped;
    const std::uint64_t spoiled = counters.spoiled - counters_before_.spoiled;
    return {.armed = armed_ ? tracer_.armed() : armed_at_end_,
            .recording = armed_ ? tracer_.table_.recording() : recording_at_end_,
            .jumps = armed_ ? tracer_.table_.jumps() : jumps_at_end_,
            .misses = orphans + forgotten + dropped + spoiled,
            .dropped = dropped,
            .drop_span = replay_ ? replay_->drop_span() : Replay::DropSpan(),
            .spoiled = spoiled,
            .forgotten = forgotten,
            .unfired = dispatcher_.counters().no_point,
            .retired = tracer_.retired_places_.load(std::memory_order_relaxed),
            .recorded = dispatcher_.tally().recorded(),
            .unwanted = counters.unwanted - counters_before_.unwanted,
            .waits = dispatcher_.tally().histogram(),
            .why_waiting = why_waiting_};
  }

 private:
  std::optional<StackTables> load_stack_tables(bool wanted) {
    if (!wanted) return std::nullopt;
    std::optional<StackTables> tables =
        guest_linux::load_stack_tables(host_reader_, tracer_.kernel_);
    tables->set_moved(moved_by(tracer_.table_));
    slots_told_ = tracer_.table_.slots().size();
    return tables;
  }

  void make_handlers(vmm::TrapSink& sink);
  static void add_process(dif::RecordNeeds& needs, std::int32_t process);
  Result<void> record_at(std::span<const GuestVirt> places, std::uint8_t list);
  Result<void> watch_added_files();
  void add_watched_files(std::map<GuestVirt, vmm::FetchList>& recording);
  using ByPlace = std::map<GuestVirt, std::vector<const Binding*>>;
  static ByPlace by_place(std::span<const DispatchTable::EnabledBinding> bound);
  std::optional<std::string> why_waits(GuestVirt at, std::span<const Binding* const> bindings,
                                       vmm::FetchList& list) const;
  void record(const Wants& wants, GuestClock& clock);
  std::optional<std::uint8_t> number_of(const vmm::FetchList& list) const;
  Result<std::uint8_t> find_list(GuestVirt at, std::span<const Binding* const> bindings,
                                 vmm::FetchList& list) const;
  Result<void> record_added();
  Result<void> record_added(GuestVirt at, std::span<const Binding* const> bindings);
  void await_records() const;
  void note_waiting(std::string why, std::uint64_t places = 1);
  void note_late(const std::string& why);
  std::uint64_t waiting_places() const;
  std::map<GuestVirt, vmm::FetchList> find_recording();
  std::vector<vmm::FetchList> tell_lists(std::map<GuestVirt, vmm::FetchList>& recording);
  std::vector<vmm::FetchList> number_lists(std::map<GuestVirt, vmm::FetchList>& recording);
  bool drop_checks(std::map<GuestVirt, vmm::FetchList>& recording) const;
  void let_wait(std::map<GuestVirt, vmm::FetchList>& recording, const vmm::FetchList& list,
                std::string why);
  Result<void> set_lists(const std::vector<vmm::FetchList>& lists, bool uses_default);

  /// Before anybody runs in a slot that is new.
  void refresh_moved() {
    const std::size_t slots = tracer_.table_.slots().size();
    if (!stack_tables_ || slots == std::exchange(slots_told_, slots)) return;
    auto fresh = moved_by(tracer_.table_);
    change_stack_tables([&] { stack_tables_->set_moved(std::move(fresh)); });
  }

  /// No firing may follow a stack meanwhile.
  template <class Change>
  void change_stack_tables(Change change) {
    std::vector<std::unique_lock<BriefLock>> locks;
    for (unsigned vcpu = 0; vcpu < contexts_.size(); ++vcpu)
      locks.emplace_back(sink_.firing_lock(vcpu));
    change();
  }

  bool upkeep() {
    // Else that text is another kernel's.
    if (tracer_.shim_.state() != vmm::ShimState::There) return false;
    const bool soon = tracer_.kprobes_->catch_up();
    tracer_.tend_files();
    note_changed();
    return soon;
  }

  void note_changed() {
    if (tracer_.shim_.state() != vmm::ShimState::There) return;
    tracer_.note_changed(tracer_.table_.drop_changed());
  }

  RunningKernelTracer& tracer_;
  ProbeSink& sink_;
  std::size_t slots_told_ = 0;  // to the stack tables
  vmm::PageTableReader host_reader_;
  const guest_linux::OrcLayout orc_layout_;  // the kernel's types are gone later
  std::optional<StackTables> stack_tables_;  // only if a stack may be followed
  LinuxContexts contexts_;
  const DispatchTable::Change first_;
  TrapDispatcher dispatcher_;
  std::optional<Replay> replay_;               // where traps are recorded
  std::optional<vmm::TrapHandlers> handlers_;  // the dispatcher or the replay, and the watches
  std::function<dif::RecordNeeds(dif::ProbeId, dif::EntryArguments)> record_needs_;  // Wants'
  std::optional<GuestVirt> run_queues_;           // KernelOffsets'
  std::optional<guest_linux::PathLayout> paths_;  // likewise
  std::set<GuestVirt> watched_files_;             // by inode
  std::vector<vmm::FetchList> lists_;             // that the guest has, from 1 on
  std::optional<std::string> obstacle_;           // recording_obstacle()
  std::map<std::string, std::uint64_t> why_waiting_;
  std::set<GuestVirt> late_waiting_;  // places that came later, and count in it
  bool armed_ = false, began_ = false;
  bool taken_ = false;                  // a module waits for us
  std::uint64_t armed_at_end_ = 0;      // how many places were, before disarm()
  std::uint64_t recording_at_end_ = 0;  // of those
  std::uint64_t jumps_at_end_ = 0;      // of those
  vmm::ShimCounters counters_before_;   // when it was armed
  std::uint64_t displaced_before_ = 0;  // the same
};

void RunningKernelTracer::Trace::make_handlers(vmm::TrapSink& sink) {
  handlers_.emplace(sink);
  if (tracer_.kprobes_) tracer_.kprobes_->add_to(*handlers_);
  if (tracer_.modules_) tracer_.modules_->add_to(*handlers_);
  if (tracer_.hardware_) tracer_.hardware_->add_to(*handlers_);
  if (tracer_.files_) tracer_.files_->add_to(*handlers_);
  if (tracer_.pages_) tracer_.pages_->add_to(*handlers_);
  if (tracer_.hibernation_) tracer_.hibernation_->add_to(*handlers_);
}

/// A probe of one process does nothing in others.
void RunningKernelTracer::Trace::add_process(dif::RecordNeeds& needs, std::int32_t process) {
  constexpr dif::RecordValue kPid{
      .source = dif::RecordValue::Source::Pid, .bytes = sizeof(std::int32_t), .is_signed = true};
  needs.ids = true;
  needs.checks.push_back({kPid, dif::RecordCheck::Relation::Equal, false,
                          static_cast<std::uint64_t>(std::int64_t{process})});
}

/// Where the guest leaves its kernel the trap waits: the answer to it is our last write.
std::optional<std::string> RunningKernelTracer::Trace::why_waits(
    GuestVirt at, std::span<const Binding* const> bindings, vmm::FetchList& list) const {
  const auto& kexec_site = tracer_.table_.kexec_site();
  const bool is_ours =
      !handlers_->watches_at(at).empty() || (kexec_site && *kexec_site && **kexec_site == at);
  if (is_ours) return "a probe stands where ringside waits for the guest itself";
  std::vector<PlacedProbe> probes;
  for (const Binding* binding : bindings) {
    const auto entrys =
        binding->plan->kept.any() ? dif::EntryArguments::Kept : dif::EntryArguments::Gone;
    probes.push_back({binding, record_needs_(binding->probe, entrys)});
    if (binding->process != 0) add_process(probes.back().needs, binding->process);
  }
  return plan_fetch(list, probes, {tracer_.kernel_.layout(), run_queues_, paths_});
}

RunningKernelTracer::Trace::ByPlace RunningKernelTracer::Trace::by_place(
    std::span<const DispatchTable::EnabledBinding> bound) {
  ByPlace places;
  for (const auto& one : bound) places[one.at].push_back(&one.binding);
  return places;
}

/// By address; all that stand at one record, or all wait.
std::map<GuestVirt, vmm::FetchList> RunningKernelTracer::Trace::find_recording() {
  std::map<GuestVirt, vmm::FetchList> recording;
  for (const auto& [at, bindings] : by_place(first_.added)) {
    vmm::FetchList list;
    if (auto why = why_waits(at, bindings, list)) {
      note_waiting(std::move(*why));
    } else {
      recording.emplace(at, std::move(list));
    }
  }
  return recording;
}

std::uint64_t RunningKernelTracer::Trace::waiting_places() const {
  std::uint64_t places = 0;
  for (const auto& one : why_waiting_) places += one.second;
  return places;
}

void RunningKernelTracer::Trace::note_waiting(std::string why, std::uint64_t places) {
  if (!obstacle_) obstacle_ = why;
  why_waiting_[std::move(why)] += places;
}

/// Each list once. There are numbers for SHIM_LISTS - 1. If there are more lists, predicates are
/// left to the host; then the lists get numbers that most places share, and the places of all
/// others wait.
std::vector<vmm::FetchList> RunningKernelTracer::Trace::number_lists(
    std::map<GuestVirt, vmm::FetchList>& recording) {
  std::vector<std::pair<std::size_t, vmm::FetchList>> counted;
  for (const auto& place : recording) {
    const vmm::FetchList& list = place.second;
    if (list.is_default()) continue;
    const auto is_list = [&list](const auto& one) { return one.second == list; };
    const auto found = std::ranges::find_if(counted, is_list);
    found != counted.end() ? void(++found->first) : void(counted.emplace_back(1, list));
  }
  if (counted.size() >= SHIM_LISTS && drop_checks(recording)) return number_lists(recording);
  std::ranges::stable_sort(counted, std::ranges::greater(),
                           [](const auto& one) { return one.first; });
  std::vector<vmm::FetchList> lists;
  for (auto& [places, list] : counted) {
    if (lists.size() + 1 < SHIM_LISTS) {
      lists.push_back(std::move(list));
    } else {
      let_wait(recording, list, "other probes look at other memory, and 127 kinds are the most");
    }
  }
  return lists;
}

void RunningKernelTracer::Trace::let_wait(std::map<GuestVirt, vmm::FetchList>& recording,
                                          const vmm::FetchList& list, std::string why) {
  const auto has_it = [&list](const auto& one) { return one.second == list; };
  note_waiting(std::move(why), std::erase_if(recording, has_it));
}

/// Leaves all predicates to the host; false where there is none in the guest.
bool RunningKernelTracer::Trace::drop_checks(std::map<GuestVirt, vmm::FetchList>& recording) const {
  bool any = false;
  for (auto& [at, list] : recording) {
    const bool is_watched = (tracer_.files_ && tracer_.files_->is_place(at)) ||
                            (tracer_.pages_ && tracer_.pages_->is_place(at));  // by checks alone
    if (!is_watched) any |= list.drop_checks();
  }
  return any;
}

/// Tells the guest the lists, and returns them by number. If they do not fit, predicates are left
/// to the host; then the places with the longest list wait, and the rest is tried again.
std::vector<vmm::FetchList> RunningKernelTracer::Trace::tell_lists(
    std::map<GuestVirt, vmm::FetchList>& recording) {
  auto lists = number_lists(recording);
  while (!lists.empty()) {
    // Places that come later may need it.
    const bool uses_default =
        tracer_.modules_ ||
        std::ranges::any_of(recording, [](const auto& place) { return place.second.is_default(); });
    const auto told = set_lists(lists, uses_default);
    if (told) return lists;
    if (drop_checks(recording)) {
      lists = number_lists(recording);
      continue;
    }
    const auto longest = std::ranges::max_element(lists, {}, &vmm::FetchList::least_record_bytes);
    let_wait(recording, *longest, told.error().message);
    lists.erase(longest);
    // Small records again, for the places that copy nothing.
    if (lists.empty()) (void)set_lists({}, true);
  }
  return lists;
}

Result<void> RunningKernelTracer::Trace::set_lists(const std::vector<vmm::FetchList>& lists,
                                                   bool uses_default) {
  const auto facts = guest_linux::find_fetch_facts(tracer_.machine_.memory(), tracer_.kernel_);
  return tracer_.shim_.installed()->set_fetch_lists(facts, lists, uses_default);
}

/// Where a probe stands, too, it has to see all traps, and so all wait.
void RunningKernelTracer::Trace::add_watched_files(std::map<GuestVirt, vmm::FetchList>& recording) {
  const ByPlace bound = by_place(first_.added);
  const std::vector<GuestVirt> inodes = tracer_.users_.inodes();
  const auto add = [&](const std::map<GuestVirt, vmm::FetchList>& lists) {
    for (const auto& [at, list] : lists) {
      if (!bound.contains(at)) recording.emplace(at, list);
    }
  };
  watched_files_.insert(inodes.begin(), inodes.end());
  add(tracer_.files_->lists(inodes));
  if (tracer_.pages_) add(tracer_.pages_->lists(inodes));
}

/// Before their int3s stand.
Result<void> RunningKernelTracer::Trace::watch_added_files() {
  if (tracer_.users_.size() == 0) return {};
  for (const GuestVirt inode : tracer_.users_.inodes()) {
    if (!watched_files_.insert(inode).second) continue;
    if (auto done = tracer_.shim_.installed()->add_waited_for(inode); !done) {
      tracer_.points_.abandon_added();
      return done;
    }
  }
  return {};
}

void RunningKernelTracer::Trace::record(const Wants& wants, GuestClock& clock) {
  if (!tracer_.has_points()) return;
  if (tracer_.shim_.ring_count() == 0) {
    return note_waiting("the memory for the stub has no room for rings beside so many probes",
                        tracer_.table_.size());
  }
  record_needs_ = wants.record_needs;
  run_queues_ = ThreadClock::run_queues(tracer_.kernel_);
  paths_ = guest_linux::PathLayout::from(tracer_.kernel_.types());
  auto recording = find_recording();
  if (tracer_.files_) add_watched_files(recording);
  lists_ = tell_lists(recording);
  // A trap that waits takes longer where others are recorded, since those before it fire first.
  if (recording.size() < waiting_places()) {
    if (recording.empty()) return;
    return note_waiting("most of the program's places have to wait, and so all do",
                        recording.size());
  }
  if (recording.empty() && !tracer_.modules_) return;
  vmm::Shim& shim = *tracer_.shim_.installed();
  replay_.emplace(shim, shim.rings(), dispatcher_, clock);
  shim.let_full_rings_wait(wants.full_rings_wait);
  dispatcher_.keep_one_order();
  make_handlers(*replay_);
  std::map<std::uint8_t, std::vector<GuestVirt>> places;  // by the list's number
  for (const auto& [at, list] : recording) {
    places[*number_of(list)].push_back(at);
  }
  for (const auto& [number, at] : places) {
    if (const auto done = record_at(at, number); !done) {
      note_waiting(done.error().message, at.size());
    }
  }
}

/// Both tables have places: of the kernel, and of files.
Result<void> RunningKernelTracer::Trace::record_at(std::span<const GuestVirt> places,
                                                   std::uint8_t list) {
  std::vector<GuestVirt> of_kernel, of_files;
  for (const GuestVirt place : places) {
    (tracer_.users_.owns(place) ? of_files : of_kernel).push_back(place);
  }
  TRY(tracer_.table_.record_at(of_kernel, list));
  return tracer_.shim_.record_at(of_files, list);
}

/// 0 of the default list. Empty where the guest has no such list.
std::optional<std::uint8_t> RunningKernelTracer::Trace::number_of(
    const vmm::FetchList& list) const {
  if (list.is_default()) return 0;
  const auto found = std::ranges::find(lists_, list);
  if (found == lists_.end()) return std::nullopt;
  return static_cast<std::uint8_t>(found - lists_.begin() + 1);
}

/// The guest has got its lists before tracing began, and its records have their size by them. So
/// what comes later records where one of those fits, if need be without its predicates.
Result<void> RunningKernelTracer::Trace::record_added() {
  if (!replay_) return {};
  for (const auto& [at, bindings] : by_place(tracer_.points_.added())) {
    TRY(record_added(at, bindings));
  }
  return {};
}

/// The number of the list by which traps there may be recorded, else why they have to wait. `list`
/// becomes what they need.
Result<std::uint8_t> RunningKernelTracer::Trace::find_list(GuestVirt at,
                                                           std::span<const Binding* const> bindings,
                                                           vmm::FetchList& list) const {
  if (const auto why = why_waits(at, bindings, list)) return fail(ErrorCode::Unsupported, *why);
  auto number = number_of(list);
  if (!number && list.drop_checks()) number = number_of(list);
  if (!number && !list.copies_memory()) number = 0;  // the default one has all else
  if (number) return *number;
  return fail(ErrorCode::Unsupported,
              "the guest was told which memory to copy before this probe was there");
}

Result<void> RunningKernelTracer::Trace::record_added(GuestVirt at,
                                                      std::span<const Binding* const> bindings) {
  vmm::FetchList list;
  const Result<std::uint8_t> number = find_list(at, bindings, list);
  if (const auto standing = tracer_.table_.recording_at(at)) {
    // Those that fire there go on, so its list stays.
    const bool has_all = *standing == 0 || lists_[*standing - 1].has_all_of_default();
    if (number && (*number == *standing || (has_all && !list.copies_memory()))) return {};
    return fail(ErrorCode::Unsupported,
                fmt::format("a probe whose traps are recorded stands at the place of another one, "
                            "which cannot be: {}",
                            number ? "it looks at other memory" : number.error().message));
  }
  const auto done = number ? record_at({&at, 1}, *number) : tl::make_unexpected(number.error());
  if (!done && late_waiting_.insert(at).second) note_late(done.error().message);
  return {};
}

/// A place that came later waits. No reason to end a trace, and each is told once.
void RunningKernelTracer::Trace::note_late(const std::string& why) {
  if (tracer_.recording_ == Recording::Yes && !why_waiting_.contains(why)) {
    tracer_.notice("-x record=yes: traps of probes that came later wait: " + why);
  }
  note_waiting(why);
}

/// Until no CPU writes a record that it began before: the same places may soon have other probes.
void RunningKernelTracer::Trace::await_records() const {
  const auto deadline = std::chrono::steady_clock::now() + kLateRecords;
  while (!replay_->is_quiet() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kLateRecordWait);
  }
}

std::optional<LateModule> RunningKernelTracer::Trace::take_module() {
  if (!tracer_.modules_ || tracer_.shim_.state() != vmm::ShimState::There) return std::nullopt;
  while (const auto structure = tracer_.modules_->take()) {
    auto module = tracer_.kernel_.admit_module(*structure);
    if (module) {
      if (replay_) replay_->empty_rings();  // of what passed another module there
      if (module->before) tracer_.table_.drop_in(*module->before);
      tracer_.table_.drop_in(module->text);
      if (stack_tables_) {
        const vmm::PageTableReader reader(tracer_.machine_.memory(), tracer_.kernel_.table());
        change_stack_tables(
            [&] { put_module(*stack_tables_, reader, orc_layout_, *structure, module->text); });
      }
      taken_ = true;
      return std::move(*module);
    }
    tracer_.notice("a module that the guest has loaded has no probes: " + module.error().message);
    (void)tracer_.modules_->let_go(*structure);
  }
  return std::nullopt;
}

RunningKernelTracer::RunningKernelTracer(vmm::Machine& machine, guest_linux::Kernel& kernel,
                                         TrapForm form, Recording recording,
                                         std::shared_ptr<const DefinedProbes> defined,
                                         std::shared_ptr<guest_linux::HostFiles> host_files)
    : machine_(machine),
      kernel_(kernel),
      form_(form),
      recording_(recording),
      defined_(std::move(defined)),
      host_files_(std::move(host_files)),
      shim_([this] {
        vmm::RingWants rings;
        if (recording_ != Recording::No) rings.count = std::max(1U, possible_cpus());
        rings.trap_points = static_cast<std::uint32_t>(expected_probes_ + users_.worth());
        rings.is_must = recording_ == Recording::Yes;
        return install_shim(machine_, kernel_, rings);
      }),
      table_(machine, shim_, kernel),
      users_(machine, &shim_, kernel, host_files_.get()),
      points_(machine, shim_, table_, users_) {
  users_.expect_pages(recording_ != Recording::No && PageWatch::is_possible(kernel_));
  if (const auto& kexec_site = table_.kexec_site(); !kexec_site) {
    notice("a start of another kernel (kexec) is noticed late: " + kexec_site.error().message);
  }
}

RunningKernelTracer::~RunningKernelTracer() {
  retire();
}

void RunningKernelTracer::add_providers(Registry& registry) {
  registry.add(std::make_unique<SyscallProvider>(table_.original_text(), kernel_, points_));
  registry.add(std::make_unique<FbtProvider>(table_.original_text(), kernel_, points_));
  if (defined_ == nullptr) return;
  displaced_ = add_stable_providers(registry, defined_, table_.original_text(), machine_.memory(),
                                    kernel_, users_, points_);
}

void RunningKernelTracer::add_wide_providers(Registry& registry) {
  registry.add(std::make_unique<SdtProvider>(table_.original_text(), kernel_, points_));
  registry.add(std::make_unique<InstrProvider>(table_.original_text(), kernel_, points_));
  registry.add(std::make_unique<PidProvider>(machine_.memory(), kernel_, users_, points_));
  registry.add(std::make_unique<UsdtProvider>(machine_.memory(), kernel_, users_, points_));
}

std::optional<std::uint32_t> RunningKernelTracer::tsc_khz() const {
  return guest_linux::tsc_khz(kernel_, vmm::PageTableReader(machine_.memory(), kernel_.table()));
}

unsigned RunningKernelTracer::possible_cpus() const {
  return static_cast<unsigned>(kernel_.percpu_bases().size());
}

std::unique_ptr<KernelTrace> RunningKernelTracer::begin(ProbeSink& sink, GuestClock& clock,
                                                        const Wants& wants) {
  if (expects_modules_) watch_modules();
  const auto& kexec_site = table_.kexec_site();
  const bool traps = has_points();
  if (traps && kexec_site && *kexec_site) {
    if (const auto added = table_.examine_and_add(**kexec_site); !added) {
      notice("a start of another kernel (kexec) is noticed late: " + added.error().message);
    }
  }
  if (traps) {
    watch_kprobes();
    watch_hibernation();
    if (users_.size() != 0) {
      auto done = watch_files();
      if (done) done = watch_pages();
      if (!done) notice(done.error().message);
    }
    // If this fails it will fail at the end, too, and say why.
    const auto stack_check = prepare_stack_check();
    if (form_ == TrapForm::JumpsWhereTheyMay) {
      if (stack_check) {
        use_jumps();
        watch_hardware_breakpoints();
      } else {
        notice("all probes are breakpoints: " + stack_check.error().message);
      }
    }
  }
  return std::make_unique<Trace>(*this, sink, clock, wants);
}

void RunningKernelTracer::use_jumps() {
  using Range = guest_linux::Kernel::AddressRange;
  table_.use_jumps(
      [this](vmm::PausedMachine& paused, std::span<const Range> ranges) {
        const vmm::PageTableReader reader(machine_.memory(), kernel_.table());
        return stack_check_->words_in(paused, reader, kernel_, ranges);
      },
      [this](vmm::PausedMachine& paused, Range code) -> Result<bool> {
        const vmm::PageTableReader reader(machine_.memory(), kernel_.table());
        return !TRY(stack_check_->find(paused, reader, kernel_, code)).empty();
      });
}

void RunningKernelTracer::watch_modules() {
  modules_.emplace();
  if (const auto done = modules_->prepare(kernel_, table_); !done) {
    modules_.reset();
    notice("modules that the guest loads from now on have no probes: " + done.error().message);
  }
}

void RunningKernelTracer::watch_kprobes() {
  kprobes_.emplace(machine_, kernel_, table_);
  if (const auto done = kprobes_->prepare(); !done) {
    notice("kprobes that the guest sets in functions that are traced may be refused there: " +
           done.error().message);
  }
}

/// One that we have started ends with us.
void RunningKernelTracer::watch_hibernation() {
  if (!machine_.is_others()) return;
  hibernation_.emplace();
  if (const auto done = hibernation_->prepare(kernel_, table_); !done) {
    notice("end the trace before the guest suspends itself to disk, of which it is not told: " +
           done.error().message);
  }
}

/// Without it no file may have trap points.
Result<void> RunningKernelTracer::watch_files() {
  files_.emplace(machine_, kernel_, users_);
  const auto done = files_->prepare(table_);
  if (done) return {};
  files_.reset();
  users_.keep_out();
  return fail(done.error().code,
              "probes of processes stay out of the guest, since reads and writes "
              "of their files would not be noticed: " +
                  done.error().message);
}

/// Without it pages that come get their trap points by tend_files().
Result<void> RunningKernelTracer::watch_pages() {
  constexpr std::string_view kLate =
      "pages that the guest reads from its disk later get their probes of processes up to a second "
      "late: ";
  pages_.emplace(machine_, kernel_, table_, users_);
  Result<void> done;
  if (const std::size_t files = users_.inodes().size(); files > PageWatch::kMostFiles) {
    done = fail(ErrorCode::Limit, fmt::format("{} files have some, and {} is the most", files,
                                              PageWatch::kMostFiles));
  } else {
    done = pages_->prepare();
  }
  if (done) return {};
  pages_.reset();
  users_.expect_pages(false);
  return fail(done.error().code, std::string(kLate) + done.error().message);
}

/// Pages that were away are in memory again, or new.
void RunningKernelTracer::tend_files() {
  const bool wants_tending = users_.size() != 0 && users_.wants_tending();
  if (pages_) pages_->look();
  if (!wants_tending) return;
  auto paused = vmm::PausedMachine::pause(machine_);
  if (!paused) return;
  if (const auto done = users_.tend(*paused); !done) notice(done.error().message);
}

void RunningKernelTracer::end_user_slots() {
  if (users_.size() == 0) return;
  const auto is_out = users_.take_out(shim_.installed()->place());
  if (is_out && *is_out) return;
  if (!is_out && is_out.error().code != ErrorCode::MachineGone) notice(is_out.error().message);
  if (!is_out) return;
  notice(std::string(UserPointTable::kStaysInside));
}

void RunningKernelTracer::watch_hardware_breakpoints() {
  hardware_.emplace(machine_, kernel_, table_);
  if (const auto done = hardware_->prepare(); !done) {
    notice("hardware breakpoints that the guest sets beside our probes may be passed by: " +
           done.error().message);
  }
}

/// While traps are still served: until nobody is in a slot any more, faults there may be mended.
Result<void> RunningKernelTracer::end_fault_search() {
  if (!table_.searches_faults() || shim_.state() != vmm::ShimState::There) return {};
  table_.park_restored();  // meanwhile the guest may set kprobes where probes of ours stood
  const auto restore = [this](vmm::PausedMachine& paused) {
    return table_.disarm_fault_search(paused);
  };
  auto stack_check = prepare_stack_check();
  const auto done = stack_check ? remove_when_empty(machine_, kernel_, **stack_check, shim_.place(),
                                                    kFaultTries, restore)
                                : tl::make_unexpected(stack_check.error());
  if (done) return {};
  return fail(done.error().code,
              fmt::format("one breakpoint and the stub stay in the guest, for a fault that its "
                          "kernel still mends: {}; `ringside clean` takes them out later",
                          done.error().message));
}

Result<guest_linux::StackCheck*> RunningKernelTracer::prepare_stack_check() {
  if (!stack_check_) stack_check_ = TRY(guest_linux::StackCheck::prepare(kernel_));
  return &*stack_check_;
}

void RunningKernelTracer::retire() {
  if (table_.any_armed() || users_.any_armed()) {
    table_.park_restored();
    if (has_left_breakpoints()) tell_what_stays();
    return;
  }
  if (std::exchange(retired_, true)) return;
  if (shim_.installed() != nullptr && !take_out_shim()) return;
  if (const auto given = machine_.give_back_reserved(); !given) notice(given.error().message);
}

void RunningKernelTracer::tell_what_stays() {
  if (table_.is_copied_by_kprobe()) {
    notice(
        "a kprobe of the guest's own holds a probe of ours as its code, so the stub stays in the "
        "guest; once that kprobe is gone `ringside clean` takes it out");
  } else {
    notice(fmt::format(
        "{} probes stay in the guest as breakpoints, and the stub, which lets it pass them; "
        "`ringside clean` takes them out",
        armed()));
  }
}

bool RunningKernelTracer::take_out_shim() {
  {
    auto paused = vmm::PausedMachine::pause(machine_);
    if (!paused) return false;
    if (const auto done = shim_.installed()->retire(*paused); !done) {
      notice(done.error().message);
      return false;
    }
  }
  if (auto stays = leave(); !stays) {
    notice(
        fmt::format("the stub stays in {} pages of the guest's memory, and does nothing: {}; "
                    "the next ringside uses it again, or takes it out",
                    shim_.place().bytes / arch::kPageSize, stays.error().message));
    return false;
  }
  return true;
}

Result<void> RunningKernelTracer::leave() {
  auto* const stack_check = TRY(prepare_stack_check());
  return remove_when_empty(
      machine_, kernel_, *stack_check, shim_.place(), kLeaveTries,
      [this](vmm::PausedMachine& paused) { return shim_.installed()->remove(paused); });
}

std::optional<std::string> RunningKernelTracer::panic() const {
  const vmm::PageTableReader reader(machine_.memory(), kernel_.table());
  const auto cpu = panic_.look(kernel_, reader, PanicWatch::Clock::now());
  if (!cpu) return std::nullopt;
  return fmt::format(
      "the guest's kernel has panicked on CPU {} and stands still; `ringside why` tells more",
      *cpu);
}

std::optional<std::string> RunningKernelTracer::loss() const {
  switch (shim_.state()) {
    case vmm::ShimState::There:
    case vmm::ShimState::Retired: return panic();
    case vmm::ShimState::GuestLeft:
      return "the guest has started another kernel (kexec), which is not traced";
    case vmm::ShimState::Overwritten: break;
  }
  return "the shim is gone: the guest has overwritten it or started another kernel, or its owner "
         "has loaded a snapshot, from which `ringside clean` takes out what it holds of ours";
}

std::optional<std::string> RunningKernelTracer::must_leave() const {
  if (!hibernation_ || !hibernation_->has_begun()) return std::nullopt;
  return "the guest suspends itself to disk: attach again when it is awake";
}

void RunningKernelTracer::notice(std::string text) {
  const std::lock_guard lock(notices_lock_);
  notices_.push_back(std::move(text));
}

void RunningKernelTracer::note_changed(const std::vector<GuestVirt>& places) {
  if (places.empty()) return;
  retired_places_.fetch_add(places.size(), std::memory_order_relaxed);
  const std::lock_guard lock(notices_lock_);
  changed_.insert(changed_.end(), places.begin(), places.end());
}

void RunningKernelTracer::tell_of_kprobes() {
  if (!kprobes_) return;
  const KprobeWatch::Away away = kprobes_->take_away();
  if (away.error) notice("probes stay away for a kprobe of the guest's own: " + *away.error);
  if (away.times == 0) return;
  notice(
      fmt::format("the guest set {} at {}{}; our probes in the same function were away for it, "
                  "for {:.1f} ms{}",
                  away.times == 1 ? "a kprobe" : fmt::format("{} kprobes", away.times),
                  kernel_.symbols().describe(away.at), away.times == 1 ? "" : " and elsewhere",
                  static_cast<double>(away.nanoseconds) / 1e6, away.times == 1 ? "" : " in all"));
}

std::vector<std::string> RunningKernelTracer::take_notices() {
  tell_of_kprobes();
  std::vector<GuestVirt> changed;
  std::vector<std::string> notices;
  for (std::string& of_files : users_.take_notices()) notice(std::move(of_files));
  {
    const std::lock_guard lock(notices_lock_);
    changed.swap(changed_);
    notices.swap(notices_);
  }
  // Named here and not when they were noted: the symbols belong to the session's thread.
  const std::size_t singly = changed.size() <= kSingleNotices ? changed.size() : 1;
  for (std::size_t n = 0; n < singly; ++n) {
    notices.push_back(
        fmt::format("the guest changed its code at {}, or has a kprobe of its own "
                    "there; the probe there is gone",
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
