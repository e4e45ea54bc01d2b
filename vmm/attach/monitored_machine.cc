// In this file, top to bottom: what can be attached to, who the process is, the machine.
#include "vmm/attach/monitored_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

#include "vmm/attach/host_process.h"
#include "vmm/base/printable.h"

namespace ringside::vmm {
namespace {

constexpr std::size_t kMostVcpus = 4096;

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
};

Result<void> check_status(Monitor& monitor) {
  const nlohmann::json answer = TRY(monitor.execute("query-status"));
  const std::string status = json_text(answer, "status");
  const auto* refusal = std::ranges::find_if(
      kRefusals, [&](const Refusal& refused) { return status == refused.status; });
  if (refusal != std::end(kRefusals)) return fail(ErrorCode::Unsupported, refusal->why);
  if (!status.empty()) return {};
  return fail(ErrorCode::Invalid, "QEMU's monitor does not say whether its guest runs");
}

Result<void> check_processor(Monitor& monitor) {
  const nlohmann::json target = TRY(monitor.execute("query-target"));
  const std::string processor = json_text(target, "arch");
  if (processor != "x86_64") {
    return fail(ErrorCode::Unsupported,
                fmt::format("its guest's processor is {:.20}: ringside knows x86_64 only",
                            printable(processor)));
  }
  // QEMU without SEV has no such command.
  const auto sev = monitor.execute("query-sev");
  const bool encrypted = sev && sev->is_object() && sev->value("enabled", nlohmann::json()) == true;
  if (!encrypted) return {};
  return fail(ErrorCode::Unsupported,
              "its guest's memory is encrypted (SEV): nobody can look into it");
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

/// How many vCPUs there are, which have to be threads of the process: what answers may be somebody
/// who only passes on what a QEMU says.
Result<unsigned> count_vcpus(Monitor& monitor, const HostProcess& process) {
  const nlohmann::json vcpus = TRY(monitor.execute("query-cpus-fast"));
  if (!vcpus.is_array() || vcpus.empty() || vcpus.size() > kMostVcpus) {
    return fail(ErrorCode::Invalid, "QEMU's monitor does not say what vCPUs there are");
  }
  const std::set<std::int64_t> threads = own_thread_ids(process);
  for (const nlohmann::json& vcpu : vcpus) {
    const auto thread =
        vcpu.is_object() ? vcpu.value("thread-id", nlohmann::json()) : nlohmann::json();
    if (!thread.is_number_integer() || !threads.contains(thread.get<std::int64_t>())) {
      return fail(ErrorCode::Invalid,
                  fmt::format("process {} ({}), which listens there, is not the QEMU that answers: "
                              "name that one's own socket",
                              process.pid(), printable(process.comm())));
    }
  }
  return static_cast<unsigned>(vcpus.size());
}

/// A gdbserver over a character device of the owner's own looks like any other device to the
/// monitor, and ours would take its place.
Result<void> check_debugger(Monitor& monitor, const HostProcess& process) {
  TRY(MonitoredVcpus::check_debugger_free(monitor));
  const std::vector<std::string> words = process.command_line();
  const auto option = std::ranges::find_if(
      words, [](const std::string& word) { return word == "-gdb" || word == "--gdb"; });
  if (option == words.end() || option + 1 == words.end() || option[1] == "none") return {};
  constexpr std::string_view kDevice = "chardev:";
  if (option[1].starts_with(kDevice) &&
      TRY(MonitoredVcpus::is_out_of_reach(monitor, option[1].substr(kDevice.size())))) {
    return {};
  }
  return fail(ErrorCode::Io,
              fmt::format("its gdbserver is its owner's (-gdb {:.100}), and QEMU has only one",
                          printable(option[1])));
}

Result<std::string> find_name(Monitor& monitor, pid_t pid) {
  const nlohmann::json answer = TRY(monitor.execute("query-name"));
  const std::string name = printable(json_text(answer, "name")).substr(0, 100);
  return name.empty() ? fmt::format("qemu-{}", pid) : name;
}

}  // namespace

Result<std::unique_ptr<MonitoredMachine>> MonitoredMachine::attach(Access access) {
  AttachLock lock = TRY(AttachLock::take(access.pid));
  std::unique_ptr<MonitoredMachine> machine(
      new MonitoredMachine(std::move(access.monitor), std::move(lock)));
  Monitor& monitor = *machine->monitor_;
  const HostProcess process(access.pid);
  TRY(check_processor(monitor));
  TRY(check_status(monitor));
  const unsigned vcpus = TRY(count_vcpus(monitor, process));
  machine->accelerator_ = TRY(find_accelerator(monitor));
  machine->pid_ = access.pid;
  machine->name_ = TRY(find_name(monitor, access.pid));
  TRY(check_debugger(monitor, process));
  machine->ram_ = TRY(MonitoredRam::find(monitor, access.pid));
  MonitoredRam& ram = *machine->ram_;
  std::optional<Guardian> guardian;
  if (access.guarded_socket >= 0) {
    guardian.emplace(
        TRY(Guardian::start(access.guarded_socket, Guardian::Peer::Monitor, Guardian::When::Held)));
  }
  machine->status_ = std::make_unique<MonitoredStatus>(monitor, ram);
  machine->vcpus_ = std::make_unique<MonitoredVcpus>(
      vcpus, machine->accelerator_, MonitoredVcpus::Parts{monitor, *machine->status_, ram.memory()},
      std::move(guardian));
  TRY(machine->status_->start(access.pid));
  return machine;
}

std::string_view MonitoredMachine::kind() const {
  return accelerator_ == Accelerator::Kvm ? "attached qemu (KVM)" : "attached qemu (TCG)";
}

void MonitoredMachine::shut_down() {
  if (vcpus_) vcpus_->turn_away();
  if (status_) status_->stop();
}

}  // namespace ringside::vmm
