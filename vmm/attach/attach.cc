#include "vmm/attach/attach.h"

#include <fmt/format.h>

#include <utility>

#include "vmm/attach/host/host_process.h"
#include "vmm/attach/monitor/libvirt_monitor.h"
#include "vmm/attach/monitor/monitor_socket.h"
#include "vmm/attach/monitor/monitored_machine.h"
#include "vmm/attach/process/observed_process.h"
#include "vmm/attach/process/process_machine.h"

namespace ringside::vmm {
namespace {

Result<AttachedMachine> attach_to(const ProcessTarget& target, CardUse card) {
  if (card == CardUse::PluggedIn) {
    return fail(
        ErrorCode::Unsupported,
        fmt::format("process {} has no monitor that would plug a card in: name its QMP socket "
                    "or its domain",
                    target.pid));
  }
  auto machine = TRY(ProcessMachine::attach(target.pid));
  std::string name = machine->name();
  return AttachedMachine{std::move(machine), std::move(name), {}, {}};
}

/// A monitor that is connected to, and what its machine is called in errors.
struct Connection {
  MonitoredMachine::Access access;
  std::string called;
};

/// The outcome of a step, or an error that begins with what the machine is called.
template <class T>
Result<T> named(const std::string& called, Result<T> outcome) {
  if (outcome) return outcome;
  return fail(outcome.error().code, fmt::format("{}: {}", called, outcome.error().message));
}

Result<Connection> connect(const QmpTarget& target) {
  auto monitor = TRY(MonitorSocket::connect(target.path));
  MonitoredMachine::Access access{nullptr, monitor->pid(), monitor->fd()};
  access.monitor = std::move(monitor);
  return Connection{std::move(access), target.path};
}

Result<Connection> connect(const DomainTarget& target) {
  auto monitor = TRY(LibvirtMonitor::connect(target));
  std::string called = "domain " + monitor->name();
  const pid_t process = TRY(monitor->find_process());
  TRY(named(called, HostProcess(process).check_not_stopped()));
  MonitoredMachine::Access access{nullptr, process, -1};
  access.monitor = std::move(monitor);
  return Connection{std::move(access), std::move(called)};
}

template <class MonitorTarget>
Result<AttachedMachine> attach_to(const MonitorTarget& target, CardUse card) {
  Connection connection = TRY(connect(target));
  auto machine =
      TRY(named(connection.called, MonitoredMachine::attach(std::move(connection.access), card)));
  AttachedMachine attached{nullptr, machine->name(), machine->stopped_by(), machine->let_go_of()};
  attached.machine = std::move(machine);
  return attached;
}

Result<ObservedMachine> look_at_process(
    pid_t pid, ObservedProcess::Reach reach = ObservedProcess::Reach::All) {
  auto machine = TRY(ObservedProcess::look_at(pid, reach));
  ObservedMachine observed{nullptr, machine->name(), machine->stopped_by(), {}, {}};
  if (!machine->vcpu_trouble().empty())
    observed.limits.push_back("registers: " + machine->vcpu_trouble());
  if (!machine->ram_trouble().empty())
    observed.limits.push_back("memory: " + machine->ram_trouble());
  observed.machine = std::move(machine);
  return observed;
}

Result<ObservedMachine> look_by(Connection connection) {
  auto machine =
      TRY(named(connection.called, MonitoredMachine::look_at(std::move(connection.access))));
  ObservedMachine observed{
      nullptr, machine->name(), machine->stopped_by(), {}, [asked = machine.get()] {
        return asked->throttled_drives();
      }};
  if (const auto& why = machine->why_not_stopped()) {
    observed.limits.push_back(not_stopped_because(*why));
  }
  observed.machine = std::move(machine);
  return observed;
}

std::optional<pid_t> process_of(const ProcessTarget& target) {
  return target.pid;
}

std::optional<pid_t> process_of(const QmpTarget& target) {
  return MonitorSocket::find_listener(target.path);
}

std::optional<pid_t> process_of(const DomainTarget& target) {
  const auto monitor = LibvirtMonitor::connect(target);
  const auto pid = monitor ? (*monitor)->find_process() : tl::make_unexpected(monitor.error());
  return pid ? std::optional(*pid) : std::nullopt;
}

Result<ObservedMachine> observe(const ProcessTarget& target) {
  return look_at_process(target.pid);
}

Result<ObservedMachine> look_by_monitor(const QmpTarget& target) {
  TRY(MonitorSocket::check_free(target.path));
  return look_by(TRY(connect(target)));
}

Result<ObservedMachine> look_by_monitor(const DomainTarget& target) {
  return look_by(TRY(connect(target)));
}

/// Where the monitor has another client, or its QEMU hangs itself, what the memory says is better
/// than nothing.
template <class MonitorTarget>
Result<ObservedMachine> observe(const MonitorTarget& target) {
  auto observed = look_by_monitor(target);
  if (observed || observed.error().code != ErrorCode::Io) return observed;
  const auto process = process_of(target);
  if (!process) return observed;
  auto alone = look_at_process(*process);
  if (!alone) return observed;
  alone->limits.push_back("its monitor: " + observed.error().message);
  return alone;
}

}  // namespace

Result<AttachedMachine> attach(const AttachTarget& target, CardUse card) {
  return std::visit([card](const auto& where) { return attach_to(where, card); }, target.where);
}

std::optional<pid_t> find_process(const AttachTarget& target) {
  return std::visit([](const auto& where) { return process_of(where); }, target.where);
}

std::string not_stopped_because(std::string_view why) {
  return fmt::format("one moment for all: the guest was not stopped for this, because {}", why);
}

Result<ObservedMachine> look_at_memory(pid_t process) {
  return look_at_process(process, ObservedProcess::Reach::Memory);
}

Result<ObservedMachine> look_at(const AttachTarget& target) {
  return std::visit([](const auto& where) { return observe(where); }, target.where);
}

}  // namespace ringside::vmm
