// In this file, top to bottom: functions by their names, whether a place is there, where to stand.
#include "providers/stable/kernel_places.h"

#include <fmt/format.h>

#include <algorithm>

#include "providers/functions/function_names.h"
#include "providers/stable/first_found.h"
#include "vmm/linux/layout.h"

namespace ringside::providers {
namespace {

using dif::ProbePlace;

/// Whether it is all of the source's function: no .part, whose beginning is elsewhere.
bool is_whole_form_of(std::string_view symbol, std::string_view source) {
  const FunctionForm form = function_form(symbol);
  return form.source == source && !form.is_part && !form.is_cold;
}

/// The function of this name, or its form that the compiler made. Null: there is none.
const guest_linux::Symbol* find_function(const guest_linux::SymbolTable& symbols,
                                         std::string_view name, std::string_view module) {
  const guest_linux::Symbol* const plain = symbols.find(name, module);
  if (plain != nullptr && plain->is_text()) return plain;
  const auto all = symbols.symbols();
  const auto found = std::ranges::find_if(all, [&](const guest_linux::Symbol& symbol) {
    return symbol.is_text() && symbol.name.starts_with(name) &&
           symbols.modules()[symbol.module].name == module && is_whole_form_of(symbol.name, name);
  });
  return found != all.end() ? &*found : nullptr;
}

/// The type that C writes so: a name, "struct NAME", or a pointer to one of these. The kernel's
/// graph cannot get new types, so a pointer is found if the kernel uses one.
std::optional<TypeId> find_written_type(const TypeGraph& types, std::string_view text) {
  if (text.ends_with(" *")) {
    text.remove_suffix(2);
    const auto target = find_written_type(types, text);
    if (!target) return std::nullopt;
    const Type& wanted = types[*target];
    const auto leads_there = [&](TypeId id) {
      if (types[id].kind != TypeKind::Pointer) return false;
      TypeId target = types[id].target;
      while (types[target].kind == TypeKind::Typedef) target = types[target].target;
      const Type& found = types[target];  // as it stands: no const
      return found.kind == wanted.kind && found.name == wanted.name;
    };
    for (TypeId id{1}; id < types.next_id(); ++id.value) {
      if (leads_there(id)) return id;
    }
    return std::nullopt;
  }
  constexpr std::string_view kStruct = "struct ";
  if (!text.starts_with(kStruct)) return types.find(text);
  return types.find(TypeKind::Struct, text.substr(kStruct.size()));
}

}  // namespace

bool KernelPlaces::is(dif::ProbeDefinition::Kernels form) {
  using enum dif::ProbeDefinition::Kernels;
  if (form == Any) return true;
  return guest_linux::is_realtime(kernel_.symbols()) == (form == RealTime);
}

Result<TypeId> KernelPlaces::written_type(const std::string& written) {
  const auto [known, is_new] = types_.try_emplace(written);
  if (is_new) known->second = find_written_type(kernel_.types(), written);
  const auto found = known->second;
  const Type* const plain = found ? &kernel_.types()[kernel_.types().resolve(*found)] : nullptr;
  if (plain == nullptr || plain->size == 0) {
    return fail(ErrorCode::Unsupported, fmt::format("this kernel has no type {}", written));
  }
  if (plain->size > sizeof(std::uint64_t)) {
    return fail(ErrorCode::Unsupported,
                fmt::format("a {} has {} bytes, and an argument at most 8: pass a pointer to it",
                            written, plain->size));
  }
  return *found;
}

const guest_linux::Symbol* KernelPlaces::function(const ProbePlace& place) {
  return place.is_function() ? function_at(place.name, place.module) : nullptr;
}

const guest_linux::Symbol* KernelPlaces::function_at(std::string_view names,
                                                     std::string_view module) {
  const auto [known, is_new] = known_.try_emplace({module, names});
  if (is_new) {
    known->second = first_found(names, [&](std::string_view name) {
      return find_function(kernel_.symbols(), name, module);
    });
  }
  return known->second;
}

std::string KernelPlaces::function_name(const ProbePlace& place) {
  if (place.kind == ProbePlace::Kind::Nowhere) return {};
  if (const auto* const found = function(place)) return std::string(found->name);
  std::string_view name = place.name;
  if (place.kind == ProbePlace::Kind::Counter) {  // the enumerator
    name.remove_prefix(name.find('[') + 1);
    name.remove_suffix(1);
  }
  return std::string(name.substr(0, name.find('|')));
}

std::span<const Parameter> KernelPlaces::parameters(const ProbePlace& place) const {
  if (place.kind != ProbePlace::Kind::Tracepoint) return {};
  return tracepoints_.prototype_arguments(place.name);
}

Result<void> KernelPlaces::check_function(const ProbePlace& place) {
  if (function(place) == nullptr && place.or_in_callers) {
    return fail(ErrorCode::NotFound,
                fmt::format("this kernel has {} inlined in its callers", place.name));
  }
  if (function(place) == nullptr) {
    return fail(ErrorCode::Unsupported, fmt::format("this kernel has no function {}", place.name));
  }
  const std::string_view also = place.unless_inlined;
  if (also.empty() || function_at(also, place.module) != nullptr) return {};
  return fail(
      ErrorCode::Unsupported,
      fmt::format("this kernel has {} inlined in its callers, where it would be missed", also));
}

Result<void> KernelPlaces::check(const ProbePlace& place) {
  switch (place.kind) {
    case ProbePlace::Kind::Entry:
    case ProbePlace::Kind::Return:
    case ProbePlace::Kind::OwnReturn: return check_function(place);
    case ProbePlace::Kind::Tracepoint:
    case ProbePlace::Kind::UserEntry:
    case ProbePlace::Kind::UserReturn: return {};
    case ProbePlace::Kind::Counter: return counters_.check(place.name);
    case ProbePlace::Kind::Nowhere: return fail(ErrorCode::Unsupported, std::string(place.name));
  }
  __builtin_unreachable();
}

Result<std::vector<BoundSite>> KernelPlaces::function_sites(const ProbePlace& place) {
  const auto* const found = function(place);
  if (found == nullptr) return fail(ErrorCode::Unsupported, "the function is gone");
  if (place.kind == ProbePlace::Kind::Entry) return functions_.entry(*found);
  auto sites = TRY(functions_.exits(*found));
  const auto is_jump = [](const BoundSite& bound) {
    return bound.binding.plan == &kFunctionExitArguments;
  };
  if (place.kind == ProbePlace::Kind::OwnReturn) {
    std::erase_if(sites, is_jump);
    if (!sites.empty()) return sites;
    return fail(ErrorCode::Unsupported,
                fmt::format("{} of this kernel leaves by jumps alone", found->name));
  }
  const bool lacks_result = std::ranges::any_of(sites, is_jump);
  if (place.needs_result && lacks_result) {
    return fail(ErrorCode::Unsupported,
                fmt::format("{} of this kernel leaves by a jump, where its result is not known",
                            found->name));
  }
  return sites;
}

Result<std::vector<BoundSite>> KernelPlaces::sites(const ProbePlace& place) {
  switch (place.kind) {
    case ProbePlace::Kind::Entry:
    case ProbePlace::Kind::Return:
    case ProbePlace::Kind::OwnReturn: return function_sites(place);
    case ProbePlace::Kind::Tracepoint:
      return tracepoints_.bound_sites(place.name, place.never_in, place.never_called_by);
    case ProbePlace::Kind::Counter: return counters_.sites_of(place.name);
    case ProbePlace::Kind::UserEntry:
    case ProbePlace::Kind::UserReturn: return std::vector<BoundSite>();
    case ProbePlace::Kind::Nowhere: return fail(ErrorCode::Unsupported, std::string(place.name));
  }
  __builtin_unreachable();
}

}  // namespace ringside::providers
