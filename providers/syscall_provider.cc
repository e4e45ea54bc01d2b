#include "providers/syscall_provider.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

namespace ringside::providers {
namespace {

using enum dif::Stability;
using enum dif::DependencyClass;

constexpr dif::ProviderAttributes kAttributes{
    .provider = {Evolving, Evolving, Common},
    .module = {Private, Private, Unknown},
    .function = {Unstable, Unstable, Isa},
    .name = {Evolving, Evolving, Common},
    .arguments = {Unstable, Unstable, Isa},
};

}  // namespace

SyscallProvider::SyscallProvider(const GuestReader& text, guest_linux::Kernel& kernel,
                                 ProbePoints& points, const PtRegsLayout& pt_regs)
    : EntryReturnProvider("syscall", kAttributes),
      kernel_(kernel),
      points_(points),
      pt_regs_(pt_regs),
      text_(text),
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

Result<void> SyscallProvider::check(Place place) {
  const SystemCall& call = calls_[place.function];
  if (place.end == End::Entry) {
    TRY(entry_place(call));
  } else {
    TRY(exits(call));
  }
  return {};
}

Result<GuestVirt> SyscallProvider::entry_place(const SystemCall& call) {
  const GuestVirt at = TRY(entry_site(text_, call.function, &kernel_.symbols()));
  TRY(check_entered_once(text_, kernel_.symbols(), call.function, at));
  TRY(points_.check(at, ProbePoints::Policy::Normal));
  return at;
}

Result<std::vector<SyscallProvider::Exit>> SyscallProvider::exits(const SystemCall& call) {
  TRY(entry_place(call));  // a return without its entry would not balance
  const std::vector<ReturnSite> sites = TRY(return_sites(text_, kernel_.symbols(), call.function));
  if (sites.empty()) return fail(ErrorCode::Unsupported, "it never returns");
  std::vector<Exit> exits;
  for (const ReturnSite& site : sites) {
    if (!site.has_value || !points_.check(site.address, ProbePoints::Policy::Normal)) {
      return shared_exits(call);
    }
    Exit exit{site.address, ProbePoints::Policy::Normal, {}};
    exit.binding.kind = BindingKind::SyscallReturn;
    exits.push_back(exit);
  }
  return exits;
}

Result<std::vector<SyscallProvider::Exit>> SyscallProvider::shared_exits(const SystemCall& call) {
  // The number is in orig_ax. sigreturn overwrites it, and execveat, where it succeeds, makes it
  // execve's; with it goes the way to know their returns.
  const bool loses_number = call.name == "rt_sigreturn" || call.name == "execveat";
  if (call.number >= kSyscallNumbers || loses_number) {
    return fail(ErrorCode::Unsupported, "its return cannot be told from others'");
  }
  if (!shared_) shared_ = find_shared_returns(text_, kernel_.symbols(), pt_regs_);
  if (shared_->empty()) {
    return fail(ErrorCode::Unsupported, "the common return path of this kernel is not understood");
  }
  std::vector<Exit> exits;
  for (const SharedReturn& place : *shared_) {
    TRY(points_.check(place.address, ProbePoints::Policy::AllowNoinstr));
    Exit exit{place.address, ProbePoints::Policy::AllowNoinstr, {}};
    exit.binding.kind = BindingKind::SyscallReturn;
    exit.binding.number = call.number;
    exit.binding.regs_register = place.regs_register;
    exits.push_back(exit);
  }
  return exits;
}

ProbeArguments SyscallProvider::entry_arguments(const SystemCall& call) const {
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
  return {true, {*value, *value}, {"value", "value"}};
}

Result<void> SyscallProvider::enable(const Probe& probe) {
  const auto place = place_of(probe.id);
  if (!place) return no_such_probe();
  if (!note_enabled(probe.id)) return {};
  const SystemCall& call = calls_[place->function];
  if (place->end == End::Entry) {
    Binding binding;
    binding.probe = probe.id;
    binding.kind = BindingKind::SyscallEntry;
    const GuestVirt at = TRY(entry_place(call));
    return points_.bind(at, ProbePoints::Policy::Normal, binding);
  }
  std::vector<Exit> places = TRY(exits(call));
  for (Exit& exit : places) {
    exit.binding.probe = probe.id;
    TRY(points_.bind(exit.at, exit.policy, exit.binding));
  }
  return {};
}

}  // namespace ringside::providers
