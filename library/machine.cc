// A machine: opened, its probes, and what can be seen of it while nothing enters it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/look/look.h"
#include "cli/options/machine_list.h"
#include "cli/why/why.h"
#include "dif/program/probe_description.h"
#include "library/handles.h"
#include "vmm/attach/attach.h"
#include "vmm/linux/discovery/discover.h"

namespace ringside::library {
namespace {

using List = cli::LookOptions::List;

/// Lines about what is missing are in the lists themselves.
const cli::MessageReceiver kNobody = [](std::string_view) {};

/// By its process: a monitor's socket has one client at a time, and a trace needs it.
Result<std::shared_ptr<Look>> make_look(const ringside_vm& vm) {
  const auto process = vmm::find_process(vm.target);
  if (!process) return fail(ErrorCode::MachineGone, vm.name + ": the machine has ended");
  auto observed = TRY(vmm::look_at_memory(*process));
  auto kernel =
      TRY(guest_linux::discover_kernel(*observed.machine, guest_linux::Boot::AnyStage, nullptr));
  return std::make_shared<Look>(std::make_unique<cli::LookedAt>(
      std::move(observed.machine), std::move(kernel), vm.name, cli::LookedAt::Life::Runs));
}

Result<cli::LookOptions> list_of(std::string_view name) {
  struct Named {
    std::string_view name;
    List list;
  };
  constexpr std::array kLists{Named{"ps", List::Processes},   Named{"threads", List::Processes},
                              Named{"dmesg", List::Log},      Named{"modules", List::Modules},
                              Named{"mounts", List::Mounts},  Named{"lsof", List::Files},
                              Named{"netstat", List::Sockets}};
  const auto found = std::ranges::find(kLists, name, &Named::name);
  if (found == kLists.end()) {
    return fail(ErrorCode::Usage,
                fmt::format("there is no list '{}': ps, threads, dmesg, modules, mounts, lsof and "
                            "netstat",
                            name));
  }
  cli::LookOptions look;
  look.list = found->list;
  look.threads = name == "threads";
  return look;
}

Result<Tree> read_list(ringside_vm& vm, std::string_view name) {
  const cli::LookOptions options = TRY(list_of(name));
  const auto look = TRY(look_of(vm));
  look->machine->forget();
  auto looked = TRY(cli::read_list(options, *look->machine));
  looked.machine = vm.name;
  return cli::look_tree(options, looked);
}

Result<std::unique_ptr<ringside_vm>> open(const char* target) {
  auto vm = std::make_unique<ringside_vm>();
  vm->line.machines.emplace_back().attach = {target, {}};
  TRY(cli::complete_machines(vm->line));
  const cli::MachineOptions& machine = vm->line.machines.front();
  vm->target = *machine.attach;
  auto observed = TRY(vmm::look_at(vm->target));
  vm->name = machine.name.empty() ? observed.name : machine.name;
  observed.machine->shut_down();  // turns away
  return vm;
}

/// The fields that are given are the last ones, as in D.
dif::ProbeDescription description_of(std::string_view text) {
  std::array<std::string, 4> parts;
  for (std::size_t n = parts.size(); n-- > 0 && !text.empty();) {
    const std::size_t colon = n == 0 ? text.npos : text.rfind(':');
    parts[n] = text.substr(colon == text.npos ? 0 : colon + 1);
    text = text.substr(0, colon == text.npos ? 0 : colon);
  }
  return {parts[0], parts[1], parts[2], parts[3]};
}

Result<void> visit_probes(const ringside_vm& vm, HandleOrder& order, std::string_view description,
                          const std::function<bool(const dif::ProbeDescription&)>& visit) {
  cli::CommandLine line = vm.line;
  line.settings.quiet = true;
  cli::Tracing tracing(line, order);
  auto attached = tracing.attach();
  if (!attached) return tl::make_unexpected(tracing.or_lost_machine(std::move(attached).error()));
  bool goes_on = true;
  return tracing.targets().front().target->tracer().for_each_probe(
      description_of(description), [&](const providers::Probe& probe) {
        if (goes_on) goes_on = visit(probe.name);
      });
}

}  // namespace

Look::Look(std::unique_ptr<cli::LookedAt> looked)
    : machine(std::move(looked)), types(&machine->view().types()) {}

Result<std::shared_ptr<Look>> look_of(ringside_vm& vm) {
  if (vm.look == nullptr) vm.look = TRY(make_look(vm));
  TRY(check_there(*vm.look));
  return vm.look;
}

Result<void> check_there(const Look& look) {
  if (look.machine->is_there()) return {};
  return fail(ErrorCode::MachineGone, look.machine->name() + ": the machine has ended");
}

}  // namespace ringside::library

using namespace ringside::library;

ringside_vm* ringside_open(const char* target, ringside_error** error) {
  const HandleOrder order;
  const Call call(order, kNobody);
  auto vm = open(target);
  if (vm) return vm->release();
  tell_error(error, vm.error());
  return nullptr;
}

void ringside_close(ringside_vm* vm) {
  const BlockedSignals blocked;
  if (vm != nullptr && vm->made_by.is_here()) delete vm;
}

const char* ringside_vm_name(const ringside_vm* vm) {
  return vm->name.c_str();
}

int ringside_probes(ringside_vm* vm, const char* description, ringside_probe_visitor visit,
                    void* context, ringside_error** error) {
  HandleOrder order;
  const Call call(order, kNobody);
  const auto done = visit_probes(*vm, order, description, [&](const auto& probe) {
    return visit(context, probe.provider.c_str(), probe.module.c_str(), probe.function.c_str(),
                 probe.name.c_str()) == 0;
  });
  if (done) return 0;
  tell_error(error, done.error());
  return RINGSIDE_FAILED;
}

ringside_value* ringside_why(ringside_vm* vm, ringside_error** error) {
  const HandleOrder order;
  const Call call(order, kNobody);
  const auto examined = ringside::cli::examine_machine({vm->target.text, {}, {}});
  if (examined) return give_value(ringside::cli::health_tree(examined->name, examined->health));
  tell_error(error, examined.error());
  return nullptr;
}

ringside_value* ringside_list(ringside_vm* vm, const char* list, ringside_error** error) {
  const HandleOrder order;
  const Call call(order, kNobody);
  auto tree = read_list(*vm, list);
  if (tree) return give_value(std::move(*tree));
  tell_error(error, tree.error());
  return nullptr;
}
