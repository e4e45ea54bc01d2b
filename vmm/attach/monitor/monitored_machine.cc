// In this file, top to bottom: what can be attached to, who the process is, the machine.
#include "vmm/attach/monitor/monitored_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>
#include <span>
#include <sstream>
#include <string_view>
#include <thread>

#include "vmm/attach/host/vmm_program.h"
#include "vmm/base/printable.h"
#include "vmm/shim/shim_region.h"

namespace ringside::vmm {
namespace {

constexpr std::string_view kDevice = "chardev:";
constexpr std::chrono::seconds kGuardiansMoment{3};
constexpr std::chrono::milliseconds kLookEvery{20};

/// A guest's state as QEMU names it (QEMU docs: interop/qemu-qmp-ref, RunState), where there is no
/// guest that we could trace.
struct Refusal {
  const char* status;
  const char* why;
};
constexpr Refusal kRefusals[] = {
    {"inmigrate",
     "it waits for a guest that comes from another host or a file: attach when it runs"},
    {"prelaunch", "its guest has not been started: attach when it runs"},
    {"preconfig", "its guest has not been started: attach when it runs"},
    {"postmigrate", "its guest has moved elsewhere"},
    {"finish-migrate", "its guest is moving elsewhere"},
    {"shutdown", "its guest has shut down"},
    {"suspended", "its guest sleeps (suspended to RAM): attach when it is awake"},
};

/// Why a guest stands still. In some of these only a caller that looks at it gets that far.
constexpr Refusal kStoppedStates[] = {
    {"paused", "its owner has paused it"},
    {"prelaunch", "its owner has not started it"},
    {"suspended", "it sleeps (suspended to RAM) until somebody wakes it"},
    {"io-error", "QEMU has stopped it because of an error of a disk on the host"},
    {"internal-error", "QEMU has stopped it: the processor could not go on with it"},
    {"guest-panicked", "QEMU has stopped it because it panicked"},
    {"watchdog", "QEMU has stopped it: its watchdog ran out"},
    {"debug", "its owner's debugger has stopped it"},
    {"shutdown", "it has shut down, and its owner keeps it"},
    {"finish-migrate", "it is moving elsewhere"},
    {"postmigrate", "it has moved elsewhere: this is what stayed behind"},
    {"save-vm", "it is being saved"},
    {"restore-vm", "it is being restored"},
};

Result<std::string> ask_status(Monitor& monitor) {
  std::string status = json_text(TRY(monitor.execute("query-status")), "status");
  if (!status.empty()) return status;
  return fail(ErrorCode::Invalid, "QEMU's monitor does not say whether its guest runs");
}

const Refusal* find_status(std::span<const Refusal> table, std::string_view status) {
  const auto found =
      std::ranges::find_if(table, [&](const Refusal& each) { return status == each.status; });
  return found == table.end() ? nullptr : &*found;
}

/// The state of a migration as QEMU names it (QEMU docs: interop/qemu-qmp-ref, MigrationStatus);
/// empty when it knows of none.
std::string migration_state(Monitor& monitor) {
  const auto answer = monitor.execute("query-migrate");
  return answer ? printable(json_text(*answer, "status")).substr(0, 40) : std::string();
}

/// One that runs here while its memory is still to come: a stop waits for vCPUs that wait for
/// memory, and whoever reads it waits, too. Where it comes from it stands still and is whole.
Result<void> check_has_arrived(Monitor& monitor, std::string_view status) {
  const std::string migration = migration_state(monitor);
  const bool is_here = status != "finish-migrate" && status != "postmigrate";
  if (is_here && migration.starts_with("postcopy")) {
    return fail(ErrorCode::Unsupported,
                fmt::format("its memory still arrives from another host (query-migrate: {}), and "
                            "it may stand still for that: try again when that is completed",
                            migration));
  }
  if (status != "inmigrate" || migration.empty()) return {};
  return fail(ErrorCode::Unsupported,
              fmt::format("it waits for a guest that comes from another host or a file "
                          "(query-migrate: {}): try again when it runs",
                          migration));
}

Result<void> check_status(Monitor& monitor, std::string_view status) {
  TRY(check_has_arrived(monitor, status));
  const std::string_view refusal = MonitoredMachine::refusal(status);
  if (!refusal.empty()) return fail(ErrorCode::Unsupported, std::string(refusal));
  if (MonitoredStatus::is_under_way(migration_state(monitor))) {
    return fail(ErrorCode::Unsupported,
                "its owner saves it, or moves it to another host: attach when that is over");
  }
  return {};
}

/// "its drive d0 (/v/d.img)". BlockInfo of qapi/block-core.json.
std::string drive_text(const nlohmann::json& drive) {
  std::string name = json_text(drive, "device");
  if (name.empty()) name = json_text(drive, "qdev");
  const auto inserted = drive.find("inserted");
  const std::string file = inserted != drive.end() ? json_text(*inserted, "file") : "";
  std::string text = fmt::format("its drive {:.60}", printable(name));
  if (!file.empty()) text += fmt::format(" ({:.200})", printable(file));
  return text;
}

/// The drive whose error has stopped the guest, and what is wrong with it; empty where QEMU does
/// not say.
std::string find_failed_drive(Monitor& monitor) {
  const auto drives = monitor.execute("query-block");
  if (!drives || !drives->is_array()) return {};
  for (const nlohmann::json& drive : *drives) {
    const std::string error = json_text(drive, "io-status");
    if (error != "nospace" && error != "failed") continue;
    const std::string text = drive_text(drive);
    return text + (error == "nospace" ? " has no space left on the host (nospace): make room, then "
                                        "let it go on (cont, virsh resume)"
                                      : " has failed on the host");
  }
  return {};
}

/// Empty when it runs. Where there is no guest yet, nobody can look at one.
Result<std::optional<std::string>> find_why_stopped(Monitor& monitor, std::string_view status) {
  if (status == "running") return std::nullopt;
  if (status == "io-error") {
    if (const std::string drive = find_failed_drive(monitor); !drive.empty()) {
      return "QEMU has stopped it: " + drive;
    }
  }
  if (const Refusal* why = find_status(kStoppedStates, status)) return why->why;
  if (const Refusal* why = find_status(kRefusals, status)) {
    return fail(ErrorCode::Unsupported, why->why);
  }
  return fmt::format("QEMU has stopped it ({:.40})", printable(status));
}

Result<void> check_processor(Monitor& monitor) {
  const nlohmann::json target = TRY(monitor.execute("query-target"));
  const std::string processor = json_text(target, "arch");
  if (processor != "x86_64") {
    return fail(ErrorCode::Unsupported,
                fmt::format("its guest's processor is {:.20}: ringside knows x86_64 only",
                            printable(processor)));
  }
  return {};
}

/// Confidential guests. The machine's own word is since QEMU 6.0, and for all kinds of them; one
/// without SEV has no query-sev.
Result<void> check_readable(Monitor& monitor) {
  const auto refused = [](std::string_view kind) {
    return fail(ErrorCode::Unsupported,
                fmt::format("its guest's memory is encrypted ({:.40}): nobody can look into it",
                            printable(kind)));
  };
  const auto sev = monitor.execute("query-sev");
  if (sev && sev->is_object() && sev->value("enabled", nlohmann::json()) == true)
    return refused("SEV");
  const auto link = monitor.execute(
      "qom-get", {{"path", "/machine"}, {"property", "confidential-guest-support"}});
  if (!link || !link->is_string() || link->get<std::string>().empty()) return {};
  const auto type = monitor.execute("qom-get", {{"path", *link}, {"property", "type"}});
  return refused(type && type->is_string() ? type->get<std::string>() : "confidential guest");
}

Result<Accelerator> find_accelerator(Monitor& monitor) {
  const nlohmann::json answer = TRY(monitor.execute("query-kvm"));
  const auto enabled =
      answer.is_object() ? answer.value("enabled", nlohmann::json()) : nlohmann::json();
  if (!enabled.is_boolean())
    return fail(ErrorCode::Invalid, "QEMU does not say whether it uses KVM");
  return enabled.get<bool>() ? Accelerator::Kvm : Accelerator::Tcg;
}

/// A process's threads as it knows them itself, in the innermost of its PID namespaces.
std::set<std::int64_t> own_thread_ids(const HostProcess& process) {
  std::set<std::int64_t> ids;
  for (const pid_t thread : process.threads()) {
    std::ifstream status(process.path(fmt::format("task/{}/status", thread)));
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("NSpid:")) continue;
      std::istringstream numbers(line.substr(6));
      std::int64_t id = thread;
      while (numbers >> id) {
      }
      ids.insert(id);
    }
  }
  return ids;
}

/// The numbers of the vCPUs, which have to be threads of the process: what answers may be somebody
/// who only passes on what a QEMU says.
Result<std::vector<unsigned>> find_vcpus(Monitor& monitor, const HostProcess& process) {
  const nlohmann::json vcpus = TRY(monitor.execute("query-cpus-fast"));
  const auto numbers = TRY(MonitoredVcpus::read_numbers(vcpus));
  const std::set<std::int64_t> threads = own_thread_ids(process);
  for (const nlohmann::json& vcpu : vcpus) {
    const auto thread = vcpu.value("thread-id", nlohmann::json());
    if (!thread.is_number_integer() || !threads.contains(thread.get<std::int64_t>())) {
      return fail(ErrorCode::Invalid,
                  fmt::format("process {} ({}), which listens there, is not the QEMU that answers: "
                              "name that one's own socket",
                              process.pid(), printable(process.comm())));
    }
  }
  return numbers;
}

/// The option that the owner has given -gdb, where that is in use: a gdbserver over a character
/// device of their own looks like any other device to the monitor, and ours would take its place.
Result<std::optional<std::string>> find_gdb_option(Monitor& monitor, const HostProcess& process) {
  const std::vector<std::string> words = process.command_line();
  const auto option = std::ranges::find_if(
      words, [](const std::string& word) { return word == "-gdb" || word == "--gdb"; });
  if (option == words.end() || option + 1 == words.end() || option[1] == "none") {
    return std::nullopt;
  }
  if (option[1].starts_with(kDevice) &&
      TRY(MonitoredVcpus::is_out_of_reach(monitor, option[1].substr(kDevice.size())))) {
    return std::nullopt;
  }
  return printable(option[1]);
}

/// When the ringside that started this QEMU has just been killed, its guardian holds the gdbserver
/// for a moment more.
Result<void> await_gdbserver(Monitor& monitor, const HostProcess& process) {
  const auto deadline = std::chrono::steady_clock::now() + kGuardiansMoment;
  auto option = TRY(find_gdb_option(monitor, process));
  while (option && option->starts_with(kDevice) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kLookEvery);
    option = TRY(find_gdb_option(monitor, process));
  }
  return MonitoredMachine::check_gdbserver(monitor, process);
}

Result<std::string> find_name(Monitor& monitor, pid_t pid) {
  const nlohmann::json answer = TRY(monitor.execute("query-name"));
  const std::string name = fit_machine_name(std::string(json_text(answer, "name")));
  return name.empty() ? fmt::format("qemu-{}", pid) : name;
}

}  // namespace

std::string_view MonitoredMachine::refusal(std::string_view status) {
  const Refusal* refusal = find_status(kRefusals, status);
  return refusal == nullptr ? std::string_view() : refusal->why;
}

Result<void> MonitoredMachine::check_gdbserver(Monitor& monitor, const HostProcess& process) {
  TRY(MonitoredVcpus::check_debugger_free(monitor));
  const auto option = TRY(find_gdb_option(monitor, process));
  if (!option) return {};
  return fail(
      ErrorCode::Io,
      fmt::format("its gdbserver is its owner's (-gdb {:.100}), and QEMU has only one", *option));
}

/// The process; one that nobody can look into is refused.
Result<void> MonitoredMachine::meet(const Access& access) {
  TRY(check_processor(*monitor_));
  TRY(check_readable(*monitor_));
  pid_ = access.pid;
  vcpu_numbers_ = TRY(find_vcpus(*monitor_, HostProcess(pid_)));
  accelerator_ = TRY(find_accelerator(*monitor_));
  name_ = TRY(find_name(*monitor_, pid_));
  return {};
}

Result<void> MonitoredMachine::take_up(const Access& access, MonitoredRam::Access ram,
                                       MonitoredVcpus::Reach reach, CardUse card) {
  TRY(find_memory(ram, card));
  std::optional<Guardian> guardian;
  if (access.guarded_socket >= 0 && reach != MonitoredVcpus::Reach::LookWhileItRuns) {
    guardian.emplace(TRY(Guardian::start(access.guarded_socket, Guardian::Peer::Monitor,
                                         Guardian::When::Held, mark_->path())));
  }
  status_ = std::make_unique<MonitoredStatus>(*monitor_, *ram_, stops());
  vcpus_ = std::make_unique<MonitoredVcpus>(
      vcpu_numbers_, accelerator_, reach,
      MonitoredVcpus::Parts{*monitor_, *status_, ram_->memory(), *mark_}, std::move(guardian));
  return status_->start(pid_);
}

/// A pause of a ringside that was killed, where nothing of it lets the guest go, is over; the
/// machine's state. We have the lock, so nobody else is in one.
Result<std::string> MonitoredMachine::end_left_pause() {
  std::string status = TRY(ask_status(*monitor_));
  const auto left = mark_->left_by();
  if (status == "paused" && left && !monitor_->is_paused_by_owner()) {
    TRY(monitor_->execute("cont"));
    status = TRY(ask_status(*monitor_));
    let_go_of_ = left;
  }
  // Its guest has run since, so that its owner's next pause is none of ours.
  if (status != "paused" || !left || let_go_of_) mark_->clear();
  return status;
}

Result<std::unique_ptr<MonitoredMachine>> MonitoredMachine::attach(Access access, CardUse card) {
  AttachLock lock = TRY(AttachLock::take(access.pid));
  std::unique_ptr<MonitoredMachine> machine(new MonitoredMachine(std::move(access.monitor)));
  machine->lock_ = std::move(lock);
  machine->mark_.emplace(access.pid);
  const std::string status = TRY(machine->end_left_pause());
  TRY(check_status(*machine->monitor_, status));
  machine->stopped_by_ = TRY(find_why_stopped(*machine->monitor_, status));
  TRY(machine->meet(access));
  TRY(await_gdbserver(*machine->monitor_, HostProcess(access.pid)));
  TRY(machine->take_up(access, MonitoredRam::Access::Write, MonitoredVcpus::Reach::All, card));
  return machine;
}

Result<std::unique_ptr<MonitoredMachine>> MonitoredMachine::look_at(Access access) {
  auto lock = AttachLock::take(access.pid);
  if (!lock && lock.error().code != ErrorCode::Limit) return tl::make_unexpected(lock.error());
  std::unique_ptr<MonitoredMachine> machine(new MonitoredMachine(std::move(access.monitor)));
  if (lock) machine->lock_ = std::move(*lock);
  machine->mark_.emplace(access.pid);
  const std::string status = TRY(ask_status(*machine->monitor_));
  TRY(check_has_arrived(*machine->monitor_, status));
  machine->stopped_by_ = TRY(find_why_stopped(*machine->monitor_, status));
  const auto left = machine->stopped_by_ ? machine->mark_->left_by() : std::nullopt;
  if (left && !machine->monitor_->is_paused_by_owner()) {
    machine->stopped_by_ = fmt::format(
        "a ringside that was killed (process {}) has paused it; `ringside clean` lets "
        "it go on",
        *left);
  }
  TRY(machine->meet(access));
  const auto reach = TRY(machine->choose_reach(access));
  TRY(machine->take_up(access, MonitoredRam::Access::Read, reach, CardUse::None));
  return machine;
}

/// BlockDeviceInfo of qapi/block-core.json has the limits: those of throttling.* of -drive, and of
/// block_set_io_throttle.
std::vector<std::string> MonitoredMachine::throttled_drives() {
  constexpr std::pair<const char*, const char*> kLimits[] = {
      {"iops", "requests"}, {"iops_rd", "reads"},        {"iops_wr", "writes"},
      {"bps", "bytes"},     {"bps_rd", "bytes to read"}, {"bps_wr", "bytes to write"}};
  constexpr std::size_t kMostDrives = 64;
  std::vector<std::string> found;
  const auto drives = monitor_->execute("query-block");
  if (!drives || !drives->is_array()) return found;
  for (const nlohmann::json& drive : *drives) {
    if (!drive.is_object() || !drive.contains("inserted") || found.size() == kMostDrives) continue;
    const nlohmann::json& inserted = drive["inserted"];
    std::string text;
    for (const auto& [key, what] : kLimits) {
      const auto limit = inserted.is_object() ? inserted.find(key) : inserted.end();
      if (limit == inserted.end() || !limit->is_number_integer() || *limit <= 0) continue;
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", limit->get<std::int64_t>(), what);
    }
    if (text.empty()) continue;
    found.push_back(
        fmt::format("QEMU lets {} have {} a second at most (throttling)", drive_text(drive), text));
  }
  return found;
}

/// One that stands still needs no stop. One that is stopped needs a guardian, by our own socket or
/// by the gdbstub.
Result<MonitoredVcpus::Reach> MonitoredMachine::choose_reach(const Access& access) {
  using Reach = MonitoredVcpus::Reach;
  if (stopped_by_) return Reach::LookWhileItRuns;
  if (!lock_) {
    const auto holder = AttachLock::holder(pid_);
    why_not_stopped_ = fmt::format("{} is attached to it",
                                   holder ? fmt::format("process {}", *holder) : "another process");
    return Reach::LookWhileItRuns;
  }
  const HostProcess process(pid_);
  if (TRY(MonitoredVcpus::has_foreign_debugger(*monitor_))) {
    why_not_stopped_ = "its owner's debugger is connected and would be told";
    return Reach::LookWhileItRuns;
  }
  const bool has_option = TRY(find_gdb_option(*monitor_, process)).has_value();
  const bool is_taken = !MonitoredVcpus::check_debugger_free(*monitor_);
  // -gdb over a device of the owner's own does not say whether anybody is connected.
  if ((has_option && !is_taken) || (is_taken && access.guarded_socket < 0)) {
    why_not_stopped_ = "its gdbserver is its owner's";
    return Reach::LookWhileItRuns;
  }
  return Reach::Look;
}

Result<void> MonitoredMachine::find_memory(MonitoredRam::Access access, CardUse use) {
  ram_ = TRY(MonitoredRam::find(*monitor_, pid_, access));
  if (access == MonitoredRam::Access::Read) return {};
  TRY(take_out_old_card());
  return use == CardUse::PluggedIn && !card_ ? plug_card_in() : Result<void>();
}

/// A card of an earlier tracer's goes before anything else, since the guest may have been asked to
/// let go of it and may do so at any time. It stays until the end if there are remains in it: then
/// nobody has asked.
Result<void> MonitoredMachine::take_out_old_card() {
  const auto old = TRY(ShimCard::find(*monitor_));
  if (!old) return {};
  if (!old->is_empty(ram_->memory())) {
    card_ = *old;
    return {};
  }
  // Where the guest keeps it, it is no worse than before.
  (void)ShimCard::unplug(*monitor_);
  ram_ = TRY(MonitoredRam::find(*monitor_, pid_, MonitoredRam::Access::Write));
  return {};
}

Result<void> MonitoredMachine::plug_card_in() {
  card_ = TRY(ShimCard::plug(*monitor_));
  return ram_->add(card_->place(), card_->memory());
}

std::optional<GuestMemory::Extent> MonitoredMachine::reserved_memory() const {
  return card_ ? std::optional(card_->place()) : std::nullopt;
}

Result<void> MonitoredMachine::give_back_reserved() {
  if (!card_) return {};
  // A guest that has begun anew is in no stub any more. Memory that we cannot read is new.
  const GuestMemory::Extent place = card_->place();
  const bool is_free = !ram_->memory().is_ram(place.base, place.size) ||
                       card_->is_empty(ram_->memory()) ||
                       (status_ && status_->state() == MachineState::Rebooted &&
                        clear_memory(ram_->memory(), place.base, place.size));
  if (!is_free) return {};
  card_.reset();
  return ShimCard::unplug(*monitor_);
}

std::string_view MonitoredMachine::more_room() const {
  return card_ ? "" : "for more room plug in a card: --attach TARGET,ivshmem";
}

std::string_view MonitoredMachine::kind() const {
  return accelerator_ == Accelerator::Kvm ? "attached qemu (KVM)" : "attached qemu (TCG)";
}

void MonitoredMachine::shut_down() {
  (void)give_back_reserved();
  if (vcpus_) vcpus_->let_go_for_good();
  if (status_) status_->stop();
}

}  // namespace ringside::vmm
