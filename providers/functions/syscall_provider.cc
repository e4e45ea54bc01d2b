// In this file, top to bottom: the return in a new task, the provider.
#include "providers/functions/syscall_provider.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "providers/context/linux_context.h"
#include "vmm/linux/layout.h"

namespace ringside::providers {

bool comes_back_in_child(std::string_view call) {
  constexpr std::array<std::string_view, 4> kCalls{"clone", "clone3", "fork", "vfork"};
  return std::ranges::find(kCalls, call) != kCalls.end();
}

KeepsArguments keeps_arguments(std::string_view call) {
  // sigreturn loads other registers, and while a task forks, its debugger may change them.
  if (call == "rt_sigreturn" || comes_back_in_child(call)) return KeepsArguments::No;
  // A new program begins with registers of its own.
  const bool is_exec = call == "execve" || call == "execveat";
  return is_exec ? KeepsArguments::UntilSuccess : KeepsArguments::Yes;
}

ChildRegisters::ChildRegisters(const PtRegsLayout& layout, const guest_linux::Kernel& kernel)
    : layout_(layout),
      stack_bytes_(guest_linux::kernel_stack_bytes(kernel.symbols())),
      saved_at_(guest_linux::find_saved_registers(kernel.symbols())),
      task_stack_(kernel.layout().task_stack) {}

Result<std::uint64_t, Fault> ChildRegisters::argument(unsigned n, const ArgumentMoment& at) const {
  const GuestVirt stack(at.registers.*arch::kStackPointer & ~(stack_bytes_ - 1));
  const std::uint64_t offset = n == kResult ? layout_.result : layout_.number;
  return load<std::uint64_t>(at.kernel, stack.wrapping_add(saved_at_ + offset));
}

/// The stack of this moment is the new task's own.
RecordedArgument ChildRegisters::recorded(unsigned n) const {
  using Base = dif::RecordAddress::Base;
  RecordedArgument argument;
  dif::RecordNeeds& needs = argument.code.needs;
  if (!task_stack_) {
    needs.obstacle = "the kernel's types do not tell where the child's registers lie";
    return argument;
  }
  const std::uint64_t offset = n == kResult ? layout_.result : layout_.number;
  constexpr std::uint32_t kWord = sizeof(std::uint64_t);
  const std::uint16_t stack = needs.add({{Base::Task, 0, *task_stack_}, kWord});
  needs.add({{Base::Load, stack, static_cast<std::int64_t>(saved_at_ + offset)}, kWord});
  return argument;
}

ArgumentPlan ChildRegisters::plan() const {
  const auto result = ArgumentSource::computed(*this, kResult);
  ArgumentPlan plan = arguments_from({result, result});
  plan.system_call_result = result;
  plan.system_call_number = ArgumentSource::computed(*this, kNumber);
  return plan;
}

namespace {

using enum dif::Stability;
using enum dif::DependencyClass;

constexpr dif::ProviderAttributes kSyscallAttributes{
    .provider = {Evolving, Evolving, Common},
    .module = {Private, Private, Unknown},
    .function = {Unstable, Unstable, Isa},
    .name = {Evolving, Evolving, Common},
    .arguments = {Unstable, Unstable, Isa},
};

}  // namespace

SyscallProvider::SyscallProvider(const GuestReader& text, guest_linux::Kernel& kernel,
                                 ProbePoints& points)
    : EntryReturnProvider("syscall", kSyscallAttributes, points, kernel.types()),
      kernel_(kernel),
      layout_(find_pt_regs(kernel.types())),
      entry_plan_(system_call_entry_plan(layout_)),
      child_(layout_, kernel),
      child_plan_(child_.plan()),
      return_plans_(return_plans(kSystemCallReturnArguments)),
      text_(text),
      parameters_(text_, kernel),
      calls_(find_system_calls(text_, kernel.symbols())) {}

dif::ProbeDescription SyscallProvider::function_name(std::size_t function) const {
  return {{}, "vmlinux", calls_[function].name, {}};
}

void SyscallProvider::for_each_function(const dif::ProbeDescription& pattern,
                                        const std::function<void(std::size_t)>& visit) const {
  if (!dif::field_matches(pattern.module, "vmlinux")) return;
  for (std::size_t index = 0; index < calls_.size(); ++index) {
    if (dif::field_matches(pattern.function, calls_[index].name)) visit(index);
  }
}

Result<std::vector<BoundSite>> SyscallProvider::find_sites(FunctionEnd place) {
  const SystemCall& call = calls_[place.function];
  if (place.end == End::Return) {
    std::vector<BoundSite> sites = TRY(exits(call));
    if (comes_back_in_child(call.name)) {
      std::ranges::move(TRY(exits_in_child(call)), std::back_inserter(sites));
    }
    return sites;
  }
  return std::vector{TRY(bound_entry(call))};
}

Result<BoundSite> SyscallProvider::bound_entry(const SystemCall& call) {
  const GuestVirt at = TRY(entry_site(text_, call.function, &kernel_.symbols()));
  TRY(check_entered_once(text_, kernel_.symbols(), call.function, at));
  BoundSite bound{TRY(points().examine(at, SitePolicy::Normal)), {}};
  bound.binding.plan = &entry_plan_;
  return bound;
}

Result<std::vector<BoundSite>> SyscallProvider::exits(const SystemCall& call) {
  TRY(bound_entry(call));  // a return without its entry would not balance
  const std::vector<ReturnSite> sites = TRY(return_sites(text_, kernel_.symbols(), call.function));
  if (sites.empty()) return fail(ErrorCode::Unsupported, "it never returns");
  std::vector<BoundSite> exits;
  for (const ReturnSite& at : sites) {
    if (!at.has_value) return shared_exits(call);
    const auto site = points().examine(at.address, SitePolicy::Normal);
    if (!site) return shared_exits(call);
    exits.push_back({*site, {}});
    exits.back().binding.plan =
        &return_plans_[static_cast<std::size_t>(keeps_arguments(call.name))];
  }
  return exits;
}

Result<std::vector<BoundSite>> SyscallProvider::exits_in_child(const SystemCall& call) {
  const guest_linux::SymbolTable& symbols = kernel_.symbols();
  const auto* const function = symbols.find(kFirstOfTask, "vmlinux");
  if (function == nullptr || call.number >= kSyscallNumbers) {
    return fail(ErrorCode::Unsupported, "its return in the new task cannot be told from others'");
  }
  std::vector<BoundSite> exits;
  for (const ReturnSite& at : TRY(return_sites(text_, symbols, *function))) {
    BoundSite exit{TRY(points().examine(at.address, SitePolicy::Normal)), {}};
    exit.binding.plan = &child_plan_;
    exit.binding.number = call.number;
    exits.push_back(exit);
  }
  return exits;
}

SyscallProvider::ReturnPlans SyscallProvider::return_plans(const ArgumentPlan& plan) const {
  ArgumentPlan keeps = plan;
  const std::uint64_t registers = guest_linux::find_saved_registers(kernel_.symbols());
  for (std::size_t n = 0; n < layout_.arguments.size(); ++n) {
    keeps.kept.on_stack[n] = static_cast<std::uint32_t>(registers + layout_.arguments[n]);
  }
  ArgumentPlan until_success = keeps;
  until_success.kept.until_success = true;
  return {plan, until_success, keeps};
}

void SyscallProvider::find_shared() {
  shared_.emplace();
  for (const SharedReturn& place : find_shared_returns(text_, kernel_.symbols(), layout_)) {
    ArgumentPlan plan = kSystemCallReturnArguments;
    plan.system_call_number = ArgumentSource::word(place.pt_regs, layout_.number);
    shared_->push_back({place.address, return_plans(plan)});
  }
}

Result<std::vector<BoundSite>> SyscallProvider::shared_exits(const SystemCall& call) {
  // The number is in orig_ax. sigreturn overwrites it, and execveat, where it succeeds, makes it
  // execve's; with it goes the way to know their returns.
  const bool loses_number = call.name == "rt_sigreturn" || call.name == "execveat";
  if (call.number >= kSyscallNumbers || loses_number) {
    return fail(ErrorCode::Unsupported, "its return cannot be told from others'");
  }
  if (!shared_) find_shared();
  if (shared_->empty()) {
    return fail(ErrorCode::Unsupported, "the common return path of this kernel is not understood");
  }
  std::vector<BoundSite> exits;
  for (const Shared& place : *shared_) {
    BoundSite exit{TRY(points().examine(place.address, SitePolicy::AllowNoinstr)), {}};
    exit.binding.plan = &place.plans[static_cast<std::size_t>(keeps_arguments(call.name))];
    exit.binding.number = call.number;
    exit.binding.at_function_edge = false;  // the frame is do_syscall_64's own
    exits.push_back(exit);
  }
  return exits;
}

ProbeArguments SyscallProvider::entry_arguments(const SystemCall& call) {
  if (auto described = parameters_.of(call.name)) return std::move(*described);
  // __x64_sys_NAME itself only takes pt_regs. These carry the call's own parameters, where the
  // compiler kept them; __se_sys_ has the right names, though every type is long.
  const TypeGraph& types = kernel_.types();
  for (const std::string_view prefix : {"__do_sys_", "ksys_", "__se_sys_"}) {
    const auto* symbol = kernel_.symbols().find(fmt::format("{}{}", prefix, call.name), "vmlinux");
    const auto prototype = symbol != nullptr ? kernel_.prototype(*symbol) : std::nullopt;
    if (!prototype || types[*prototype].kind != TypeKind::Function) continue;
    ProbeArguments arguments;
    arguments.known = true;
    for (const Parameter& parameter : types.parameters(*prototype)) {
      arguments.types.push_back(parameter.type);
      arguments.names.emplace_back(parameter.name);
    }
    return arguments;
  }
  return {};
}

ProbeArguments SyscallProvider::arguments(const Probe& probe) {
  const auto place = place_of(probe.id);
  if (!place) return {};
  if (place->end == End::Entry) return entry_arguments(calls_[place->function]);
  const auto value = kernel_.types().find("long");
  if (!value) return {};
  return {.known = true, .types = {*value, *value}, .names = {"value", "value"}, .translated = {}};
}

}  // namespace ringside::providers
