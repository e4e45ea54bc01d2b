#include "vmm/attach/monitor/monitored_vcpus.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "vmm/attach/monitor/register_dump.h"
#include "vmm/base/printable.h"

namespace ringside::vmm {
namespace {

constexpr char kDebugger[] = "ringside-gdb";  // our character device, and the descriptor before it
constexpr unsigned kMostVcpus = 4096;
constexpr char kForeignDebugger[] = "gdb";  // QEMU's own name for what -gdb, -s and gdbserver make

/// Where the character device `label` leads; empty when there is none.
Result<std::optional<std::string>> find_device(Monitor& monitor, std::string_view label) {
  const nlohmann::json devices = TRY(monitor.execute("query-chardev"));
  if (!devices.is_array()) {
    return fail(ErrorCode::Invalid, "QEMU's monitor lists no character devices");
  }
  for (const nlohmann::json& device : devices) {
    if (json_text(device, "label") == label) {
      return printable(json_text(device, "filename")).substr(0, 100);
    }
  }
  return std::nullopt;
}

/// Of a ringside that was killed.
Result<void> remove_leftover(Monitor& monitor) {
  if (!TRY(find_device(monitor, kDebugger))) return {};
  TRY(monitor.human("gdbserver none"));
  if (TRY(find_device(monitor, kDebugger)))
    TRY(monitor.execute("chardev-remove", {{"id", kDebugger}}));
  return {};
}

}  // namespace

Result<std::vector<unsigned>> MonitoredVcpus::read_numbers(const nlohmann::json& vcpus) {
  std::vector<unsigned> numbers;
  const std::size_t count = vcpus.is_array() ? vcpus.size() : 0;
  for (std::size_t i = 0; i < count && i < kMostVcpus; ++i) {
    const auto number =
        vcpus[i].is_object() ? vcpus[i].value("cpu-index", nlohmann::json()) : nlohmann::json();
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() >= kMostVcpus) break;
    numbers.push_back(number.get<unsigned>());
  }
  std::vector<unsigned> sorted = numbers;
  std::ranges::sort(sorted);
  const bool differ = std::ranges::adjacent_find(sorted) == sorted.end();
  if (!numbers.empty() && numbers.size() == count && differ) return numbers;
  return fail(ErrorCode::Invalid, "QEMU's monitor does not say what vCPUs there are");
}

Result<bool> MonitoredVcpus::is_out_of_reach(Monitor& monitor, std::string_view label) {
  const auto device = TRY(find_device(monitor, label));
  return !device || device->starts_with("disconnected:fd:");
}

Result<void> MonitoredVcpus::check_debugger_free(Monitor& monitor) {
  const auto foreign = TRY(find_device(monitor, kForeignDebugger));
  if (!foreign) return {};
  return fail(
      ErrorCode::Io,
      fmt::format("its gdbserver is its owner's ({}), and QEMU has only one: if nobody needs "
                  "it, 'gdbserver none' on its monitor ends it",
                  *foreign));
}

Result<bool> MonitoredVcpus::has_foreign_debugger(Monitor& monitor) {
  const auto device = TRY(find_device(monitor, kForeignDebugger));
  return device && !device->starts_with("disconnected:");
}

/// A debugger that comes stops the machine.
Result<void> MonitoredVcpus::open_debugger(OpenedIn pause) {
  if (gdb_ && gdb_->in_step()) return gdb_->forget_stops();
  return connect_debugger(pause);
}

/// A guest that its owner had let run in this pause, and that bytes of ours have stopped: it is to
/// go on.
void MonitoredVcpus::note_own_stop() {
  parts_.status.note_that_it_ran();
  stopped_by_us_ = true;
  if (guardian_) guardian_->hold();
}

template <class T>
Result<T> MonitoredVcpus::after_debugger(Result<T> answer) {
  if (gdb_->saw_stop() && !answer) note_own_stop();
  return answer;
}

/// While an answer does not come.
Result<void> MonitoredVcpus::check_pause() {
  if (gdb_->saw_stop() && !is_stopping_) parts_.status.note_that_it_ran();
  return parts_.status.ask_whether_still_stopped();
}

Result<void> MonitoredVcpus::connect_debugger(OpenedIn pause) {
  gdb_.reset();
  Monitor& monitor = parts_.monitor;
  TRY(check_debugger_free(monitor));
  TRY(remove_leftover(monitor));
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(ErrorCode::Io, fmt::format("cannot make a socket: {}", std::strerror(errno)));
  }
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  TRY(monitor.pass_descriptor(kDebugger, theirs.get()));
  TRY(monitor.execute(
      "chardev-add",
      {{"id", kDebugger},
       {"backend",
        {{"type", "socket"},
         {"data",
          {{"addr", {{"type", "fd"}, {"data", {{"str", kDebugger}}}}}, {"server", false}}}}}}));
  // Before QEMU connects: then there is no moment in which nobody would let the guest go.
  if (!guarded_by_monitor_) {
    guardian_.reset();  // of an earlier connection
    guardian_.emplace(TRY(Guardian::start(ours.get(), Guardian::Peer::Debugger,
                                          Guardian::When::Held, parts_.mark.path())));
    if (pause == OpenedIn::OurPause) guardian_->hold();
  }
  const std::string said = TRY(monitor.human(fmt::format("gdbserver chardev:{}", kDebugger)));
  gdb_.emplace(std::move(ours));
  gdb_->set_check([this] { return check_pause(); });
  const auto attached = gdb_->attach();
  // To come here stops a guest that runs.
  if (gdb_->saw_stop() && !stopped_by_us_ && !is_stopping_) note_own_stop();
  if (attached) return {};
  gdb_.reset();
  return fail(attached.error().code, fmt::format("QEMU gives us no gdbserver: {} ({:.100})",
                                                 attached.error().message, printable(said)));
}

void MonitoredVcpus::set_stop_check(const StopCheck& check) {
  const std::lock_guard lock(mutex_);
  stop_check_ = check;
}

bool MonitoredVcpus::look_while_they_run() {
  const std::lock_guard lock(mutex_);
  if (reach_ != Reach::Look) return false;
  reach_ = Reach::LookWhileItRuns;
  return true;
}

Result<void> MonitoredVcpus::pause() {
  const std::lock_guard lock(mutex_);
  if (turned_away_)
    return fail(ErrorCode::MachineGone, "ringside has turned away from the machine");
  printed_.clear();
  if (pauses_ == 0 && reach_ != Reach::LookWhileItRuns) {
    if (stop_check_) TRY(stop_check_());
    is_stopping_ = true;
    const auto stopped = parts_.status.stop_guest([&]() -> Result<void> {
      parts_.mark.set();
      if (!guarded_by_monitor_ && !gdb_) return open_debugger(OpenedIn::OurPause);
      guardian_->hold();
      return {};
    });
    is_stopping_ = false;
    stopped_by_us_ = stopped && *stopped == MonitoredStatus::Stopped::ByUs;
    if (!stopped && parts_.status.owes_go()) (void)let_go_by_debugger();
    const bool may_stand = parts_.status.stop_may_come() || parts_.status.owes_go();
    if (!stopped_by_us_ && !may_stand) pause_is_over();
    TRY(stopped);
  }
  if (pauses_ == 0) {
    if (auto found = find_plugged(); !found) {
      (void)let_go();
      return found;
    }
  }
  ++pauses_;
  return {};
}

/// Which vCPUs there are in this pause. QEMU is asked where an event has told that they may be
/// others, and where the events of before this pause may be late.
Result<void> MonitoredVcpus::find_plugged() {
  const bool all_told = reach_ != Reach::LookWhileItRuns && parts_.monitor.events_are_in_order();
  if (!parts_.status.take_vcpus_may_differ() && all_told) return {};
  auto numbers = ask_for_numbers();
  if (!numbers) {
    parts_.status.note_that_vcpus_may_differ();
    return tl::make_unexpected(numbers.error());
  }
  numbers_ = std::move(*numbers);
  count_.store(static_cast<unsigned>(numbers_.size()), std::memory_order_release);
  return {};
}

Result<std::vector<unsigned>> MonitoredVcpus::ask_for_numbers() {
  return read_numbers(TRY(parts_.monitor.execute("query-cpus-fast")));
}

Result<void> MonitoredVcpus::let_go() {
  if (!std::exchange(stopped_by_us_, false)) return {};
  auto gone = parts_.status.let_guest_go();
  if (!gone && parts_.status.owes_go()) gone = let_go_by_debugger();
  TRY(gone);
  pause_is_over();
  return {};
}

void MonitoredVcpus::pause_is_over() {
  parts_.mark.clear();
  if (guardian_) guardian_->unhold();
}

/// Where the monitor is lost, and nobody knows whether the guest runs. The gdbstub's connection is
/// our own.
Result<void> MonitoredVcpus::let_go_by_debugger() {
  if (!gdb_) return fail(ErrorCode::NotFound, "there is no way to the machine");
  TRY(gdb_->forget_stops());
  auto stopped = gdb_->pause();  // Io where it stands still already
  if (!stopped && !gdb_->in_step()) return stopped;
  TRY(gdb_->resume());
  parts_.status.note_that_it_went();
  return {};
}

Result<void> MonitoredVcpus::resume() {
  const std::lock_guard lock(mutex_);
  if (pauses_ == 0 || --pauses_ != 0) return {};  // 0: let_go_for_good() has let the guest go
  return let_go();
}

Result<Registers> MonitoredVcpus::registers(unsigned vcpu) {
  const std::lock_guard lock(mutex_);
  if (vcpu >= numbers_.size()) {
    return fail(ErrorCode::NotFound, fmt::format("there is no vCPU {}", vcpu));
  }
  if (reach_ != Reach::LookWhileItRuns) TRY(parts_.status.check_still_stopped());
  if (reach_ != Reach::All) return printed_registers(vcpu);
  TRY(open_debugger(this_pause()));
  return after_debugger(gdb_->read_registers(numbers_[vcpu]));
}

/// All in one answer, so that they are as much of one moment as they can be.
Result<Registers> MonitoredVcpus::printed_registers(unsigned vcpu) {
  if (printed_.empty()) {
    printed_ = TRY(read_register_dump(TRY(parts_.monitor.human("info registers -a")), numbers_));
  }
  return printed_[vcpu];
}

Result<void> MonitoredVcpus::write(std::span<const CodeWrite> writes) {
  const std::lock_guard lock(mutex_);
  TRY(parts_.status.check_still_stopped());
  if (accelerator_ == Accelerator::Kvm) return write_directly(writes);
  TRY(open_debugger(this_pause()));
  return after_debugger(gdb_->write_bytes(writes, parts_.memory));
}

/// Of one that runs on the processor: entering the guest again makes it fetch what stands there.
Result<void> MonitoredVcpus::write_directly(std::span<const CodeWrite> writes) {
  const auto refused = write_through(parts_.memory, writes);
  if (!refused) return {};
  return fail(ErrorCode::Invalid,
              fmt::format("guest code at {:#x} could not be written", refused->raw()));
}

void MonitoredVcpus::let_go_for_good() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(turned_away_, true)) return;
  pauses_ = 0;
  // A machine that has ended needs neither. The guardian can act while there is a gdbstub.
  (void)let_go();
  if (gdb_) (void)parts_.monitor.human("gdbserver none");
  gdb_.reset();
  const bool may_stand = parts_.status.stop_may_come() || parts_.status.owes_go();
  if (guardian_ && may_stand) guardian_->outlive_us();
  guardian_.reset();
}

}  // namespace ringside::vmm
