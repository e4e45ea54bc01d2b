// In this file, top to bottom: functions by their names, whether a place is there, where to stand.
#include "providers/stable/kernel_places.h"

#include <fmt/format.h>

#include <algorithm>

#include "providers/functions/function_names.h"
#include "providers/stable/first_found.h"
#include "vmm/linux/layout.h"

namespace ringside::providers {
namespace {

/// Whether it is all of the source's function: no .part, whose beginning is elsewhere.
bool is_whole_form_of(std::string_view symbol, std::string_view source) {
  const FunctionForm form = function_form(symbol);
  return form.source == source && !form.is_part && !form.is_cold;
}

/// The function of this name, or its form that the compiler made. Null: there is none.
const guest_linux::Symbol* find_function(const guest_linux::SymbolTable& symbols,
                                         std::string_view name) {
  const guest_linux::Symbol* const plain = symbols.find(name, kKernelModule);
  if (plain != nullptr && plain->is_text()) return plain;
  const auto all = symbols.symbols();
  const auto found = std::ranges::find_if(all, [&](const guest_linux::Symbol& symbol) {
    return symbol.module == 0 && symbol.is_text() && symbol.name.starts_with(name) &&
           is_whole_form_of(symbol.name, name);
  });
  return found != all.end() ? &*found : nullptr;
}

bool is_of_function(const StableProbe& probe) {
  return probe.kind == PlaceKind::Entry || probe.kind == PlaceKind::Return ||
         probe.kind == PlaceKind::OwnReturn;
}

}  // namespace

bool KernelPlaces::is(KernelForm form) {
  if (form == KernelForm::Any) return true;
  return guest_linux::is_realtime(kernel_.symbols()) == (form == KernelForm::RealTime);
}

const guest_linux::Symbol* KernelPlaces::function(const StableProbe& probe) {
  return is_of_function(probe) ? function_at(probe.place) : nullptr;
}

const guest_linux::Symbol* KernelPlaces::function_at(std::string_view place) {
  const auto [known, is_new] = known_.try_emplace(place);
  if (is_new) {
    known->second = first_found(
        place, [&](std::string_view name) { return find_function(kernel_.symbols(), name); });
  }
  return known->second;
}

std::string KernelPlaces::function_name(const StableProbe& probe) {
  if (probe.kind == PlaceKind::Nowhere) return {};
  if (const auto* const found = function(probe)) return std::string(found->name);
  std::string_view name = probe.place;
  if (probe.kind == PlaceKind::Counter) {  // the enumerator
    name.remove_prefix(name.find('[') + 1);
    name.remove_suffix(1);
  }
  return std::string(name.substr(0, name.find('|')));
}

std::span<const Parameter> KernelPlaces::parameters(const StableProbe& probe) const {
  if (probe.kind != PlaceKind::Tracepoint) return {};
  return tracepoints_.prototype_arguments(probe.place);
}

Result<void> KernelPlaces::check_argument(const StableProbe& probe,
                                          const NativeValue& native) const {
  const bool is_argument = native.value.starts_with("arg") && native.value != kByType;
  if (probe.kind != PlaceKind::Tracepoint || !is_argument) return {};
  const std::size_t count = tracepoints_.parameter_count(std::string(probe.place));
  const auto n = static_cast<std::size_t>(native.value[3] - '0');  // "arg4"
  if (n < count) return {};
  return fail(ErrorCode::Unsupported,
              fmt::format("the static tracepoint {} of this kernel has {} arguments, and not {}",
                          probe.place, count, native.name));
}

Result<void> KernelPlaces::check_function(const StableProbe& probe) {
  if (function(probe) == nullptr && probe.or_in_callers) {
    return fail(ErrorCode::NotFound,
                fmt::format("this kernel has {} inlined in its callers", probe.place));
  }
  if (function(probe) == nullptr) {
    return fail(ErrorCode::Unsupported, fmt::format("this kernel has no function {}", probe.place));
  }
  const std::string_view also = probe.unless_inlined;
  if (also.empty() || function_at(also) != nullptr) return {};
  return fail(
      ErrorCode::Unsupported,
      fmt::format("this kernel has {} inlined in its callers, where it would be missed", also));
}

Result<void> KernelPlaces::check(const StableProbe& probe) {
  switch (probe.kind) {
    case PlaceKind::Entry:
    case PlaceKind::Return:
    case PlaceKind::OwnReturn: return check_function(probe);
    case PlaceKind::Tracepoint: return {};
    case PlaceKind::Counter: return counters_.check(probe.place);
    case PlaceKind::Nowhere: return fail(ErrorCode::Unsupported, std::string(probe.place));
  }
  __builtin_unreachable();
}

Result<std::vector<BoundSite>> KernelPlaces::function_sites(const StableProbe& probe) {
  const auto* const found = function(probe);
  if (found == nullptr) return fail(ErrorCode::Unsupported, "the function is gone");
  if (probe.kind == PlaceKind::Entry) return functions_.entry(*found);
  auto sites = TRY(functions_.exits(*found));
  const auto is_jump = [](const BoundSite& bound) {
    return bound.binding.plan == &kFunctionExitArguments;
  };
  if (probe.kind == PlaceKind::OwnReturn) {
    std::erase_if(sites, is_jump);
    return sites;
  }
  const bool needs_result = std::ranges::any_of(probe.natives, [](const NativeValue& native) {
    return native.value.find("result") != std::string_view::npos;
  });
  const bool lacks_result = std::ranges::any_of(sites, is_jump);
  if (needs_result && lacks_result) {
    return fail(ErrorCode::Unsupported,
                fmt::format("{} of this kernel leaves by a jump, where its result is not known",
                            found->name));
  }
  return sites;
}

Result<std::vector<BoundSite>> KernelPlaces::sites(const StableProbe& probe) {
  switch (probe.kind) {
    case PlaceKind::Entry:
    case PlaceKind::Return:
    case PlaceKind::OwnReturn: return function_sites(probe);
    case PlaceKind::Tracepoint:
      return tracepoints_.bound_sites(probe.place, probe.never_in, probe.never_called_by);
    case PlaceKind::Counter: return counters_.sites_of(probe.place);
    case PlaceKind::Nowhere: return fail(ErrorCode::Unsupported, std::string(probe.place));
  }
  __builtin_unreachable();
}

}  // namespace ringside::providers
