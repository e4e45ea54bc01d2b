// In this file, top to bottom: one load, arguments, built-in variables, comparisons, chains of
// loads, checks.
#include "providers/tracer/fetch_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "vmm/base/check.h"

namespace ringside::providers {
namespace {

using dif::RecordAddress, dif::RecordCheck, dif::RecordLoad, dif::RecordNeeds, dif::RecordValue;
using vmm::FetchCheck, vmm::FetchList, vmm::FetchLoad, vmm::TaskCheck;
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

/// An address: a word of the record, and a distance from it.
struct Start {
  std::uint16_t source = 0;  // 0: no word, the distance is the address
  std::int64_t offset = 0;   // bytes
  std::optional<FetchLoad::Index> index = std::nullopt;
};
/// By a load: the word of the record that has its first byte, and where that was copied from.
struct Copied {
  std::uint16_t word = 0;
  Start start;

  /// Which byte of the word that is, if the address that it is counted from is a word's; empty: it
  /// is not known.
  std::optional<unsigned> first_byte() const {
    if (start.index) return std::nullopt;
    return static_cast<unsigned>(start.offset) % kPointerBytes;
  }
  /// Whether so many bytes lie in the word.
  bool has(unsigned bytes) const {
    const auto first = first_byte();
    return first && *first + bytes <= kPointerBytes;
  }
};

/// The words that a TrapFilter works out, as far as they are addresses that a record has.
using FilterWords = std::array<std::optional<Start>, dif::kMaxProbeArguments>;

/// Says what the arguments in some needs are.
struct Passed {
  const ArgumentPlan& plan;
  const FilterWords& filter_words;
};

/// Of addresses that are counted from a word, the number of the word that one lies in.
std::int32_t word_number(std::int32_t offset) {
  return offset >> 3;
}

/// All looks that the firings at one place may take, before they have a list, in their order.
/// Members of a structure that lie near each other are one piece of the list then: to copy a few
/// words more takes the guest less time than to look up an address.
class Looks {
 public:
  /// A source for looks that are counted from its first word; those of one word have the same one.
  std::uint16_t add(const FetchLoad& look) {
    looks_.push_back(look);
    const auto first = std::ranges::find_if(looks_, [&look](const FetchLoad& one) {
      return is_at_one_base(one, look) && word_number(one.offset) == word_number(look.offset);
    });
    return static_cast<std::uint16_t>(kFirstSource + (first - looks_.begin()));
  }
  /// The piece for each of them, in their order.
  std::vector<FetchLoad> pieces() const {
    std::vector<std::size_t> order(looks_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [this](std::size_t n) {
      return std::tuple(looks_[n].source, may_grow(looks_[n]), looks_[n].offset);
    });
    std::vector<FetchLoad> pieces(looks_.size());
    for (auto first = order.begin(); first != order.end();) {
      FetchLoad piece = looks_[*first];
      auto last = std::next(first);
      while (last != order.end() && grows(piece, looks_[*last])) ++last;
      for (; first != last; ++first) pieces[*first] = piece;
    }
    return pieces;
  }

 private:
  static constexpr std::ptrdiff_t kFirstSource = 1024;                 // no record has such words
  static constexpr std::int32_t kMostBetween = 8, kMostTogether = 32;  // words

  static bool is_at_one_base(const FetchLoad& one, const FetchLoad& other) {
    return one.source == other.source && one.is_users == other.is_users && one.index == other.index;
  }
  /// Not over a page of the process's that may be absent.
  static bool may_grow(const FetchLoad& piece) { return !piece.is_users && !piece.index; }
  /// Whether the look is near, and part of the piece from now on.
  static bool grows(FetchLoad& piece, const FetchLoad& look) {
    if (!is_at_one_base(piece, look) || !may_grow(piece)) return false;
    const std::int32_t before = word_number(look.offset) - word_number(piece.offset);
    const std::int32_t words = std::max<std::int32_t>(piece.words, before + look.words);
    const bool is_near = before <= piece.words + kMostBetween && words <= kMostTogether;
    if (!is_near && words != piece.words) return false;
    piece.words = static_cast<std::uint16_t>(words);
    return true;
  }

  std::vector<FetchLoad> looks_;
};

/// The list of one place, as it grows. It is planned twice: once to see all looks, and then by the
/// pieces that these make.
class Planned {
 public:
  /// The first time. `list` is of no use afterwards.
  Planned(FetchList& list, const KernelOffsets& kernel, Looks& looks)
      : list_(list), kernel_(kernel), looks_(&looks) {}
  /// The second time, for the same probes.
  Planned(FetchList& list, const KernelOffsets& kernel, std::vector<FetchLoad> pieces)
      : list_(list), kernel_(kernel), pieces_(std::move(pieces)) {}

  const KernelOffsets& kernel() const { return kernel_; }

  /// The word that has its first byte, as a source; empty where the list has no room.
  std::optional<std::uint16_t> add(const Start& start, std::uint64_t bytes,
                                   Alignment base = Alignment::Word, bool is_users = false) {
    const std::uint64_t words = words_for(base, start.offset, bytes);
    const auto near = static_cast<std::int32_t>(start.offset);
    if (words > FetchLoad::kMostWords || near != start.offset) return std::nullopt;
    FetchLoad load{start.source, static_cast<std::uint16_t>(words), is_users, near, start.index};
    if (looks_ != nullptr) return looks_->add(load);
    CHECK(next_ < pieces_.size());
    const FetchLoad& piece = pieces_[next_++];
    const std::int32_t before = word_number(near) - word_number(piece.offset);
    load.offset = piece.offset;
    load.words = piece.words;
    const auto number = list_.add(load);
    if (!number) return std::nullopt;
    return static_cast<std::uint16_t>(list_.source_of(*number) + before);
  }
  /// The word of the record that an argument is the low bytes of; empty: none is.
  std::optional<std::uint16_t> word_of(const ArgumentSource& source) {
    if (const auto which = source.in_register()) return source_of(*which);
    return source.word() ? add_word(*source.word()) : std::nullopt;
  }
  /// Without room for it the trap is recorded, whatever the predicate will say.
  void add_check(const FetchCheck& check) {
    if (looks_ == nullptr) (void)list_.add_check(check);
  }
  void add_check(const TaskCheck& check) { (void)list_.add_check(check); }
  /// The trap waits where it does not hold. False where there is no room for it.
  bool add_bound(FetchCheck check) {
    if (looks_ != nullptr) return true;
    check.lets_wait = true;
    const auto is_there = [&check](const auto& one) { return one.check == check; };
    return std::ranges::any_of(list_.checks(), is_there) || list_.add_check(check);
  }

  Obstacle add_stack() {
    if (!kernel_.layout.task_stack) return kNoTypes;
    list_.add_stack();
    return std::nullopt;
  }

  std::optional<std::uint16_t> add_word(const ArgumentSource::WordPlace& place) {
    return add({source_of(place.base), place.offset}, kPointerBytes);
  }

 private:
  FetchList& list_;
  const KernelOffsets& kernel_;
  Looks* const looks_ = nullptr;
  const std::vector<FetchLoad> pieces_{};
  std::size_t next_ = 0;  // of pieces_
};

/// The looks of a provider's code. `copied`: by each of its loads.
Obstacle add_code(Planned& planned, const RecordedCode& code, const FilterWords& filter_words,
                  std::vector<Copied>& copied);

/// An argument's value.
Obstacle add_value(Planned& planned, const ArgumentSource& source,
                   const FilterWords& filter_words) {
  if (const auto word = source.word()) {
    return planned.add_word(*word) ? std::nullopt : kTooMuch;
  }
  const auto [computed, n] = source.computation();
  if (computed == nullptr) return std::nullopt;
  std::vector<Copied> copied;
  return add_code(planned, computed->recorded(n).code, filter_words, copied);
}

Obstacle add_arguments(Planned& planned, const Passed& passed, const dif::RecordNeeds& needs) {
  const ArgumentPlan& plan = passed.plan;
  Obstacle why;
  if (needs.error_number) {
    why = add_value(planned, plan.system_call_result, passed.filter_words);
  }
  for (std::size_t n = 0; !why && n < plan.arguments.size(); ++n) {
    if ((needs.arguments >> n & 1) == 0) continue;
    why = add_value(planned, plan.arguments[n], passed.filter_words);
  }
  return why;
}

/// A member of what a pointer in the task leads to.
Obstacle add_behind_task(Planned& planned, Offset pointer, Offset member) {
  if (!pointer || !member) return kNoTypes;
  const auto there = planned.add({FetchLoad::kTask, *pointer}, kPointerBytes);
  return there && planned.add({*there, *member}, sizeof(std::uint32_t)) ? std::nullopt : kTooMuch;
}

/// The words that ThreadClock::ran() takes.
Obstacle add_run_time(Planned& planned) {
  const guest_linux::KernelLayout& in = planned.kernel().layout;
  if (!planned.kernel().run_queues || !in.rq_clock || !in.rq_clock_task) return kNoTypes;
  for (const Offset member : {in.task_pid, in.task_sum_exec_runtime, in.task_exec_start}) {
    if (!member) return kNoTypes;
    if (!planned.add({FetchLoad::kTask, *member}, kPointerBytes)) return kTooMuch;
  }
  for (const Offset clock : {in.rq_clock, in.rq_clock_task}) {
    const auto distance =
        static_cast<std::int64_t>(planned.kernel().run_queues->wrapping_add(*clock).raw());
    if (!planned.add({FetchLoad::kPerCpuBase, distance}, kPointerBytes)) return kTooMuch;
  }
  return std::nullopt;
}

Obstacle add_variable(Planned& planned, dif::Builtin variable, bool at_function_edge) {
  using dif::Builtin;
  const guest_linux::KernelLayout& layout = planned.kernel().layout;
  switch (variable) {
    case Builtin::Vtimestamp: return add_run_time(planned);
    case Builtin::Ppid: return add_behind_task(planned, layout.task_real_parent, layout.task_tgid);
    case Builtin::Uid: return add_behind_task(planned, layout.task_cred, layout.cred_uid);
    case Builtin::Gid: return add_behind_task(planned, layout.task_cred, layout.cred_gid);
    case Builtin::Caller:
      if (!at_function_edge) return planned.add_stack();
      return planned.add({source_of(arch::kStackPointer)}, kPointerBytes) ? std::nullopt : kTooMuch;
    case Builtin::Stackdepth: return planned.add_stack();
    default: return "a variable is of the guest's memory";
  }
}

/// An address that is counted from what `loads` have copied, or from an argument. Empty where the
/// record does not have it.
std::optional<Start> start_of(Planned& planned, const Passed& passed, const RecordAddress& at,
                              std::span<const RecordLoad> loads, std::span<const Copied> copied);

/// An argument, to count addresses from.
std::optional<Start> start_in(Planned& planned, const ArgumentSource& source,
                              const FilterWords& filter_words) {
  if (!source.exists()) return Start();
  if (const auto which = source.whole_register()) return Start{source_of(*which)};
  if (const auto n = source.filter_word()) return filter_words.at(*n);
  if (const auto word = source.word()) {
    const auto copied = planned.add_word(*word);
    const bool is_whole = copied && source.bytes() == kPointerBytes;
    return is_whole ? std::optional(Start{*copied}) : std::nullopt;
  }
  const auto [computed, n] = source.computation();
  if (computed == nullptr) return std::nullopt;
  const RecordedArgument argument = computed->recorded(n);
  std::vector<Copied> copied;
  const auto why = add_code(planned, argument.code, filter_words, copied);
  if (why || !argument.address) return std::nullopt;
  return start_of(planned, {argument.code.plan, filter_words}, *argument.address,
                  argument.code.needs.loads, copied);
}

/// An argument that a system call has kept on the task's stack.
std::optional<Start> start_in(Planned& planned, std::uint32_t on_stack) {
  const Offset task_stack = planned.kernel().layout.task_stack;
  if (on_stack == 0 || !task_stack) return std::nullopt;
  const auto stack = planned.add({FetchLoad::kTask, *task_stack}, kPointerBytes);
  const auto kept = stack ? planned.add({*stack, on_stack}, kPointerBytes) : std::nullopt;
  return kept ? std::optional(Start{*kept}) : std::nullopt;
}

/// The lowest bytes of what a load has copied; empty where they may lie in two words.
std::optional<FetchLoad::Index> index_in(const Copied& copied, unsigned bytes) {
  if (!copied.has(bytes)) return std::nullopt;
  constexpr unsigned kBits = 64;
  return FetchLoad::Index{copied.word,
                          static_cast<std::uint8_t>(kBits - 8 * (*copied.first_byte() + bytes)),
                          static_cast<std::uint8_t>(kBits - 8 * bytes)};
}

std::optional<Start> start_of(Planned& planned, const Passed& passed, const RecordAddress& at,
                              std::span<const RecordLoad> loads, std::span<const Copied> copied) {
  using Base = RecordAddress::Base;
  if (at.room != 0) return std::nullopt;
  std::optional<Start> start;
  switch (at.base) {
    case Base::Constant: start = Start(); break;
    case Base::Task: start = Start{FetchLoad::kTask}; break;
    case Base::PerCpu: start = Start{FetchLoad::kPerCpuBase}; break;
    case Base::Kept: start = start_in(planned, passed.plan.kept.on_stack[at.number]); break;
    case Base::Argument:
      start = start_in(planned, passed.plan.arguments[at.number], passed.filter_words);
      break;
    case Base::Load: {
      // Pointers are aligned. One that is not lies in the middle of what was copied, and leads to
      // a fault. The lowest bit of a pointer may be a mark, which a program takes off, as of a
      // page's compound_head: then the distance from there is one byte less.
      const Copied& pointer = copied[at.number];
      const bool is_marked =
          loads[at.number].at.base == Base::Load && pointer.first_byte() == kPointerBytes - 1;
      const bool is_pointer =
          loads[at.number].bytes == kPointerBytes && (pointer.first_byte() == 0U || is_marked);
      if (is_pointer) start = Start{pointer.word};
      break;
    }
  }
  if (!start) return std::nullopt;
  start->offset += at.offset;
  if (!at.index) return start;
  const auto index = index_in(copied[at.index->load], at.index->bytes);
  if (start->index || !index) return std::nullopt;
  start->index = index;
  return start;
}

/// Some bytes of a word of the record.
struct Place {
  std::uint16_t source = 0;
  unsigned first = 0;  // byte
  unsigned bytes = sizeof(std::uint64_t);
  bool is_signed = false;  // of fewer than 8
};

/// The low bytes of what is there, as the value has them. A value of 8 bytes is all that is there.
/// Empty where the two do not fit together.
std::optional<Place> narrowed(Place place, const RecordValue& value) {
  if (value.bytes == sizeof(std::uint64_t)) return place;
  if (value.bytes > place.bytes) return std::nullopt;
  place.bytes = value.bytes;
  place.is_signed = value.is_signed;
  return place;
}

std::optional<Place> place_in_task(const RecordValue& value) {
  constexpr unsigned kTidBytes = sizeof(std::int32_t);
  switch (value.source) {
    case RecordValue::Source::Task: return Place{FetchLoad::kTask};
    case RecordValue::Source::Tid: return Place{FetchCheck::kTids, 0, kTidBytes, true};
    case RecordValue::Source::Pid: return Place{FetchCheck::kTids, kTidBytes, kTidBytes, true};
    case RecordValue::Source::Name:
      return Place{static_cast<std::uint16_t>(FetchCheck::kName + value.number)};
    case RecordValue::Source::Argument:
    case RecordValue::Source::Load: break;
  }
  return std::nullopt;
}

FetchCheck check_at(const Place& place, const RecordCheck& check) {
  constexpr unsigned kBits = 64;
  FetchCheck made{.source = place.source};
  made.left = static_cast<std::uint8_t>(kBits - 8 * (place.first + place.bytes));
  made.right = static_cast<std::uint8_t>(kBits - 8 * place.bytes);
  made.is_signed = place.is_signed;
  switch (check.relation) {
    case RecordCheck::Relation::Equal: made.relation = FetchCheck::Relation::Equal; break;
    case RecordCheck::Relation::Less: made.relation = FetchCheck::Relation::Less; break;
    case RecordCheck::Relation::LessUnsigned:
      made.relation = FetchCheck::Relation::LessUnsigned;
      break;
  }
  made.is_negated = check.is_negated;
  made.mask = check.value.mask;
  made.with = check.with;
  return made;
}

/// A load's first bytes; empty where it may lie in two words. If the address that it is counted
/// from is no word's, the guest judges nothing.
std::optional<Place> place_of(const Copied& copied, const RecordLoad& load, bool is_signed) {
  if (!copied.has(load.bytes)) return std::nullopt;
  return Place{copied.word, *copied.first_byte(), load.bytes, is_signed};
}

/// The bounds of what one load reads, behind it.
Obstacle add_bounds(Planned& planned, const RecordNeeds& needs, std::size_t load,
                    const Copied& copied) {
  for (const RecordCheck& bound : needs.bounds) {
    if (bound.value.number != load) continue;
    auto place = place_of(copied, needs.loads[load], bound.value.is_signed);
    if (place) place = narrowed(*place, bound.value);
    if (!place || !planned.add_bound(check_at(*place, bound))) return kTooMuch;
  }
  return std::nullopt;
}

/// The first `count` of them.
Obstacle add_loads(Planned& planned, const Passed& passed, const RecordNeeds& needs,
                   std::size_t count, std::vector<Copied>& copied) {
  using Base = RecordAddress::Base;
  for (std::size_t n = 0; n < count; ++n) {
    const RecordLoad& load = needs.loads[n];
    const auto start = start_of(planned, passed, load.at, needs.loads, copied);
    if (!start && load.at.base == Base::Argument) {
      return fmt::format("arg{} is no address that a record has", load.at.number);
    }
    if (!start) return "a pointer lies where no pointer should";
    const bool is_aligned =
        !start->index && (start->source == 0 || start->source == FetchLoad::kTask ||
                          start->source == FetchLoad::kPerCpuBase);
    const auto value = planned.add(*start, load.bytes,
                                   is_aligned ? Alignment::Word : Alignment::None, load.is_users);
    if (!value) return kTooMuch;
    copied.push_back({*value, *start});
    if (auto why = add_bounds(planned, needs, n, copied.back())) return why;
  }
  return std::nullopt;
}

/// The trap waits where so many bytes of the word do not compare with `with` in this way.
bool add_bound(Planned& planned, std::uint16_t word, std::int64_t offset, std::uint8_t bytes,
               RecordCheck::Relation relation, std::uint64_t with) {
  const Place place{word, static_cast<unsigned>(offset) % kPointerBytes, bytes};
  return planned.add_bound(check_at(place, {{.bytes = bytes}, relation, false, with}));
}

/// The trap waits unless the directory entry is the root of a file system: the name of no other
/// begins with a slash.
bool add_root(Planned& planned, const Start& entry) {
  const std::int64_t text = entry.offset + planned.kernel().paths->short_name.offset;
  const auto word = planned.add({entry.source, text}, 1);
  return word && add_bound(planned, *word, text, 1, RecordCheck::Relation::Equal, '/');
}

/// A directory entry and those above it, up to the root of its file system. The trap waits where
/// these are more than `count`, or have names that do not lie in them.
bool add_entries(Planned& planned, Start entry, unsigned count) {
  const guest_linux::PathLayout& at = *planned.kernel().paths;
  for (unsigned n = 0; n < count; ++n) {
    const auto member = [&](std::uint32_t offset, std::uint64_t bytes) {
      return planned.add({entry.source, entry.offset + offset}, bytes);
    };
    const auto parent = member(at.parent, kPointerBytes);
    const auto length = member(at.length, sizeof(std::uint32_t));
    const bool are_there = parent && length && member(at.name, kPointerBytes) &&
                           member(at.short_name.offset, at.short_name.bytes) &&
                           (!at.hashed || member(*at.hashed, kPointerBytes));
    if (!are_there) return false;
    if (!add_bound(planned, *length, entry.offset + at.length, sizeof(std::uint32_t),
                   RecordCheck::Relation::LessUnsigned, at.short_name.bytes)) {
      return false;
    }
    if (n + 1 == count && !add_root(planned, entry)) return false;
    entry = Start{*parent};
  }
  return true;
}

/// The directories of a path in its file system and in the one that this is mounted in, if that is
/// the kernel's first one but for the root of all mounts. The trap waits where there is more.
bool add_path(Planned& planned, const Start& dentry, const Start& vfsmount) {
  constexpr unsigned kDirectories = 8, kDirectoriesAbove = 4, kMounts = 3;
  const guest_linux::PathLayout& at = *planned.kernel().paths;
  if (!add_entries(planned, dentry, kDirectories)) return false;
  Start mount = vfsmount;
  mount.offset -= at.inner;
  for (unsigned n = 0; n < kMounts; ++n) {
    const auto member = [&](std::uint32_t offset) {
      return planned.add({mount.source, mount.offset + offset}, kPointerBytes);
    };
    const auto above = member(at.parent_mount), upon = member(at.mounted_upon);
    if (!above || !upon || !member(at.inner + at.root)) return false;
    if (n == 0 && !add_entries(planned, Start{*upon}, kDirectoriesAbove)) return false;
    if (n == 1 && !add_root(planned, Start{*upon})) return false;
    mount = Start{*above};
  }
  return true;
}

Obstacle add_paths(Planned& planned, const Passed& passed, const RecordNeeds& needs,
                   std::span<const Copied> copied) {
  for (const dif::RecordPath& path : needs.paths) {
    const auto& layout = planned.kernel().paths;
    if (!layout || layout->short_name.bytes == 0) return kNoTypes;
    const auto dentry = start_of(planned, passed, path.dentry, needs.loads, copied);
    const auto mount = start_of(planned, passed, path.mount, needs.loads, copied);
    if (!dentry || !mount || dentry->index || mount->index) {
      return "a path is of no address that a record has";
    }
    if (!add_path(planned, *dentry, *mount)) return kTooMuch;
  }
  return std::nullopt;
}

Obstacle add_needs(Planned& planned, const Passed& passed, const RecordNeeds& needs,
                   bool at_function_edge, std::vector<Copied>& copied) {
  Obstacle why = needs.obstacle;
  if (!why && needs.keeps_past_success && passed.plan.kept.until_success) {
    why = "where the call has succeeded, its arguments are gone";
  }
  if (!why) why = add_arguments(planned, passed, needs);
  for (const dif::Builtin variable : needs.variables) {
    if (!why) why = add_variable(planned, variable, at_function_edge);
  }
  if (!why && needs.stack) why = planned.add_stack();
  if (!why) why = add_loads(planned, passed, needs, needs.loads.size(), copied);
  return why ? why : add_paths(planned, passed, needs, copied);
}

Obstacle add_code(Planned& planned, const RecordedCode& code, const FilterWords& filter_words,
                  std::vector<Copied>& copied) {
  return add_needs(planned, {code.plan, filter_words}, code.needs, false, copied);
}

Obstacle add_filter(Planned& planned, const TrapFilter& filter, FilterWords& filter_words) {
  const RecordedFilter recorded = filter.recorded();
  Obstacle why;
  for (std::size_t n = 0; !why && n < recorded.codes.size(); ++n) {
    const RecordedCode& code = recorded.codes[n];
    std::vector<Copied> copied;
    why = add_code(planned, code, filter_words, copied);
    for (std::size_t word = 0; !why && word < filter_words.size(); ++word) {
      const auto& [of, address] = recorded.words.at(word);
      if (of != n || !address) continue;
      filter_words.at(word) =
          start_of(planned, {code.plan, filter_words}, *address, code.needs.loads, copied);
    }
  }
  return why;
}

Obstacle add_probe(Planned& planned, const PlacedProbe& probe) {
  const auto& [binding, needs] = probe;
  FilterWords filter_words;
  Obstacle why;
  if (binding->filter != nullptr) why = add_filter(planned, *binding->filter, filter_words);
  if (!why && binding->number != kNoNumber) {
    why = add_value(planned, binding->plan->system_call_number, filter_words);
  }
  std::vector<Copied> copied;
  return why ? why
             : add_needs(planned, {*binding->plan, filter_words}, needs, binding->at_function_edge,
                         copied);
}

/// Where the task has its name, or an id of 4 bytes.
Offset offset_in_task(const RecordValue& value, const guest_linux::KernelLayout& layout) {
  switch (value.source) {
    case RecordValue::Source::Name:
      return layout.task_comm ? Offset(*layout.task_comm + kPointerBytes * value.number)
                              : std::nullopt;
    case RecordValue::Source::Tid: return layout.task_pid;
    case RecordValue::Source::Pid: return layout.task_tgid;
    default: return std::nullopt;
  }
}

/// The same check, of 8 bytes of the task; empty where it is none for equality with what the task
/// may have there.
std::optional<TaskCheck> task_check(const RecordCheck& check,
                                    const guest_linux::KernelLayout& layout) {
  const RecordValue& value = check.value;
  const auto offset = offset_in_task(value, layout);
  const bool fits = offset && *offset == static_cast<std::uint16_t>(*offset);
  if (!fits || check.relation != RecordCheck::Relation::Equal) return std::nullopt;
  TaskCheck made{static_cast<std::uint16_t>(*offset), check.is_negated, value.mask, check.with};
  if (value.source == RecordValue::Source::Name) return made;
  const auto low = static_cast<std::uint32_t>(check.with);
  const bool is_id =
      value.bytes == sizeof low && value.is_signed && value.mask == UINT64_MAX &&
      check.with == static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(low)});
  made.mask = UINT32_MAX;
  made.with = low;
  return is_id ? std::optional(made) : std::nullopt;
}

/// Checks that hold wherever a clause of any of the probes does something.
void add_checks_of_task(Planned& planned, std::span<const PlacedProbe> probes) {
  std::vector<RecordCheck> common = probes.front().needs.checks;
  for (const PlacedProbe& probe : probes) dif::keep_common(common, probe.needs.checks);
  for (const RecordCheck& check : common) {
    if (const auto early = task_check(check, planned.kernel().layout)) {
      planned.add_check(*early);
      continue;
    }
    const auto place = place_in_task(check.value);
    const auto narrow = place ? narrowed(*place, check.value) : std::nullopt;
    if (narrow) planned.add_check(check_at(*narrow, check));
  }
}

/// Where many system calls pass, and one of them has a probe.
void add_check_of_number(Planned& planned, const Binding& binding) {
  const auto word = planned.word_of(binding.plan->system_call_number);
  if (!word) return;
  constexpr RecordValue kNumber{.bytes = sizeof(std::uint32_t),
                                .mask = ~std::uint64_t{kX32NumberBit}};
  planned.add_check(check_at({*word, 0, sizeof(std::uint32_t)},
                             {kNumber, RecordCheck::Relation::Equal, false, binding.number}));
}

/// The checks of one predicate, behind all that it looks at.
Obstacle add_later_checks(Planned& planned, const Binding& binding, const RecordNeeds& needs) {
  const ArgumentPlan& plan = *binding.plan;
  const FilterWords no_filter;
  const Passed passed{plan, no_filter};
  Obstacle why = add_arguments(planned, passed, {.arguments = needs.predicate_arguments});
  std::vector<Copied> copied;
  if (!why) why = add_loads(planned, passed, needs, needs.predicate_loads, copied);
  if (why) return why;
  for (const RecordCheck& check : needs.later_checks) {
    std::optional<Place> place = place_in_task(check.value);
    const std::uint16_t n = check.value.number;
    if (check.value.source == RecordValue::Source::Argument) {
      const ArgumentSource& source = plan.arguments[n];
      const auto word = planned.word_of(source);
      if (word) place = Place{*word, 0, source.bytes(), source.is_signed()};
    } else if (check.value.source == RecordValue::Source::Load) {
      CHECK(n < copied.size());
      place = place_of(copied[n], needs.loads[n], check.value.is_signed);
    }
    if (place) place = narrowed(*place, check.value);
    if (place) planned.add_check(check_at(*place, check));
  }
  return std::nullopt;
}

bool are_alike(const PlacedProbe& one, const PlacedProbe& other) {
  return one.binding->plan == other.binding->plan && one.needs == other.needs;
}

/// An argument that the place cannot tell is a fault wherever it is used.
bool tells_arguments(const PlacedProbe& probe) {
  for (std::size_t n = 0; n < probe.binding->plan->arguments.size(); ++n) {
    const bool is_used = (probe.needs.predicate_arguments >> n & 1) != 0;
    if (is_used && !probe.binding->plan->arguments[n].is_told()) return false;
  }
  return true;
}

/// Where a trap is also a step of a function's return, or something that a TrapFilter remembers, it
/// must be seen.
Obstacle add_checks(Planned& planned, std::span<const PlacedProbe> probes) {
  const bool fire_alone = std::ranges::all_of(probes, [](const PlacedProbe& probe) {
    return probe.binding->role == Role::Fires && probe.binding->filter == nullptr;
  });
  if (!fire_alone) return std::nullopt;
  add_checks_of_task(planned, probes);
  const PlacedProbe& first = probes.front();
  if (probes.size() == 1 && first.binding->number != kNoNumber) {
    add_check_of_number(planned, *first.binding);
  }
  const bool one_predicate = std::ranges::all_of(
      probes, [&first](const PlacedProbe& probe) { return are_alike(first, probe); });
  if (!one_predicate || first.needs.later_checks.empty() || !tells_arguments(first)) {
    return std::nullopt;
  }
  return add_later_checks(planned, *first.binding, first.needs);
}

bool looks_at_registers(const RecordNeeds& needs) {
  return needs.registers || needs.arguments != 0 || needs.error_number || needs.stack ||
         needs.follows_arguments();
}

/// The parts that a record at the place of these probes has to have.
FetchList::Copies copies_for(std::span<const PlacedProbe> probes) {
  FetchList::Copies copies{.registers = false, .ids = false};
  for (const auto& [binding, needs] : probes) {
    const bool only_fires = binding->role == Role::Fires && binding->filter == nullptr;
    const bool by_registers =
        binding->condition != arch::kNoCondition || binding->number != kNoNumber;
    copies.registers |= looks_at_registers(needs) || !only_fires || by_registers;
    copies.ids |= needs.ids || !only_fires || needs.arguments != 0;
  }
  return copies;
}

Obstacle plan(Planned& planned, std::span<const PlacedProbe> probes) {
  Obstacle why = add_checks(planned, probes);
  for (const PlacedProbe& probe : probes) {
    if (!why) why = add_probe(planned, probe);
  }
  return why;
}

}  // namespace

Obstacle plan_fetch(FetchList& list, std::span<const PlacedProbe> probes,
                    const KernelOffsets& kernel) {
  for (const PlacedProbe& probe : probes) {
    if (probe.needs.obstacle) return probe.needs.obstacle;
  }
  if (probes.empty()) return std::nullopt;
  Looks looks;
  Planned seen(list, kernel, looks);
  if (auto why = plan(seen, probes)) return why;
  list = FetchList(copies_for(probes));
  Planned planned(list, kernel, looks.pieces());
  return plan(planned, probes);
}

}  // namespace ringside::providers
