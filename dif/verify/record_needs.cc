// In this file, top to bottom: what variables, subroutines and actions need, one object, one
// clause.
#include "dif/verify/record_needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "dif/program/action_kind.h"
#include "dif/program/builtin.h"
#include "dif/program/insn.h"
#include "dif/verify/forward_walk.h"

namespace ringside::dif {
namespace {

constexpr std::string_view kReads = "looks at the guest's memory";
constexpr unsigned kAllArguments = (1U << kMaxProbeArguments) - 1;

bool looks_at_guest(const SubroutineInfo& subroutine) {
  return subroutine.changes != Changes::Nothing || subroutine.id == Subroutine::Progenyof ||
         subroutine.id == Subroutine::DPath ||
         std::ranges::find(subroutine.arguments, ArgumentKind::Address) !=
             subroutine.arguments.end();
}

bool makes_memory(BuiltinType type) {
  return type == BuiltinType::String || type == BuiltinType::Pointer;
}

/// The registers before an instruction, whichever way led to it.
struct Known {
  std::uint8_t ours = 0;       // by bit: holds an address of D's own memory
  std::uint8_t constants = 1;  // by bit: holds the value below; r0 is 0
  std::array<std::uint64_t, kRegisters> values{};

  bool is_ours(unsigned number) const { return (ours >> number % kRegisters & 1) != 0; }
  std::optional<std::uint64_t> value(unsigned number) const {
    const unsigned at = number % kRegisters;
    return (constants >> at & 1) != 0 ? std::optional(values[at]) : std::nullopt;
  }
  void set(unsigned number, bool is_ours, std::optional<std::uint64_t> value = std::nullopt) {
    const unsigned at = number % kRegisters;
    const auto bit = static_cast<std::uint8_t>(1U << at);
    if (at == 0) return;
    ours = static_cast<std::uint8_t>(is_ours ? ours | bit : ours & ~bit);
    constants = static_cast<std::uint8_t>(value ? constants | bit : constants & ~bit);
    if (value) values[at] = *value;
  }
  void meet(const Known& other) {
    ours &= other.ours;
    constants &= other.constants;
    for (unsigned at = 0; at < kRegisters; ++at) {
      if (values[at] != other.values[at]) constants &= static_cast<std::uint8_t>(~(1U << at));
    }
  }
};

class ObjectNeeds {
 public:
  explicit ObjectNeeds(const Difo& difo) : difo_(difo) {}

  RecordNeeds find() {
    if (difo_.destructive) prevent(0, "changes the guest");
    if (is_user_code(difo_.result.kind) || difo_.result.kind == ValueKind::KernelStack) {
      prevent(0, "follows a stack");
    }
    walk_forward(difo_, Known(),
                 [this](std::size_t at, Insn in, Known& known) { run(at, in, known); });
    return std::move(needs_);
  }

 private:
  void prevent(std::size_t at, std::string_view why) {
    if (needs_.obstacle) return;
    const SourceMap::Part* const part = difo_.source.at(static_cast<std::uint32_t>(at));
    if (part == nullptr || part->text.empty()) {
      needs_.obstacle = fmt::format("an expression {}", why);
    } else {
      needs_.obstacle = fmt::format("line {}: {} {}", part->line, part->text, why);
    }
  }
  void must_be_ours(std::size_t at, const Known& known, unsigned number) {
    if (!known.is_ours(number)) prevent(at, kReads);
  }
  bool is_by_reference(VariableScope scope, std::uint16_t id) const {
    const auto found = std::ranges::find_if(
        difo_.variables, [&](const Variable& one) { return one.scope == scope && one.id == id; });
    return found != difo_.variables.end() && dif::is_by_reference(found->type);
  }

  void run(std::size_t at, Insn in, Known& known);
  void load_builtin(std::size_t at, Insn in, Known& known);
  void load_array(std::size_t at, Insn in, Known& known);
  void call(std::size_t at, Insn in, Known& known);
  void load_variable(VariableScope scope, Insn in, Known& known) const {
    known.set(in.rd(), is_by_reference(scope, in.index()));
  }
  void store_variable(std::size_t at, VariableScope scope, Insn in, const Known& known) {
    const bool is_null = known.value(in.rd()) == 0;
    if (is_by_reference(scope, in.index()) && !is_null) must_be_ours(at, known, in.rd());
  }

  const Difo& difo_;
  std::vector<bool> pushed_;  // whether each value on the tuple stack is ours
  RecordNeeds needs_;
};

/// No branch leads into or out of the pushes of one call or key.
void ObjectNeeds::run(std::size_t at, Insn in, Known& known) {
  const bool r1 = known.is_ours(in.r1()), r2 = known.is_ours(in.r2());
  switch (in.op()) {
    case Opcode::Add: return known.set(in.rd(), r1 != r2);
    case Opcode::Sub: return known.set(in.rd(), r1 && !r2);
    case Opcode::Mov: return known.set(in.rd(), r1, known.value(in.r1()));
    case Opcode::Setx: return known.set(in.rd(), false, difo_.integers[in.index()]);
    case Opcode::Sets:
    case Opcode::Allocs: return known.set(in.rd(), true);
    case Opcode::Copys: return must_be_ours(at, known, in.r1());
    case Opcode::Scmp:
      if (known.value(in.r1()) != 0) must_be_ours(at, known, in.r1());
      if (known.value(in.r2()) != 0) must_be_ours(at, known, in.r2());
      return;
    case Opcode::Ldga: return load_array(at, in, known);
    case Opcode::Ldgs:
      if (in.index() < kFirstUserVariable) return load_builtin(at, in, known);
      [[fallthrough]];
    case Opcode::Ldgaa: return load_variable(VariableScope::Global, in, known);
    case Opcode::Ldts:
    case Opcode::Ldtaa: return load_variable(VariableScope::Thread, in, known);
    case Opcode::Ldls: return load_variable(VariableScope::Clause, in, known);
    case Opcode::Stgs:
    case Opcode::Stgaa: return store_variable(at, VariableScope::Global, in, known);
    case Opcode::Stts:
    case Opcode::Sttaa: return store_variable(at, VariableScope::Thread, in, known);
    case Opcode::Stls: return store_variable(at, VariableScope::Clause, in, known);
    case Opcode::Pushtr:
      if (known.value(in.rd()) != 0) must_be_ours(at, known, in.rd());  // strtok(NULL, ...)
      return pushed_.push_back(true);
    case Opcode::Pushtv: return pushed_.push_back(known.is_ours(in.rd()));
    case Opcode::Popts:
      if (!pushed_.empty()) pushed_.pop_back();
      return;
    case Opcode::Flushts: return pushed_.clear();
    case Opcode::Call: return call(at, in, known);
    case Opcode::Ret:
      if (dif::is_by_reference(difo_.result)) must_be_ours(at, known, in.rd());
      return;
    default: break;
  }
  const auto memory = loaded_memory(in.op());
  if (memory == LoadedMemory::Guest) must_be_ours(at, known, in.r1());
  if (memory == LoadedMemory::User) prevent(at, kReads);
  const Form form = opcode_info(static_cast<std::uint8_t>(in.op()))->form;
  if (form == Form::Rrr || form == Form::Rr || form == Form::Load) known.set(in.rd(), false);
}

void ObjectNeeds::load_builtin(std::size_t at, Insn in, Known& known) {
  const auto info = find_builtin(in.index());
  if (!info) return prevent(at, kReads);
  if (info->source != BuiltinSource::Moment) prevent(at, kReads);
  if (info->id >= Builtin::Arg0 && info->id <= Builtin::Arg9) {
    const unsigned n = in.index() - static_cast<unsigned>(Builtin::Arg0);
    needs_.arguments = static_cast<std::uint16_t>(needs_.arguments | 1U << n);
  }
  needs_.error_number |= info->id == Builtin::Errno;
  known.set(in.rd(), info->type == BuiltinType::String);
}

void ObjectNeeds::load_array(std::size_t at, Insn in, Known& known) {
  if (in.r1() == kUregsArray) prevent(at, kReads);
  if (in.r1() == kArgsArray) {
    const auto n = known.value(in.r2());
    const unsigned which = n && *n < kMaxProbeArguments ? 1U << *n : kAllArguments;
    needs_.arguments = static_cast<std::uint16_t>(needs_.arguments | which);
  }
  known.set(in.rd(), false);
}

void ObjectNeeds::call(std::size_t at, Insn in, Known& known) {
  const auto info = find_subroutine(in.index());
  if (!info || looks_at_guest(*info)) prevent(at, kReads);
  for (std::size_t n = 0; info && n < std::min(pushed_.size(), info->arguments.size()); ++n) {
    const bool by_address =
        info->arguments[n] == ArgumentKind::Pointer || info->arguments[n] == ArgumentKind::String;
    if (by_address && !pushed_[n]) prevent(at, kReads);
  }
  pushed_.clear();
  known.set(in.rd(), info && makes_memory(info->result));
}

std::string of_action(const Action& action, std::string_view why) {
  const std::string_view named = action_info(action.kind).name;
  const std::string_view name = named.empty() ? "tracemem" : named;  // with three arguments
  const SourceMap::Part* const part = action.source.at(0);
  return part == nullptr ? fmt::format("{}() {}", name, why)
                         : fmt::format("line {}: {}() {}", part->line, name, why);
}

std::optional<std::string> obstacle_of(const Action& action) {
  switch (action_info(action.kind).changes) {
    case Changes::Guest: return of_action(action, "changes the guest");
    case Changes::Time: return of_action(action, "holds a vCPU");
    case Changes::Nothing:
    case Changes::Host: break;
  }
  return dumps_memory(action.kind) ? std::optional(of_action(action, kReads)) : std::nullopt;
}

}  // namespace

RecordNeeds& RecordNeeds::operator|=(const RecordNeeds& other) {
  arguments |= other.arguments;
  error_number |= other.error_number;
  if (!obstacle) obstacle = other.obstacle;
  return *this;
}

RecordNeeds record_needs(const Clause& clause) {
  RecordNeeds needs;
  if (clause.predicate) needs |= ObjectNeeds(*clause.predicate).find();
  for (const Action& action : clause.actions) {
    needs |= RecordNeeds{.obstacle = obstacle_of(action)};
    for (const Difo& difo : action.arguments) needs |= ObjectNeeds(difo).find();
  }
  return needs;
}

}  // namespace ringside::dif
