// In this file, top to bottom: functions without an ftrace site, the places of probes.
#include "providers/functions/function_probes.h"

#include <fmt/format.h>

#include <algorithm>

#include "providers/functions/function_names.h"
#include "providers/trap_points/sites/function_sites.h"
#include "vmm/linux/text/kprobes.h"

namespace ringside::providers {

using guest_linux::Symbol;

const Result<BareFunctions::Ranges>& BareFunctions::blacklist() {
  if (!blacklist_) {
    blacklist_ = guest_linux::read_kprobe_blacklist(text_, kernel_.symbols(), kernel_.types());
  }
  return *blacklist_;
}

/// Assemblers describe their functions, too (binutils 2.41 and later), with neither parameters nor
/// a result.
bool BareFunctions::is_of_c(const Symbol& function) const {
  const auto prototype = kernel_.prototype(function);
  if (!prototype) return false;
  const Type& type = kernel_.types()[*prototype];
  return type.kind == TypeKind::Function && (type.length != 0 || type.target != TypeId{});
}

Result<void> BareFunctions::check(const Symbol& function) {
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::Unsupported,
                fmt::format("{} has no ftrace site, and {}", function.name, why));
  };
  const auto modules = kernel_.symbols().modules();
  if (!modules[function.module].has_text_at(function.address)) {
    return refuse("is not in the kernel's text");
  }
  const FunctionForm form = function_form(function.name);
  if (form.is_cold) return refuse("is no function of its own: its function jumps to it");
  Symbol source = function;
  source.name = form.source;
  if (!is_of_c(function) && (form.source.empty() || !is_of_c(source))) {
    return refuse("the kernel's types do not show it to be a function of C");
  }
  const Result<Ranges>& kept = blacklist();
  if (!kept) return refuse(kept.error().message);
  const bool is_kept = std::ranges::any_of(
      *kept, [&](const auto& range) { return range.contains(function.address); });
  if (is_kept) return refuse("the kernel keeps its kprobes from it");
  return {};
}

Result<GuestVirt> BareFunctions::entry(const Symbol& function) {
  if (!good_.contains(function.address)) {
    TRY(check(function));
    good_.insert(function.address);
  }
  return after_landing_pad(text_, function);
}

namespace {

constexpr auto kPolicy = SitePolicy::Normal;

}  // namespace

bool FunctionProbes::has_ftrace_site(const guest_linux::Symbol& function) const {
  return ftrace_site(text_, function, &kernel_.symbols()).has_value();
}

Result<GuestVirt> FunctionProbes::entry_of(const guest_linux::Symbol& function) {
  switch (points_.without_ftrace_site()) {
    case WithoutFtraceSite::All: return function.address;
    case WithoutFtraceSite::None: break;
    case WithoutFtraceSite::Safe:
      if (!has_ftrace_site(function)) return bare_.entry(function);
      break;
  }
  return entry_site(text_, function, &kernel_.symbols());
}

Result<std::vector<BoundSite>> FunctionProbes::entry(const guest_linux::Symbol& function) {
  const GuestVirt at = TRY(entry_of(function));
  const ProbeSite site = TRY(points_.examine(at, kPolicy));
  TRY(check_entered_once(text_, kernel_.symbols(), function, at));
  BoundSite bound{site, {}};
  bound.binding.plan = &kFunctionEntryArguments;
  return std::vector{bound};
}

Result<std::vector<BoundSite>> FunctionProbes::exits(const guest_linux::Symbol& function) {
  // A function without an entry probe: a return alone is of no use.
  TRY(entry_of(function));
  const std::vector<ReturnSite> sites = TRY(return_sites(text_, kernel_.symbols(), function));
  if (sites.empty()) return fail(ErrorCode::Unsupported, "it never returns");
  std::vector<BoundSite> bound;
  bound.reserve(sites.size());
  for (const ReturnSite& site : sites) {
    Binding binding;
    binding.site = site.offset;
    binding.plan = site.has_value ? &kFunctionReturnArguments : &kFunctionExitArguments;
    binding.condition = site.condition;
    bound.push_back({TRY(points_.examine(site.address, kPolicy)), binding, site.target});
  }
  return bound;
}

bool takes_one_word(const TypeGraph& types, TypeId type) {
  const Type& plain = types[types.resolve(type)];
  switch (plain.kind) {
    case TypeKind::Integer:
    case TypeKind::Enum: return plain.size <= sizeof(std::uint64_t);
    case TypeKind::Pointer: return true;
    default: return false;
  }
}

}  // namespace ringside::providers
