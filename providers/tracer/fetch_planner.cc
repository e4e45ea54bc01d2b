// In this file, top to bottom: one load, arguments, built-in variables, chains of loads.
#include "providers/tracer/fetch_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ringside::providers {
namespace {

using dif::RecordAddress, dif::RecordLoad;
using vmm::FetchList, vmm::FetchLoad;
using Obstacle = std::optional<std::string>;
using Offset = std::optional<std::uint32_t>;

constexpr std::uint32_t kPointerBytes = sizeof(std::uint64_t);
const Obstacle kTooMuch =
    "more memory is looked at than the 32 pieces and 4 KiB of a record (a smaller -x strsize may "
    "help)";
const Obstacle kNoTypes = "the kernel's types do not tell where it lies";

/// The address that a load is counted from: of a word, or it may be any.
enum class Alignment : std::uint8_t { Word, None };

/// So many words have all of the bytes.
std::uint64_t words_for(Alignment base, std::int64_t offset, std::uint64_t bytes) {
  const std::uint64_t before = base == Alignment::None
                                   ? (bytes == 1 ? 0 : kPointerBytes - 1)
                                   : static_cast<std::uint64_t>(offset) % kPointerBytes;
  return (before + bytes + kPointerBytes - 1) / kPointerBytes;
}

std::uint16_t source_of(arch::Register which) {
  const auto found = std::ranges::find(arch::kByEncoding, which);
  return FetchLoad::register_source(static_cast<unsigned>(found - arch::kByEncoding.begin()));
}

/// The list of one place, as it grows.
class Planned {
 public:
  explicit Planned(FetchList& list) : list_(list) {}

  /// The word that it copies first, as a source; empty where the list has no room.
  std::optional<std::uint16_t> add(std::uint16_t source, std::int64_t offset, std::uint64_t bytes,
                                   Alignment base = Alignment::Word, bool is_users = false) {
    const std::uint64_t words = words_for(base, offset, bytes);
    const auto near = static_cast<std::int32_t>(offset);
    if (words > FetchLoad::kMostWords || near != offset) return std::nullopt;
    const auto load = list_.add({source, static_cast<std::uint16_t>(words), is_users, near});
    return load ? std::optional(list_.source_of(*load)) : std::nullopt;
  }
  /// An argument's value: empty, with the obstacle, where none tells it.
  Obstacle add_value(const ArgumentSource& source, std::string_view name) {
    if (source.is_recorded() || source.word()) {
      return !source.word() || add_word(*source.word()) ? std::nullopt : kTooMuch;
    }
    return fmt::format("{} is found by looking at the guest's memory", name);
  }
  /// The word of the record that has an argument, to count addresses from; 0: it is 0.
  std::optional<std::uint16_t> address_in(const ArgumentSource& source) {
    if (!source.exists()) return 0;
    if (const auto which = source.whole_register()) return source_of(*which);
    const bool is_whole = source.word() && source.bytes() == kPointerBytes;
    return is_whole ? add_word(*source.word()) : std::nullopt;
  }

  Obstacle add_stack(const guest_linux::KernelLayout& layout) {
    if (!layout.task_stack) return kNoTypes;
    list_.add_stack();
    return std::nullopt;
  }

 private:
  std::optional<std::uint16_t> add_word(const ArgumentSource::WordPlace& place) {
    return add(source_of(place.base), place.offset, kPointerBytes);
  }

  FetchList& list_;
};

Obstacle add_arguments(Planned& planned, const Binding& binding, const dif::RecordNeeds& needs) {
  const ArgumentPlan& plan = *binding.plan;
  Obstacle why;
  if (binding.number != kNoNumber) {
    why = planned.add_value(plan.system_call_number, "the system call's number");
  }
  if (!why && needs.error_number) why = planned.add_value(plan.system_call_result, "errno");
  for (std::size_t n = 0; !why && n < plan.arguments.size(); ++n) {
    if ((needs.arguments >> n & 1) == 0) continue;
    why = planned.add_value(plan.arguments[n], fmt::format("arg{}", n));
  }
  return why;
}

/// A member of what a pointer in the task leads to.
Obstacle add_behind_task(Planned& planned, Offset pointer, Offset member) {
  if (!pointer || !member) return kNoTypes;
  const auto there = planned.add(FetchLoad::kTask, *pointer, kPointerBytes);
  return there && planned.add(*there, *member, sizeof(std::uint32_t)) ? std::nullopt : kTooMuch;
}

Obstacle add_variable(Planned& planned, dif::Builtin variable, const Binding& binding,
                      const guest_linux::KernelLayout& layout) {
  using dif::Builtin;
  switch (variable) {
    case Builtin::Ppid: return add_behind_task(planned, layout.task_real_parent, layout.task_tgid);
    case Builtin::Uid: return add_behind_task(planned, layout.task_cred, layout.cred_uid);
    case Builtin::Gid: return add_behind_task(planned, layout.task_cred, layout.cred_gid);
    case Builtin::Caller:
      if (!binding.at_function_edge) return planned.add_stack(layout);
      return planned.add(source_of(arch::kStackPointer), 0, kPointerBytes) ? std::nullopt
                                                                           : kTooMuch;
    case Builtin::Stackdepth: return planned.add_stack(layout);
    default: return "a variable is of the guest's memory";
  }
}

Obstacle add_loads(Planned& planned, const Binding& binding, const dif::RecordNeeds& needs) {
  std::vector<std::optional<std::uint16_t>> values;  // of each load, as a source
  for (const RecordLoad& load : needs.loads) {
    std::optional<std::uint16_t> source;
    switch (load.at.base) {
      case RecordAddress::Base::Constant: source = 0; break;
      case RecordAddress::Base::Task: source = FetchLoad::kTask; break;
      case RecordAddress::Base::Load: source = values[load.at.number]; break;
      case RecordAddress::Base::Argument:
        source = planned.address_in(binding.plan->arguments[load.at.number]);
        if (!source) return fmt::format("arg{} is no address that a record has", load.at.number);
        break;
    }
    if (!source) return "a pointer lies where no pointer should";
    const bool is_aligned =
        load.at.base == RecordAddress::Base::Task || load.at.base == RecordAddress::Base::Constant;
    const auto value = planned.add(*source, load.at.offset, load.bytes,
                                   is_aligned ? Alignment::Word : Alignment::None, load.is_users);
    if (!value) return kTooMuch;
    // Pointers are aligned. One that is not lies in the middle of what was copied, and leads to a
    // fault.
    const bool is_pointer =
        load.bytes == kPointerBytes && load.at.offset % std::int64_t{kPointerBytes} == 0;
    values.push_back(is_pointer ? value : std::nullopt);
  }
  return std::nullopt;
}

}  // namespace

Obstacle plan_fetch(FetchList& list, const Binding& binding, const dif::RecordNeeds& needs,
                    const guest_linux::KernelLayout& layout) {
  if (needs.obstacle) return needs.obstacle;
  if (binding.filter != nullptr) return "a probe is found by looking at the guest's memory";
  Planned planned(list);
  Obstacle why = add_arguments(planned, binding, needs);
  for (const dif::Builtin variable : needs.variables) {
    if (!why) why = add_variable(planned, variable, binding, layout);
  }
  if (!why && needs.stack) why = planned.add_stack(layout);
  return why ? why : add_loads(planned, binding, needs);
}

}  // namespace ringside::providers
