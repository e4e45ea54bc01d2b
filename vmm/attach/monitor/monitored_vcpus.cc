#include "vmm/attach/monitor/monitored_vcpus.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "vmm/attach/monitor/register_dump.h"
#include "vmm/base/printable.h"

namespace ringside::vmm {
namespace {

constexpr char kDebugger[] = "ringside-gdb";  // our character device, and the descriptor before it
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

/// In a pause: a debugger that comes stops the machine, which it then finds stopped.
Result<void> MonitoredVcpus::open_debugger() {
  if (gdb_ && gdb_->in_step()) return gdb_->forget_stops();
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
  const std::string said = TRY(monitor.human(fmt::format("gdbserver chardev:{}", kDebugger)));
  const int debugger = ours.get();
  gdb_.emplace(std::move(ours));
  const auto attached = gdb_->attach();
  if (attached && guardian_) return {};
  if (attached) {
    guardian_.emplace(
        TRY(Guardian::start(debugger, Guardian::Peer::Debugger, Guardian::When::Held)));
    if (stopped_by_us_) guardian_->hold();
    return {};
  }
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
    const auto stopped = parts_.status.stop_guest([&] {
      if (guardian_) guardian_->hold();
    });
    stopped_by_us_ = stopped && *stopped == MonitoredStatus::Stopped::ByUs;
    if (!stopped_by_us_ && guardian_ && !parts_.status.stop_may_come()) guardian_->unhold();
    TRY(stopped);
  }
  ++pauses_;
  return {};
}

Result<void> MonitoredVcpus::let_go() {
  if (!std::exchange(stopped_by_us_, false)) return {};
  TRY(parts_.status.let_guest_go());
  if (guardian_) guardian_->unhold();
  return {};
}

Result<void> MonitoredVcpus::resume() {
  const std::lock_guard lock(mutex_);
  if (pauses_ == 0 || --pauses_ != 0) return {};  // 0: let_go_for_good() has let the guest go
  return let_go();
}

Result<Registers> MonitoredVcpus::registers(unsigned vcpu) {
  if (vcpu >= count_) return fail(ErrorCode::NotFound, fmt::format("there is no vCPU {}", vcpu));
  const std::lock_guard lock(mutex_);
  if (reach_ != Reach::LookWhileItRuns) TRY(parts_.status.check_still_stopped());
  // A guest that we stopped must have somebody who lets it go if we die.
  if (reach_ == Reach::All || (stopped_by_us_ && !guardian_)) TRY(open_debugger());
  if (reach_ != Reach::All) return printed_registers(vcpu);
  return gdb_->read_registers(vcpu);
}

/// All in one answer, so that they are as much of one moment as they can be.
Result<Registers> MonitoredVcpus::printed_registers(unsigned vcpu) {
  if (printed_.empty()) {
    printed_ = TRY(read_register_dump(TRY(parts_.monitor.human("info registers -a")), count_));
  }
  return printed_[vcpu];
}

Result<void> MonitoredVcpus::write(std::span<const CodeWrite> writes) {
  const std::lock_guard lock(mutex_);
  TRY(parts_.status.check_still_stopped());
  if (accelerator_ == Accelerator::Kvm) return write_directly(writes);
  TRY(open_debugger());
  return gdb_->write_bytes(writes, parts_.memory);
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
  // A machine that has ended needs neither.
  if (gdb_) (void)parts_.monitor.human("gdbserver none");
  gdb_.reset();
  (void)let_go();
  if (guardian_ && parts_.status.stop_may_come()) guardian_->outlive_us();
  guardian_.reset();
}

}  // namespace ringside::vmm
