// In this file, top to bottom: names and ids, what a description asks for, modules that come, why a
// description asks for nothing, examining and enabling, what is said of a probe.
#include "providers/instr/instr.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "providers/functions/function_names.h"
#include "vmm/arch/arch.h"
#include "vmm/base/numbers.h"

namespace ringside::providers {
namespace {

using disasm::InstructionClass;
using disasm::Operation;
using guest_linux::Symbol;

using enum dif::Stability;
using enum dif::DependencyClass;

constexpr dif::ProviderAttributes kInstrAttributes{
    .provider = {Evolving, Evolving, Isa},
    .module = {Private, Private, Unknown},
    .function = {Private, Private, Unknown},
    .name = {Private, Private, Isa},
    .arguments = {Evolving, Evolving, Isa},
};

/// For the text of all modules; a guest that claims more has ids for as much.
constexpr std::uint32_t kMostIds = 1 << 30;

std::string name_at(InstructionClass kind, std::uint64_t offset) {
  return fmt::format("{}-{:x}", disasm::name_of(kind), offset);
}

/// The offset of "call-1c"; empty for what is no name of this provider.
std::optional<std::uint64_t> offset_in(std::string_view name) {
  const std::size_t dash = name.find('-');
  if (dash == name.npos || !disasm::class_named(name.substr(0, dash))) return std::nullopt;
  return parse_number<std::uint64_t>(name.substr(dash + 1), 16);
}

/// The instruction at the address, or the one that covers it; null when there is none.
const Operation* covering(const InstructionList& list, GuestVirt at) {
  const auto after = std::ranges::upper_bound(list.instructions, at, {}, &Operation::address);
  if (after == list.instructions.begin()) return nullptr;
  const Operation& found = *std::prev(after);
  return at.is_in(found.address, found.length) ? &found : nullptr;
}

}  // namespace

InstrProvider::InstrProvider(const GuestReader& text, guest_linux::Kernel& kernel,
                             ProbePoints& points)
    : Provider("instr", kInstrAttributes), text_(text), kernel_(kernel), points_(points) {
  for (const guest_linux::Module& module : kernel.symbols().modules()) {
    add_range(module, static_cast<std::uint32_t>(
                          std::min<std::uint64_t>(module.text_size, kMostIds - ids_)));
  }
  first_late_ = ids_;
}

void InstrProvider::add_range(const guest_linux::Module& module, std::uint32_t size) {
  ranges_.push_back({module.text_base, size, ids_});
  ids_ += size;
}

std::optional<std::uint32_t> InstrProvider::index_at(GuestVirt address) const {
  const auto range = std::ranges::find_if(ranges_, [&](const Range& one) {
    return !one.is_gone && address.is_in(one.begin, one.size);
  });
  if (range == ranges_.end()) return std::nullopt;
  return range->first + static_cast<std::uint32_t>(address.offset_from(range->begin));
}

dif::ProbeDescription InstrProvider::name_of(const ListedInstruction& place) const {
  const std::uint64_t offset = place.instruction.address.offset_from(place.function->address);
  return {std::string(name()), kernel_.symbols().modules()[place.function->module].name,
          std::string(place.function->name), name_at(place.instruction.kind, offset)};
}

Result<void> InstrProvider::add_places(const dif::ProbeDescription& pattern, const Symbol& function,
                                       const Trouble& trouble,
                                       std::vector<ListedInstruction>& out) const {
  const auto list = list_instructions(text_, kernel_.symbols(), function);
  if (!list) {
    trouble(function, list.error().message);
    return {};
  }
  for (const Operation& one : list->instructions) {
    const std::uint64_t offset = one.address.offset_from(function.address);
    if (!dif::field_matches(pattern.name, name_at(one.kind, offset))) continue;
    if (!index_at(one.address)) continue;  // of a module for which there are no ids
    ListedInstruction place{one, &function, {}};
    const bool of_head = list->ftrace && one.address < list->ftrace->end;
    if (of_head) place.stands_at = list->ftrace->end;
    out.push_back(place);
    if (out.size() > kMostProbes) {
      return fail(ErrorCode::Unsupported,
                  fmt::format("{} matches more than {} instructions; name a module, functions or "
                              "classes (instr:vmlinux:vfs_*:call-*)",
                              pattern.to_string(), kMostProbes));
    }
  }
  if (!list->trouble.empty()) trouble(function, list->trouble);
  return {};
}

/// All places that match, refused or not, once each: of a function with several names, the first
/// that matches.
Result<std::vector<InstrProvider::ListedInstruction>> InstrProvider::places(
    const dif::ProbeDescription& pattern, const Trouble& trouble) const {
  std::vector<ListedInstruction> out;
  // A user who asks for all probes does not mean a whole kernel's instructions.
  if (pattern.provider != name()) return out;
  const auto symbols = kernel_.symbols().symbols();
  Result<void> done;
  std::optional<GuestVirt> previous;
  for_each_function(kernel_.symbols(), pattern, [&](std::size_t index) {
    const Symbol& function = symbols[index];
    if (!done || std::exchange(previous, function.address) == function.address) return;
    done = add_places(pattern, function, trouble, out);
  });
  if (!done) return tl::make_unexpected(done.error());
  return out;
}

Result<void> InstrProvider::provide(const dif::ProbeDescription& pattern, const Visitor& visit) {
  const auto ignore = [](const Symbol&, const std::string&) {};
  visit_probes(TRY(places(pattern, ignore)), visit);
  return {};
}

void InstrProvider::visit_probes(const std::vector<ListedInstruction>& places,
                                 const Visitor& visit) {
  for (const ListedInstruction& place : places) {
    if (examine(place)) visit({id_at(*index_at(place.instruction.address)), name_of(place)});
  }
}

Result<void> InstrProvider::refusals(const dif::ProbeDescription& pattern,
                                     const RefusalVisitor& visit) {
  if (pattern.provider != name()) return {};
  std::vector<Refusal> functions;
  const auto note = [&](const Symbol& function, const std::string& why) {
    functions.push_back({{std::string(name()),
                          kernel_.symbols().modules()[function.module].name,
                          std::string(function.name),
                          {}},
                         why});
  };
  const auto found = places(pattern, note);
  if (!found) {
    visit({pattern, found.error().message});
    return {};
  }
  for (const Refusal& function : functions) visit(function);
  for (const ListedInstruction& place : *found) {
    const Result<void> fine = examine(place);
    if (!fine) visit({name_of(place), fine.error().message});
  }
  if (!found->empty()) return {};
  if (const std::string why = why_none(pattern); !why.empty()) visit({pattern, why});
  return {};
}

/// A module that comes again has the same ids, somewhere else.
Result<void> InstrProvider::admit(std::uint16_t module) {
  const guest_linux::Module& come = kernel_.symbols().modules()[module];
  const auto known = late_.find(module);
  if (known == late_.end() && come.text_size > id_count() - ids_) {
    return fail(ErrorCode::Limit, "there is no room for the instructions of more modules");
  }
  for (Range& range : ranges_) {
    const bool is_same_place =
        come.has_text_at(range.begin) || come.text_base.is_in(range.begin, range.size);
    if (!is_same_place) continue;
    forget(range);
    range.is_gone = true;
  }
  if (known == late_.end()) {
    late_[module] = ranges_.size();
    add_range(come, static_cast<std::uint32_t>(come.text_size));
    return {};
  }
  Range& again = ranges_[known->second];
  forget(again);
  again.begin = come.text_base;
  again.is_gone = false;
  return {};
}

/// The text there is gone, or is another one now.
void InstrProvider::forget(const Range& range) {
  std::erase_if(examined_, [&](const auto& one) {
    return GuestVirt(one.first).is_in(range.begin, range.size);
  });
  std::vector<dif::ProbeId> enabled;
  std::erase_if(enabled_, [&](std::uint32_t id) {
    const bool is_there = id - id_at(range.first).value < range.size;
    if (is_there) enabled.push_back({id});
    return is_there;
  });
  points_.forget(enabled);
}

Result<void> InstrProvider::provide_in(std::uint16_t module, const dif::ProbeDescription& pattern,
                                       const Visitor& visit) {
  const auto& table = kernel_.symbols();
  if (pattern.provider != name() || !late_.contains(module)) return {};
  if (!dif::field_matches(pattern.module, table.modules()[module].name)) return {};
  const auto ignore = [](const Symbol&, const std::string&) {};
  std::vector<ListedInstruction> found;
  std::optional<GuestVirt> previous;
  for (const Symbol& function : table.late(module)) {
    if (!function.is_text() || !dif::field_matches(pattern.function, function.name)) continue;
    if (std::exchange(previous, function.address) == function.address) continue;
    TRY(add_places(pattern, function, ignore, found));
  }
  visit_probes(found, visit);
  return {};
}

/// Why a description that names one place matches nothing; empty where it does not name one.
std::string InstrProvider::why_none(const dif::ProbeDescription& pattern) const {
  if (pattern.function.empty() || dif::is_glob(pattern.function)) return {};
  if (pattern.module.empty() || !dif::is_glob(pattern.module)) {
    const Symbol* const symbol = kernel_.symbols().find(pattern.function, pattern.module);
    if (symbol == nullptr) return {};
    if (!symbol->is_text()) return fmt::format("{} is data", symbol->name);
    if (dif::is_glob(pattern.name) || pattern.name.empty()) return {};
    return why_no_instruction(*symbol, pattern.name);
  }
  return {};
}

std::string InstrProvider::why_no_instruction(const Symbol& function, std::string_view name) const {
  const auto offset = offset_in(name);
  if (!offset) {
    return "a name of instr is CLASS-OFFSET, such as call-1c; the classes are call, jmp, jcc, ret, "
           "load, store, lock, string, sti, cli and other";
  }
  const auto list = list_instructions(text_, kernel_.symbols(), function);
  if (!list) return {};  // which was told
  const auto at = function.address.checked_add(*offset);
  const Operation* const found = at ? covering(*list, *at) : nullptr;
  if (found == nullptr) {
    return fmt::format("{} has no instruction at {:#x}", function.name, *offset);
  }
  const std::string known = name_at(found->kind, found->address.offset_from(function.address));
  if (found->address == *at) return fmt::format("the instruction there is {}", known);
  return fmt::format("it lies inside the instruction {}", known);
}

std::optional<GuestVirt> InstrProvider::address_of(dif::ProbeId id) const {
  const auto index = index_of(id);
  if (!index) return std::nullopt;
  const auto range = std::ranges::find_if(
      ranges_, [&](const Range& one) { return *index - one.first < one.size; });
  if (range == ranges_.end() || range->is_gone) return std::nullopt;
  return range->begin.wrapping_add(*index - range->first);
}

std::optional<InstrProvider::ListedInstruction> InstrProvider::place_of(dif::ProbeId id) const {
  const auto at = address_of(id);
  if (!at) return std::nullopt;
  const GuestVirt address = *at;
  const Symbol* const function = kernel_.symbols().at(address);
  if (function == nullptr || !function->is_text()) return std::nullopt;
  const auto list = list_instructions(text_, kernel_.symbols(), *function);
  const Operation* const found = list ? covering(*list, address) : nullptr;
  if (found == nullptr || found->address != address) return std::nullopt;
  ListedInstruction place{*found, function, {}};
  if (list->ftrace && address < list->ftrace->end) place.stands_at = list->ftrace->end;
  return place;
}

/// Unless that is done; the error says why no probe stands there.
Result<void> InstrProvider::examine(const ListedInstruction& place) {
  if (generation_ != points_.generation()) examined_.clear();
  generation_ = points_.generation();
  const GuestVirt address = place.instruction.address;
  if (examined_.contains(address.raw())) return {};
  const GuestVirt stand = place.stands_at.value_or(address);
  const ProbeSite site = TRY(points_.examine(stand, SitePolicy::Normal));
  if (place.stands_at) {
    TRY(check_entered_once(text_, kernel_.symbols(), *place.function, stand));
  }
  examined_.emplace(address.raw(),
                    ExaminedInstruction{site, place.instruction, place.stands_at.has_value()});
  return {};
}

Result<std::optional<Probe>> InstrProvider::by_id(dif::ProbeId id) {
  const auto place = place_of(id);
  if (!place || !examine(*place)) return std::optional<Probe>();
  return std::optional(Probe{id, name_of(*place)});
}

/// The pointer is good until the next examination.
Result<const InstrProvider::ExaminedInstruction*> InstrProvider::examined(dif::ProbeId id,
                                                                          GuestVirt address) {
  const bool known = generation_ == points_.generation() && examined_.contains(address.raw());
  if (!known) {
    const auto place = place_of(id);
    if (!place) return no_such_probe();
    TRY(examine(*place));
  }
  return &examined_.at(address.raw());
}

Result<void> InstrProvider::enable(const Probe& probe) {
  if (enabled_.contains(probe.id.value)) return {};
  const auto address = address_of(probe.id);
  if (!address) return no_such_probe();
  const ExaminedInstruction& place = *TRY(examined(probe.id, *address));
  const InstructionPlan plan =
      place.is_beside ? plans_.plan_for_place(*address) : plans_.plan_for(place.operation);
  Binding binding;
  binding.probe = probe.id;
  binding.site = plan.site;
  binding.plan = plan.plan;
  binding.at_function_edge = false;  // stacks begin with the instruction's own frame
  TRY(points_.bind(place.site, binding));
  enabled_.insert(probe.id.value);
  return {};
}

ProbeArguments InstrProvider::arguments(const Probe& probe) {
  const auto place = place_of(probe.id);
  const auto word = kernel_.types().find("unsigned long");
  if (!place || !word) return {};
  ProbeArguments out{.known = true, .types = {}, .names = {"address"}, .translated = {}};
  switch (place->instruction.kind) {
    case InstructionClass::Call:
    case InstructionClass::Jmp:
    case InstructionClass::Ret: out.names.emplace_back("target"); break;
    case InstructionClass::Jcc: out.names.insert(out.names.end(), {"taken", "target"}); break;
    case InstructionClass::String:
    case InstructionClass::Lock:
    case InstructionClass::Store:
    case InstructionClass::Load: out.names.insert(out.names.end(), {"operand", "size"}); break;
    case InstructionClass::Sti:
    case InstructionClass::Cli:
    case InstructionClass::Other: break;
  }
  if (place->instruction.kind == InstructionClass::String) {
    out.names.emplace_back("count");
  }
  out.types.assign(out.names.size(), *word);
  return out;
}

std::string InstrProvider::detail(const Probe& probe) {
  const auto place = place_of(probe.id);
  if (!place) return {};
  const Operation& one = place->instruction;
  std::array<std::byte, arch::kLongestInstruction> bytes;
  const auto code = std::span(bytes).first(one.length);
  if (!text_.read(one.address, code)) return {};
  std::string text = disasm::assembly(code, one.address);
  if (const GuestVirt target = one.target; target.raw() != 0) {
    text += fmt::format(" <{}>", kernel_.symbols().describe(target));
  }
  return text;
}

}  // namespace ringside::providers
