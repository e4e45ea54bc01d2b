// In this file, top to bottom: the thread, events, stopping and letting go.
#include "vmm/attach/monitor/monitored_status.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "vmm/base/host_cpu.h"
#include "vmm/base/printable.h"
#include "vmm/base/process.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {
namespace {

constexpr std::size_t kMostNews = 64;  // an owner that stops and starts it all day
/// Ticks of the host's TSC, more than a second: so old the news of a stop may be.
constexpr std::uint64_t kNewsAge = 5'000'000'000;
constexpr int kLookPause = 100;  // milliseconds; a caller that asks again at once can wait
/// Milliseconds. QEMU tells of a migration only where its owner has set the capability `events`. A
/// machine that is copied in less time is gone before anybody could leave it.
constexpr int kMigrationLook = 500;
constexpr char kOnDisk[] =
    "the guest has suspended itself to disk; what of ours was in it went along, and "
    "`ringside clean` takes it out when it is awake";
/// At most this many events of ours may be on their way. A stop of ours that its owner was quicker
/// than has none, and takes one of its owner's for ours.
constexpr unsigned kMostLate = 8;

void expect_one(unsigned& ours) {
  ours = std::min(ours + 1, kMostLate);
}

/// Whether an event that has come is one of `ours`.
bool take_one(unsigned& ours) {
  if (ours == 0) return false;
  --ours;
  return true;
}

}  // namespace

Result<void> MonitoredStatus::start(pid_t pid) {
  process_ = open_pidfd(pid);
  state_event_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  stop_event_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!process_ || !state_event_ || !stop_event_) {
    return fail(ErrorCode::Io,
                fmt::format("cannot watch process {}: {}", pid, std::strerror(errno)));
  }
  const AllSignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
  return {};
}

void MonitoredStatus::stop() {
  if (!thread_.joinable()) return;
  raise_event(stop_event_);
  thread_.join();
}

void MonitoredStatus::run() {
  const int look_every = monitor_.tells_of_migration() ? -1 : kMigrationLook;
  while (state() == MachineState::Running) {
    pollfd entries[] = {{stop_event_.get(), POLLIN, 0},
                        {process_.get(), POLLIN, 0},
                        {monitor_.event_fd(), POLLIN, 0},
                        {ram_.plug_event_fd(), POLLIN, 0}};
    const int ready = poll(entries, std::size(entries), look_every);
    if (ready < 0) continue;  // EINTR
    if (entries[0].revents != 0) return;
    {
      const std::lock_guard lock(mutex_);
      if (ready == 0) look_for_migration();
      const auto followed = catch_up();
      if (entries[1].revents != 0) {
        end(end_.judge({}), "its QEMU has ended");
      } else if (!followed) {
        // A QEMU that ends closes its monitor first.
        end(end_.judge({}), has_ended(1000) ? "its QEMU has ended" : followed.error().message);
      }
    }
    if (entries[3].revents == 0) continue;
    if (const auto looked = ram_.look_again(); !looked) tell(looked.error().message);
    if (poll(entries, 1, kLookPause) > 0) return;
  }
}

std::string MonitoredStatus::exit_reason() const {
  const std::lock_guard lock(text_mutex_);
  return state() == MachineState::Died ? cause_ : std::string();
}

std::vector<std::string> MonitoredStatus::take_news() {
  const std::lock_guard lock(text_mutex_);
  return std::exchange(news_, {});
}

std::optional<std::string> MonitoredStatus::must_leave() const {
  const std::lock_guard lock(text_mutex_);
  return leave_;
}

void MonitoredStatus::tell(std::string news) {
  const std::lock_guard lock(text_mutex_);
  if (news_.size() < kMostNews) news_.push_back(std::move(news));
}

/// The first end is the one that counts.
void MonitoredStatus::end(MachineState state, std::string cause) {
  if (state_.load(std::memory_order_relaxed) != MachineState::Running) return;
  {
    const std::lock_guard lock(text_mutex_);
    cause_ = std::move(cause);
  }
  state_.store(state, std::memory_order_release);
  raise_event(state_event_);
}

/// Notes what has happened so far. The caller has the lock.
Result<void> MonitoredStatus::catch_up() {
  for (const QmpEvent& event : TRY(monitor_.take_events())) note(event);
  for (const Monitor::Change change : monitor_.take_changes()) note(change);
  return {};
}

void MonitoredStatus::note(Monitor::Change change) {
  switch (change) {
    case Monitor::Change::Lost:
      return tell(
          "the connection to its libvirt is lost, and looked for: until it is back the guest "
          "cannot be paused, and `profile` takes no samples");
    case Monitor::Change::MadeAnew:
      note_that_vcpus_may_differ();
      find_its_state();
      return tell("the connection to its libvirt is back");
  }
}

/// After a time without events.
void MonitoredStatus::find_its_state() {
  our_stops_ = our_resumes_ = 0;
  const auto answer = monitor_.execute("query-status");
  if (!answer) return;  // it is lost again
  const std::string status = json_text(*answer, "status");
  if (owes_go() && !held_) {
    our_resumes_ = status == "paused" ? 1 : 0;
    if (our_resumes_ == 0 || monitor_.execute("cont")) note_that_it_went();
    return;
  }
  if (status == "running" && stopped_by_owner_) return note_resume();
  if (status != "running" && !stopped_by_owner_ && !held_) return note_stop();
}

/// QEMU docs: interop/qemu-qmp-ref, "VM run state", "Migration", "Machines".
void MonitoredStatus::note(const QmpEvent& event) {
  end_.note(event);
  if (event.name == "STOP") return note_stop();
  if (event.name == "RESUME") return note_resume();
  if (event.name == "MIGRATION") return note_migration(json_text(event.data, "status"));
  if (event.name == "SUSPEND") return tell("the guest sleeps (suspended to RAM): tracing waits");
  if (event.name == "WAKEUP") return tell("the guest woke up");
  if (event.name == "GUEST_PANICKED") return end(MachineState::Panicked, "the guest panicked");
  if (event.name == "SUSPEND_DISK") return end(MachineState::Died, kOnDisk);
  if (event.name == "RESET") return end(MachineState::Rebooted, "reset");
  // The guest's kernel has taken or given back memory or a CPU, and uses it next.
  const bool is_taken = event.name == "ACPI_DEVICE_OST" || event.name == "DEVICE_DELETED";
  if (is_taken) note_that_vcpus_may_differ();
  if (is_taken || event.name == "MEMORY_DEVICE_SIZE_CHANGE") return ram_.ask_for_look();
  if (event.name == "SHUTDOWN") {
    const std::string reason = printable(json_text(event.data, "reason")).substr(0, 40);
    end(end_.judge({}), fmt::format("its owner ended it ({})", reason));
  }
}

void MonitoredStatus::note_stop() {
  if (take_one(our_stops_)) return;
  // A guest that has just ended and whose QEMU stays (-no-shutdown, libvirt's) is stopped, too.
  if (state() != MachineState::Running) return;
  note_owners_stop();
  const auto answer = monitor_.execute("query-status");
  const std::string status = answer ? json_text(*answer, "status") : "";
  // Memory that is still to be copied is sent now, or was: nothing that we restore goes with it.
  if (status == "finish-migrate" || status == "postmigrate") {
    return leave(
        "its owner has saved it, or moved it to another host; breakpoints of ours went along, "
        "which `ringside clean` takes out there");
  }
  if (status == "paused") return tell("its owner has paused it: tracing waits");
  // QEMU answers nobody before it has saved or loaded one.
  if (status == "running") {
    return tell("it stood still: its owner has paused it, or saved or loaded a snapshot");
  }
  tell(fmt::format("QEMU has stopped it ({:.40}): tracing waits", printable(status)));
}

/// The word of it may come late, and too long a stop does no harm.
void MonitoredStatus::note_owners_stop() {
  if (std::exchange(stopped_by_owner_, true)) return;
  const std::uint64_t now = host_tsc();
  stop_times_.begin(now > kNewsAge ? now - kNewsAge : 1);
}

void MonitoredStatus::note_resume() {
  if (take_one(our_resumes_)) return;
  if (std::exchange(stopped_by_owner_, false)) stop_times_.end(host_tsc());
  if (held_) broken_ = true;
  tell("it runs again");
}

bool MonitoredStatus::is_under_way(std::string_view migration) {
  constexpr std::string_view kNot[] = {"", "none", "completed", "failed", "cancelled"};
  return std::ranges::find(kNot, migration) == std::end(kNot);
}

/// Our bytes are in its RAM, and its new place has no host for them.
void MonitoredStatus::note_migration(std::string_view status) {
  if (is_under_way(status)) leave("its owner saves it, or moves it to another host");
}

void MonitoredStatus::look_for_migration() {
  if (const auto answer = monitor_.execute("query-migrate")) {
    note_migration(json_text(*answer, "status"));
  }
}

void MonitoredStatus::leave(std::string why) {
  {
    const std::lock_guard lock(text_mutex_);
    if (leave_) return;
    leave_ = std::move(why);
  }
  raise_event(state_event_);
}

/// Its process, within so many milliseconds.
bool MonitoredStatus::has_ended(int wait) const {
  pollfd ended{process_.get(), POLLIN, 0};
  return poll(&ended, 1, wait) > 0;
}

/// Of a stop that failed half-way: the guest ran before it.
void MonitoredStatus::undo_stop() {
  (void)catch_up();
  if (monitor_.events_are_in_order()) our_stops_ = 0;
  const auto answer = monitor_.execute("query-status");
  if (!answer) return;
  if (json_text(*answer, "status") != "paused") {
    (void)take_one(our_stops_);  // there was none
    return;
  }
  expect_one(our_resumes_);
  (void)monitor_.execute("cont");
  (void)catch_up();
  if (monitor_.events_are_in_order()) our_resumes_ = 0;
}

/// A QEMU that lives and does not answer waits for I/O of the guest, and stops it when that ends.
Result<void> MonitoredStatus::ask_for_stop(const std::function<Result<void>()>& before) {
  expect_one(our_stops_);
  auto answer = before();
  if (answer) {
    const auto stopped = monitor_.execute("stop");
    if (stopped) return {};
    answer = tl::make_unexpected(stopped.error());
  }
  const bool is_lost = answer.error().code == ErrorCode::NotFound && !broken_;
  if (is_lost) owes_go_.store(true, std::memory_order_release);
  if (!is_lost && answer.error().code != ErrorCode::MachineGone) undo_stop();
  if (answer.error().code != ErrorCode::MachineGone || has_ended(0))
    return tl::make_unexpected(answer.error());
  stop_may_come_.store(true, std::memory_order_release);
  return fail(
      ErrorCode::Io,
      fmt::format("QEMU has not stopped the guest, whose storage may not answer ({}): should it "
                  "stand still when that does, 'cont' on its monitor lets it go",
                  answer.error().message));
}

Result<MonitoredStatus::Stopped> MonitoredStatus::stop_guest(
    const std::function<Result<void>()>& before) {
  const std::lock_guard lock(mutex_);
  TRY(catch_up());
  if (state() != MachineState::Running) {
    return fail(ErrorCode::MachineGone, "the guest has ended");
  }
  const nlohmann::json answer = TRY(monitor_.execute("query-status"));
  const std::string status = json_text(answer, "status");
  if (status == "suspended") {
    return fail(ErrorCode::Io, "the guest does not run: it sleeps (suspended to RAM)");
  }
  broken_ = false;
  Stopped stopped = Stopped::Before;
  if (status == "running") {
    TRY(ask_for_stop(before));
    stopped = Stopped::ByUs;
  }
  TRY(catch_up());
  // No event of ours: its owner was quicker, and is not to find it running.
  if (monitor_.events_are_in_order() && std::exchange(our_stops_, 0) != 0)
    stopped = Stopped::Before;
  if (state() != MachineState::Running) {
    // It runs something else by now, or is about to.
    if (stopped == Stopped::ByUs) (void)monitor_.execute("cont");
    return fail(ErrorCode::MachineGone, "the guest has ended");
  }
  if (stopped == Stopped::Before) note_owners_stop();
  held_ = true;
  return stopped;
}

Result<void> MonitoredStatus::let_guest_go() {
  const std::lock_guard lock(mutex_);
  held_ = false;
  if (!broken_) expect_one(our_resumes_);
  const auto gone = monitor_.execute("cont");
  if (!gone && gone.error().code == ErrorCode::NotFound) {
    owes_go_.store(true, std::memory_order_release);
  }
  auto followed = catch_up();
  if (monitor_.events_are_in_order()) our_resumes_ = 0;
  TRY(gone);
  return followed;
}

Result<void> MonitoredStatus::check_still_stopped() {
  const std::lock_guard lock(mutex_);
  TRY(catch_up());
  return check_not_broken();
}

Result<void> MonitoredStatus::ask_whether_still_stopped() {
  const std::lock_guard lock(mutex_);
  TRY(catch_up());
  // Where nobody answers, the gdbstub's own time is the limit.
  const auto answer = monitor_.execute("query-status");
  if (answer && json_text(*answer, "status") == "running") broken_ = true;
  return check_not_broken();
}

Result<void> MonitoredStatus::check_not_broken() const {
  if (!broken_) return {};
  return fail(ErrorCode::NotFound, "the guest's owner let it run while it was paused for us");
}

void MonitoredStatus::note_that_it_ran() {
  const std::lock_guard lock(mutex_);
  broken_ = true;
}

}  // namespace ringside::vmm
