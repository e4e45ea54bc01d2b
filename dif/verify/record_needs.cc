// In this file, top to bottom: what variables, subroutines and actions need, one object, the ways
// through a predicate, one clause.
#include "dif/verify/record_needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <utility>

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
         std::ranges::find(subroutine.arguments, ArgumentKind::Address) !=
             subroutine.arguments.end();
}

bool makes_memory(BuiltinType type) {
  return type == BuiltinType::String || type == BuiltinType::Pointer;
}

using Base = RecordAddress::Base;

/// Loads and stores of an associative array.
bool is_array(Opcode op) {
  return op == Opcode::Ldgaa || op == Opcode::Ldtaa || op == Opcode::Stgaa || op == Opcode::Sttaa;
}

/// Where a value may point; empty: it is not known.
using Addresses = std::vector<RecordAddress>;

/// A kernel address that no kernel has memory at: NULL, and the members of a structure there. To
/// read it is a fault.
bool is_nowhere(const RecordAddress& address) {
  constexpr std::int64_t kFirstBytes = 64 << 10;
  return address.base == Base::Constant && !address.index && address.offset >= 0 &&
         address.offset < kFirstBytes;
}

/// A register's value, as far as it is known. One that may be D's own memory or one of several
/// addresses is one of these, by the way that led here.
struct Value {
  bool is_ours = false;                 // an address of D's own memory
  Addresses addresses{};                // a constant, or where in the guest it points
  Compared told{};                      // a number of the record, or a text
  unsigned shifted = 0;                 // `told` was, to the left by so many bits
  std::optional<std::uint64_t> most{};  // the number is no larger than this
  bool is_error = false;                // errno

  static constexpr std::size_t kMostAddresses = 8;

  static Value ours() { return {.is_ours = true}; }
  static Value of(std::uint64_t constant) {
    return {.addresses = {{Base::Constant, 0, static_cast<std::int64_t>(constant)}}};
  }
  Compared compared() const {
    if (const auto number = constant()) return *number;
    return shifted == 0 ? told : Compared();
  }
  std::optional<std::uint64_t> constant() const {
    if (is_ours || addresses.size() != 1) return {};
    const RecordAddress& address = addresses.front();
    if (address.base != Base::Constant || address.room != 0 || address.index) return {};
    return static_cast<std::uint64_t>(address.offset);
  }
  std::optional<std::uint64_t> largest() const {
    const auto number = constant();
    return number ? number : most;
  }
  bool points() const { return is_ours || !addresses.empty(); }
  bool is_null() const { return addresses == Addresses{RecordAddress()}; }
  bool is_ours_alone() const { return is_ours && (addresses.empty() || is_null()); }
  void meet(const Value& other) {
    const auto mine = largest(), others = other.largest();
    most = mine && others ? std::optional(std::max(*mine, *others)) : std::nullopt;
    const bool both_point = points() && other.points();
    for (const RecordAddress& address : other.addresses) {
      if (std::ranges::find(addresses, address) == addresses.end()) addresses.push_back(address);
    }
    const bool is_known = both_point && addresses.size() <= kMostAddresses;
    is_ours = is_known && (is_ours || other.is_ours);
    if (!is_known) addresses.clear();
    is_error &= other.is_error;
    if (told != other.told || shifted != other.shifted) told = {};
  }
};

/// this-> and self->, by scope and id; those that are known.
using Variables = std::map<std::pair<VariableScope, std::uint16_t>, Value>;

/// All that is known before an instruction, whichever way led to it.
struct Known {
  std::array<Value, kRegisters> registers{Value::of(0)};
  Variables variables;
  bool compares_error = false;  // the last comparison was errno's with 0
  bool has_failed = false;      // errno is not 0

  const Value& at(unsigned number) const { return registers[number % kRegisters]; }
  void set(unsigned number, Value value) {
    if (number % kRegisters != 0) registers[number % kRegisters] = std::move(value);
  }
  void meet(const Known& other) {
    compares_error &= other.compares_error;
    has_failed &= other.has_failed;
    for (unsigned n = 0; n < kRegisters; ++n) registers[n].meet(other.registers[n]);
    for (auto& [variable, value] : variables) {
      const auto there = other.variables.find(variable);
      value.meet(there != other.variables.end() ? there->second : Value());
    }
  }
};

/// Modulo 2^64, as DIF computes.
std::int64_t wrap(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

/// The distances grow by the constant.
Addresses moved(const Value& value, std::optional<std::uint64_t> by) {
  if (!by) return {};
  Addresses addresses = value.addresses;
  for (RecordAddress& address : addresses) {
    address.offset = wrap(static_cast<std::uint64_t>(address.offset) + *by);
  }
  return addresses;
}

/// The load that tells the number, which is unsigned and has fewer bytes than an address.
std::optional<RecordAddress::Index> index_of(const Value& number) {
  const auto* const told = std::get_if<RecordValue>(&number.told);
  const bool is_index = told != nullptr && told->source == RecordValue::Source::Load &&
                        !told->is_signed && told->bytes < sizeof(std::uint64_t) &&
                        told->mask == UINT64_MAX && number.shifted == 0;
  return is_index ? std::optional(RecordAddress::Index{told->number, told->bytes}) : std::nullopt;
}

/// Its distance grows by a number.
std::optional<RecordAddress> moved_by(RecordAddress address, const Value& number) {
  const auto most = number.largest();
  if (!most || *most > RecordAddress::kMostRoom) {
    const auto index = index_of(number);
    if (!index || address.index || address.room != 0) return std::nullopt;
    address.index = index;
    return address;
  }
  address.room += static_cast<std::uint32_t>(*most);
  if (address.room > RecordAddress::kMostRoom) return std::nullopt;
  return address;
}

Addresses moved_by(const Value& value, const Value& number) {
  if (number.constant()) return moved(value, number.constant());
  Addresses addresses;
  for (const RecordAddress& address : value.addresses) {
    const auto there = moved_by(address, number);
    if (!there) return {};
    addresses.push_back(*there);
  }
  return addresses;
}

/// The largest result of an operation on numbers; empty where it is not known, or has the sign bit.
std::optional<std::uint64_t> largest_of(Opcode op, const Value& left, const Value& right) {
  constexpr auto kLargest = std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  const auto a = left.largest(), b = right.largest();
  const bool is_shift = right.constant() && *b < 64;
  switch (op) {
    case Opcode::And:
      if (!a || !b) return a ? a : b;
      return std::min(*a, *b);
    case Opcode::Add:
      if (!a || !b || std::max(*a, *b) > kLargest / 2) return {};
      return *a + *b;
    case Opcode::Mul:
      if (!a || !b || std::max(*a, *b) > std::numeric_limits<std::int32_t>::max()) return {};
      return *a * *b;
    case Opcode::Sll:
      return is_shift && a && *a <= kLargest >> *b ? std::optional(*a << *b) : std::nullopt;
    case Opcode::Srl: return is_shift ? std::optional(a.value_or(UINT64_MAX) >> *b) : std::nullopt;
    case Opcode::Sra:
      return is_shift && a && *a <= kLargest ? std::optional(*a >> *b) : std::nullopt;
    default: return std::nullopt;
  }
}

std::optional<std::uint64_t> folded(Opcode op, const Value& left, const Value& right) {
  const auto a = left.constant(), b = right.constant();
  if (!a || !b) return std::nullopt;
  if (op == Opcode::Mul) return *a * *b;
  if (op == Opcode::Sll && *b < 64) return *a << *b;
  return std::nullopt;
}

/// `told` & constant.
Compared masked(const Value& value, std::optional<std::uint64_t> with) {
  const auto* const number = std::get_if<RecordValue>(&value.told);
  if (number == nullptr || value.shifted != 0 || !with) return {};
  RecordValue masked = *number;
  masked.mask &= *with;
  return masked;
}

/// To the left by `by` and to the right again is how D narrows a number to fewer bytes.
Value shifted(Opcode op, const Value& value, std::optional<std::uint64_t> by) {
  const auto* const number = std::get_if<RecordValue>(&value.told);
  const std::uint64_t bits = by.value_or(0);
  const bool is_narrowing = bits == 32 || bits == 48 || bits == 56;
  if (number == nullptr || !is_narrowing || number->mask != UINT64_MAX) return {};
  Value result = value;
  result.addresses.clear();
  if (op == Opcode::Sll) {
    if (value.shifted != 0) return {};
    result.shifted = static_cast<unsigned>(bits);
    return result;
  }
  const auto bytes = static_cast<std::uint8_t>(sizeof(std::uint64_t) - bits / 8);
  if (value.shifted != bits || number->bytes < bytes) return {};
  result.shifted = 0;
  result.told = RecordValue{number->source, number->number, bytes, op == Opcode::Sra};
  return result;
}

/// A product, or a number that is shifted to the left.
Value scaled(Opcode op, const Value& left, const Value& right) {
  Value result;
  if (const auto value = folded(op, left, right)) {
    result = Value::of(*value);
  } else if (op == Opcode::Sll) {
    result = shifted(op, left, right.constant());
  }
  result.most = largest_of(op, left, right);
  return result;
}

/// The number or name that the record has of the task; nothing for other variables.
Compared told_by(Builtin variable) {
  using Source = RecordValue::Source;
  switch (variable) {
    case Builtin::Curthread: return RecordValue{Source::Task};
    case Builtin::Pid: return RecordValue{Source::Pid, 0, sizeof(std::int32_t), true};
    case Builtin::Tid: return RecordValue{Source::Tid, 0, sizeof(std::int32_t), true};
    case Builtin::Execname: return RecordValue{Source::Name};
    default: return {};
  }
}

bool needs_ids(Builtin variable) {
  return variable == Builtin::Pid || variable == Builtin::Tid;
}

/// Those that are known not to need any.
bool needs_registers(Builtin variable) {
  switch (variable) {
    case Builtin::Curthread:
    case Builtin::Timestamp:
    case Builtin::Vtimestamp:
    case Builtin::Walltimestamp:
    case Builtin::Ipl:
    case Builtin::Epid:
    case Builtin::Id:
    case Builtin::Probeprov:
    case Builtin::Probemod:
    case Builtin::Probefunc:
    case Builtin::Probename:
    case Builtin::Pid:
    case Builtin::Tid:
    case Builtin::Ppid:
    case Builtin::Uid:
    case Builtin::Gid:
    case Builtin::Execname:
    case Builtin::Threadname:
    case Builtin::Cpu:
    case Builtin::Vmname:
    case Builtin::Vmid:
    case Builtin::Vmpid: return false;
    default: return true;
  }
}

std::string place_of(const SourceMap::Part& part) {
  return part.column == 0 ? fmt::format("line {}", part.line)
                          : fmt::format("line {}, column {}", part.line, part.column);
}

/// The objects of one clause, in the order in which they run.
class ClauseNeeds {
 public:
  explicit ClauseNeeds(std::uint32_t string_size, const KeptArguments& kept = {})
      : string_size_(string_size) {
    for (const auto& [variable, argument] : kept) {
      Value value{.addresses = {{Base::Kept, argument, 0}}};
      value.meet(Value::of(0));
      variables_[{VariableScope::Thread, variable}] = std::move(value);
    }
    first_variables_ = variables_;
  }

  void add(const Difo& difo) {
    difo_ = &difo;
    pushed_.clear();
    if (difo.destructive) prevent(0, "changes the guest");
    if (is_user_code(difo.result.kind)) {
      prevent(0, difo.result.kind == ValueKind::UserStack ? "follows the process's stack"
                                                          : "looks at the process's code");
    }
    needs_.stack |= difo.result.kind == ValueKind::KernelStack;
    Known first;
    first.variables = std::move(variables_);
    after_.reset();
    result_.reset();
    walk_forward(
        difo, first, [this](std::size_t at, Insn in, Known& known) { run(at, in, known); },
        learn_from);
    if (after_) variables_ = std::move(after_->variables);
  }
  /// Of the first object, after add().
  void add_checks(const Difo& predicate);
  void prevent(std::string why) {
    if (!needs_.obstacle) needs_.obstacle = std::move(why);
  }
  RecordNeeds take() { return std::move(needs_); }
  /// Of the last object, which returns a number.
  std::optional<RecordAddress> address_of_result() const {
    const bool is_one = result_ && !result_->is_ours && result_->addresses.size() == 1;
    return is_one ? std::optional(result_->addresses.front()) : std::nullopt;
  }

 private:
  void prevent(std::size_t at, std::string_view why) {
    const SourceMap::Part* const part = part_around(static_cast<std::uint32_t>(at));
    if (part == nullptr) {
      prevent(fmt::format("an expression {}", why));
    } else {
      prevent(fmt::format("{}: {} {}", place_of(*part), part->text, why));
    }
  }
  /// The part of the program's own text that an instruction belongs to. One that a library's
  /// translator has made belongs to what takes its value, which comes after it; null: none does.
  const SourceMap::Part* part_around(std::uint32_t at) const {
    const auto is_own = [](const SourceMap::Part& part) {
      return !part.text.empty() && part.line != 0;
    };
    const SourceMap::Part* const here = difo_->source.at(at);
    if (here != nullptr && is_own(*here)) return here;
    const SourceMap::Part* before = nullptr;
    for (const SourceMap::Part& part : difo_->source.parts) {
      if (!is_own(part)) continue;
      if (part.first > at) return &part;
      before = &part;
    }
    return before;
  }
  void read(std::size_t at, const Value& from, std::uint64_t bytes, bool is_users);
  std::optional<std::uint16_t> read_at(std::size_t at, RecordAddress from, std::uint64_t bytes,
                                       bool is_users);
  /// By reference; null is no memory.
  void read_ours_or(std::size_t at, const Value& from, std::uint64_t bytes) {
    if (!from.is_ours_alone() && !from.is_null()) read(at, from, bytes, false);
  }
  const Variable* find_variable(VariableScope scope, std::uint16_t id) const {
    const auto found = std::ranges::find_if(
        difo_->variables, [&](const Variable& one) { return one.scope == scope && one.id == id; });
    return found == difo_->variables.end() ? nullptr : &*found;
  }

  /// A way through the predicate, as far as it was followed.
  struct Way {
    std::size_t at = 0;
    Known known;
    Compared left, right;  // of the last comparison
    PredicateWay way;
  };
  std::vector<PredicateWay> find_ways();
  bool step(Way& way, std::vector<Way>& others);
  void branch(Way& way, Insn in, std::vector<Way>& others) const;
  std::optional<PredicateWay::Mark> mark_of(Insn in, const Known& known) const;

  static void learn_from(Insn branch, bool is_taken, Known& known);
  void run(std::size_t at, Insn in, Known& known);
  void load(std::size_t at, Insn in, LoadedMemory memory, Known& known);
  void load_builtin(std::size_t at, Insn in, Known& known);
  void load_array(std::size_t at, Insn in, Known& known);
  void push_reference(std::size_t at, Insn in, const Known& known);
  void call(std::size_t at, Insn in, Known& known);
  std::optional<std::uint64_t> bytes_behind(Subroutine which, std::size_t n);
  std::optional<std::uint64_t> bytes_of_sum();
  void copy_in(std::size_t at, const SubroutineInfo& subroutine);
  void name_path(std::size_t at);
  void load_variable(VariableScope scope, Insn in, Known& known) const;
  void store_variable(std::size_t at, VariableScope scope, Insn in, Known& known);

  const std::uint32_t string_size_;
  const Difo* difo_ = nullptr;
  std::vector<Value> pushed_;  // on the tuple stack
  Variables variables_;        // after the last object
  Variables first_variables_;
  std::optional<Known> after_;  // the object
  std::optional<Value> result_;
  RecordNeeds needs_;
  bool has_failed_ = false;  // at the instruction that is looked at, Known's
};

/// Where that may be. Of several places, one that is a fault need not be copied.
Addresses readable(const Value& from, bool is_users) {
  Addresses addresses = from.addresses;
  if (addresses.size() > 1 && !is_users) std::erase_if(addresses, is_nowhere);
  return addresses;
}

void ClauseNeeds::read(std::size_t at, const Value& from, std::uint64_t bytes, bool is_users) {
  if (from.addresses.empty()) return prevent(at, kReads);
  for (const RecordAddress& address : readable(from, is_users)) {
    read_at(at, address, bytes, is_users);
  }
}

/// The number of the load. A list of loads has distances of 32 bits, which reach the kernel's image
/// and modules, too.
std::optional<std::uint16_t> ClauseNeeds::read_at(std::size_t at, RecordAddress from,
                                                  std::uint64_t bytes, bool is_users) {
  const bool is_near = from.offset == static_cast<std::int32_t>(from.offset);
  if (!is_near || bytes > UINT32_MAX) {
    prevent(at, kReads);
    return std::nullopt;
  }
  needs_.keeps_past_success |= from.base == Base::Kept && !has_failed_;
  bytes += std::exchange(from.room, 0);
  return needs_.add({from, static_cast<std::uint32_t>(bytes), is_users});
}

/// errno, as far as it is known on one of a branch's two ways.
void ClauseNeeds::learn_from(Insn branch, bool is_taken, Known& known) {
  const bool differs = branch.op() == (is_taken ? Opcode::Bne : Opcode::Be);
  if (known.compares_error && differs) known.has_failed = true;
}

/// No branch leads into or out of the pushes of one call or key.
void ClauseNeeds::run(std::size_t at, Insn in, Known& known) {
  const Value r1 = known.at(in.r1()), r2 = known.at(in.r2());
  has_failed_ = known.has_failed;
  if (const auto memory = loaded_memory(in.op())) return load(at, in, *memory, known);
  switch (in.op()) {
    case Opcode::Add: {
      const Addresses addresses = moved_by(r1, r2);
      return known.set(in.rd(), {.is_ours = r1.is_ours != r2.is_ours,
                                 .addresses = addresses.empty() ? moved_by(r2, r1) : addresses,
                                 .most = largest_of(in.op(), r1, r2)});
    }
    case Opcode::Sub: {
      const auto by = r2.constant();
      return known.set(in.rd(),
                       {.is_ours = r1.is_ours && !r2.is_ours,
                        .addresses = moved(r1, by ? std::optional(0 - *by) : std::nullopt)});
    }
    case Opcode::Mul:
    case Opcode::Sll: return known.set(in.rd(), scaled(in.op(), r1, r2));
    case Opcode::Srl:
    case Opcode::Sra: {
      Value result = shifted(in.op(), r1, r2.constant());
      result.most = largest_of(in.op(), r1, r2);
      return known.set(in.rd(), result);
    }
    case Opcode::And: {
      const auto with = r2.constant();
      return known.set(in.rd(), {.told = with ? masked(r1, with) : masked(r2, r1.constant()),
                                 .most = largest_of(in.op(), r1, r2)});
    }
    case Opcode::Mov: return known.set(in.rd(), r1);
    case Opcode::Setx: return known.set(in.rd(), Value::of(difo_->integers[in.index()]));
    case Opcode::Sets:
      return known.set(in.rd(), {.is_ours = true,
                                 .told = std::string_view(difo_->strings.c_str() + in.index())});
    case Opcode::Allocs: return known.set(in.rd(), Value::ours());
    case Opcode::Copys: return read_ours_or(at, r1, r2.constant().value_or(UINT64_MAX));
    case Opcode::Cmp:
      known.compares_error =
          (r1.is_error && r2.constant() == 0) || (r2.is_error && r1.constant() == 0);
      return;
    case Opcode::Tst: known.compares_error = r1.is_error; return;
    case Opcode::Scmp:
      known.compares_error = false;
      read_ours_or(at, r1, string_size_);
      return read_ours_or(at, r2, string_size_);
    case Opcode::Ldga: return load_array(at, in, known);
    case Opcode::Ldgs:
      if (in.index() < kFirstUserVariable) return load_builtin(at, in, known);
      [[fallthrough]];
    case Opcode::Ldgaa: return load_variable(VariableScope::Global, in, known);
    case Opcode::Ldts:
    case Opcode::Ldtaa: needs_.ids = true; return load_variable(VariableScope::Thread, in, known);
    case Opcode::Ldls: return load_variable(VariableScope::Clause, in, known);
    case Opcode::Stgs:
    case Opcode::Stgaa: return store_variable(at, VariableScope::Global, in, known);
    case Opcode::Stts:
    case Opcode::Sttaa:
      needs_.ids = true;
      return store_variable(at, VariableScope::Thread, in, known);
    case Opcode::Stls: return store_variable(at, VariableScope::Clause, in, known);
    case Opcode::Pushtr: return push_reference(at, in, known);
    case Opcode::Pushtv: return pushed_.push_back(known.at(in.rd()));
    case Opcode::Popts:
      if (!pushed_.empty()) pushed_.pop_back();
      return;
    case Opcode::Flushts: return pushed_.clear();
    case Opcode::Call: return call(at, in, known);
    case Opcode::Ret:
      if (is_by_reference(difo_->result)) {
        read_ours_or(at, known.at(in.rd()), stored_size(difo_->result, string_size_));
      }
      after_ ? after_->meet(known) : void(after_ = known);
      result_ ? result_->meet(known.at(in.rd())) : void(result_ = known.at(in.rd()));
      return;
    default: break;
  }
  const Form form = opcode_info(static_cast<std::uint8_t>(in.op()))->form;
  if (form == Form::Rrr || form == Form::Rr || form == Form::Load) known.set(in.rd(), {});
}

/// A word of the guest's may be an address in its turn.
void ClauseNeeds::load(std::size_t at, Insn in, LoadedMemory memory, Known& known) {
  const Value from = known.at(in.r1());
  const bool is_guests =
      memory == LoadedMemory::User || (memory == LoadedMemory::Guest && !from.is_ours_alone());
  if (!is_guests) return known.set(in.rd(), {});
  const bool is_users = memory == LoadedMemory::User;
  const unsigned bytes = loaded_bytes(in.op());
  Value value;
  if (!loads_signed(in.op()) && bytes < sizeof(std::uint64_t)) {
    value.most = (std::uint64_t{1} << 8 * bytes) - 1;
  }
  read(at, from, bytes, is_users);
  bool is_exact = !from.is_ours;
  for (const RecordAddress& address : readable(from, is_users)) {
    const auto load = read_at(at, address, bytes, is_users);
    is_exact = is_exact && load && address.room == 0;
    if (load) value.addresses.push_back({Base::Load, *load, 0});
  }
  if (is_exact && value.addresses.size() == 1) {
    value.told = RecordValue{RecordValue::Source::Load, value.addresses.front().number,
                             static_cast<std::uint8_t>(bytes), loads_signed(in.op())};
  }
  if (!is_exact || bytes != sizeof(std::uint64_t)) value.addresses.clear();
  known.set(in.rd(), value);
}

void ClauseNeeds::load_builtin(std::size_t at, Insn in, Known& known) {
  const auto info = find_builtin(in.index());
  if (!info || info->source == BuiltinSource::Guest) return prevent(at, kReads);
  Value value;
  value.is_ours = info->type == BuiltinType::String;
  if (info->source == BuiltinSource::Words &&
      std::ranges::find(needs_.variables, info->id) == needs_.variables.end()) {
    needs_.variables.push_back(info->id);
  }
  needs_.ids |= needs_ids(info->id);
  needs_.registers |= needs_registers(info->id);
  if (info->id == Builtin::Curthread) value.addresses = {{Base::Task, 0, 0}};
  // Strings are compared up to strsize.
  const bool is_cut = info->id == Builtin::Execname && string_size_ < kTaskNameBytes;
  value.told = is_cut ? Compared() : told_by(info->id);
  if (info->id >= Builtin::Arg0 && info->id <= Builtin::Arg9) {
    const auto n = static_cast<std::uint16_t>(in.index() - static_cast<unsigned>(Builtin::Arg0));
    needs_.arguments = static_cast<std::uint16_t>(needs_.arguments | 1U << n);
    value.addresses = {{Base::Argument, n, 0}};
    value.told = RecordValue{RecordValue::Source::Argument, n};
  }
  value.is_error = info->id == Builtin::Errno;
  needs_.error_number |= value.is_error;
  known.set(in.rd(), value);
}

void ClauseNeeds::load_array(std::size_t at, Insn in, Known& known) {
  Value value;
  needs_.registers |= in.r1() != kArgsArray;
  if (in.r1() == kUregsArray) prevent(at, kReads);
  if (in.r1() == kArgsArray) {
    const auto n = known.at(in.r2()).constant();
    const bool is_known = n && *n < kMaxProbeArguments;
    const unsigned which = is_known ? 1U << *n : kAllArguments;
    needs_.arguments = static_cast<std::uint16_t>(needs_.arguments | which);
    if (is_known) {
      value.addresses = {{Base::Argument, static_cast<std::uint16_t>(*n), 0}};
      value.told = RecordValue{RecordValue::Source::Argument, static_cast<std::uint16_t>(*n)};
    }
  }
  known.set(in.rd(), value);
}

void ClauseNeeds::push_reference(std::size_t at, Insn in, const Known& known) {
  const bool is_string = in.r1() == static_cast<std::uint8_t>(TupleType::String);
  const auto size = is_string ? string_size_ : known.at(in.r2()).constant().value_or(UINT64_MAX);
  read_ours_or(at, known.at(in.rd()), size);
  pushed_.push_back(Value::ours());  // or null, as strtok() may have it
}

void ClauseNeeds::call(std::size_t at, Insn in, Known& known) {
  const auto info = find_subroutine(in.index());
  const bool copies_in =
      info && (info->id == Subroutine::Copyin || info->id == Subroutine::Copyinstr);
  if (copies_in) {
    copy_in(at, *info);
  } else if (info && info->id == Subroutine::DPath) {
    name_path(at);
    pushed_.clear();
  } else if (!info || looks_at_guest(*info)) {
    prevent(at, kReads);
  }
  for (std::size_t n = 0; info && n < std::min(pushed_.size(), info->arguments.size()); ++n) {
    const bool by_address =
        info->arguments[n] == ArgumentKind::Pointer || info->arguments[n] == ArgumentKind::String;
    if (!by_address || pushed_[n].is_ours_alone()) continue;
    if (const auto bytes = bytes_behind(info->id, n)) {
      read(at, pushed_[n], *bytes, false);
    } else {
      prevent(at, kReads);
    }
  }
  pushed_.clear();
  Value result{.is_ours = info && makes_memory(info->result)};
  if (info && info->id == Subroutine::Strlen) result.most = string_size_;
  known.set(in.rd(), result);
}

/// How many bytes a subroutine may look at behind a pointer, its argument `n`; empty: not known.
std::optional<std::uint64_t> ClauseNeeds::bytes_behind(Subroutine which, std::size_t n) {
  constexpr std::uint64_t kIpv4 = 4, kIpv6 = 16, kLongestLinkAddress = 20;  // InfiniBand's
  switch (which) {
    case Subroutine::InetNtoa: return kIpv4;
    case Subroutine::InetNtoa6:
    case Subroutine::InetNtop: return kIpv6;
    case Subroutine::LinkNtop: return kLongestLinkAddress;
    case Subroutine::Bcopy:   // from, to, size
    case Subroutine::Memstr:  // from, character, size
      return n == 0 && pushed_.size() > 2 ? pushed_[2].largest() : std::nullopt;
    case Subroutine::Sum32: return bytes_of_sum();
    default: return std::nullopt;
  }
}

/// __sum32(first, stride, count). If a load tells the count, so many numbers are copied as nearly
/// all have, and a trap that has more waits.
std::optional<std::uint64_t> ClauseNeeds::bytes_of_sum() {
  constexpr std::uint64_t kMostCopied = 64, kMostStride = 32;
  const auto stride = pushed_.size() > 2 ? pushed_[1].constant() : std::nullopt;
  if (!stride || *stride > kMostStride) return std::nullopt;
  const Value& count = pushed_[2];
  std::uint64_t most = count.largest().value_or(UINT64_MAX);
  if (most > kMostCopied) {
    const auto* const told = std::get_if<RecordValue>(&count.told);
    const bool is_loaded =
        told != nullptr && told->source == RecordValue::Source::Load && count.shifted == 0;
    if (!is_loaded) return std::nullopt;
    most = kMostCopied;
    needs_.add_bound({*told, RecordCheck::Relation::LessUnsigned, false, most + 1});
  }
  return *stride * (std::max<std::uint64_t>(most, 1) - 1) + sizeof(std::uint32_t);
}

/// copyin(address, size), copyinstr(address[, most]).
void ClauseNeeds::copy_in(std::size_t at, const SubroutineInfo& subroutine) {
  if (pushed_.empty()) return prevent(at, kReads);
  std::uint64_t bytes = string_size_;
  if (pushed_.size() > 1) {
    const std::uint64_t wanted = pushed_[1].constant().value_or(UINT64_MAX);
    bytes = subroutine.id == Subroutine::Copyin ? wanted : std::min(bytes, wanted);
  }
  read(at, pushed_[0], bytes, true);
}

/// d_path(path), d_path(dentry, mount). A struct path has its mount first.
void ClauseNeeds::name_path(std::size_t at) {
  const auto only_one = [](const Value& value) -> std::optional<RecordAddress> {
    const Addresses addresses = readable(value, false);
    const bool is_one = !value.is_ours && addresses.size() == 1 && addresses.front().room == 0;
    return is_one ? std::optional(addresses.front()) : std::nullopt;
  };
  const auto pointer_at = [&](RecordAddress place, std::int64_t member) {
    place.offset += member;
    const auto load = read_at(at, place, sizeof(std::uint64_t), false);
    return load ? std::optional(RecordAddress{Base::Load, *load}) : std::nullopt;
  };
  std::optional<RecordAddress> dentry, mount;
  if (!pushed_.empty()) dentry = only_one(pushed_[0]);
  if (pushed_.size() > 1) {
    mount = only_one(pushed_[1]);
  } else if (const auto path = dentry) {
    mount = pointer_at(*path, 0);
    dentry = pointer_at(*path, sizeof(std::uint64_t));
  }
  if (!dentry || !mount) return prevent(at, kReads);
  needs_.add({*dentry, *mount});
}

void ClauseNeeds::load_variable(VariableScope scope, Insn in, Known& known) const {
  const Variable* const variable = find_variable(scope, in.index());
  if (variable != nullptr && is_by_reference(variable->type)) {
    return known.set(in.rd(), Value::ours());
  }
  const auto found =
      is_array(in.op()) ? known.variables.end() : known.variables.find({scope, in.index()});
  known.set(in.rd(), found != known.variables.end() ? found->second : Value());
}

void ClauseNeeds::store_variable(std::size_t at, VariableScope scope, Insn in, Known& known) {
  const Value& value = known.at(in.rd());
  const Variable* const variable = find_variable(scope, in.index());
  if (variable != nullptr && is_by_reference(variable->type)) {
    return read_ours_or(at, value, stored_size(variable->type, string_size_));
  }
  if (scope == VariableScope::Global || is_array(in.op())) return;
  const bool is_whole = variable != nullptr && variable->type.size == sizeof(std::uint64_t);
  Value stored = is_whole && !value.is_ours ? value : Value();
  // Where there is no room for a thread's variable, it stays 0.
  if (scope == VariableScope::Thread) stored.meet(Value::of(0));
  known.variables[{scope, in.index()}] = std::move(stored);
}

/// Tells whether an instruction may fail or change something; empty: it only works out a value.
/// A thread's variable can be found where the record knows the task, and no check is judged where
/// it does not.
std::optional<PredicateWay::Mark> ClauseNeeds::mark_of(Insn in, const Known& known) const {
  using Mark = PredicateWay::Mark;
  if (const auto memory = loaded_memory(in.op())) {
    const Value& from = known.at(in.r1());
    const bool is_copied = *memory != LoadedMemory::Own && !from.is_ours &&
                           from.addresses.size() == 1 && !is_nowhere(from.addresses.front());
    return is_copied ? Mark::Look : Mark::Other;
  }
  switch (in.op()) {
    case Opcode::Scmp: {
      const bool are_texts = known.at(in.r1()).is_ours_alone() && known.at(in.r2()).is_ours_alone();
      return are_texts ? std::nullopt : std::optional(Mark::Other);
    }
    case Opcode::Ldgs: {
      if (in.index() >= kFirstUserVariable) return std::nullopt;
      const auto info = find_builtin(in.index());
      if (!info || info->source != BuiltinSource::Moment || info->id == Builtin::Errno) {
        return Mark::Other;
      }
      const bool is_argument = info->id >= Builtin::Arg0 && info->id <= Builtin::Arg9;
      return is_argument ? std::optional(Mark::Look) : std::nullopt;
    }
    case Opcode::Ldga: return in.r1() == kArgsArray ? Mark::Look : Mark::Other;
    case Opcode::Or:
    case Opcode::Xor:
    case Opcode::And:
    case Opcode::Sll:
    case Opcode::Srl:
    case Opcode::Sra:
    case Opcode::Sub:
    case Opcode::Add:
    case Opcode::Mul:
    case Opcode::Not:
    case Opcode::Mov:
    case Opcode::Cmp:
    case Opcode::Tst:
    case Opcode::Nop:
    case Opcode::Setx:
    case Opcode::Sets:
    case Opcode::Ldls:
    case Opcode::Ldts: return std::nullopt;
    default: return Mark::Other;
  }
}

/// Goes on where the branch leads. If it may lead to both, the other way is one of `others`.
void ClauseNeeds::branch(Way& way, Insn in, std::vector<Way>& others) const {
  const auto* const left = std::get_if<std::uint64_t>(&way.left);
  const auto* const right = std::get_if<std::uint64_t>(&way.right);
  std::optional<bool> taken;  // empty: it is not known
  if (in.op() == Opcode::Ba) taken = true;
  if (left != nullptr && right != nullptr) taken = takes_branch(in.op(), compare(*left, *right));
  const auto go = [&](Way& one, bool is_taken_there) {
    for (const RecordCheck& check : checks_after(in.op(), is_taken_there, way.left, way.right)) {
      one.way.steps.emplace_back(check);
    }
    learn_from(in, is_taken_there, one.known);
    one.at = is_taken_there ? in.label() : one.at + 1;
  };
  if (taken) {
    way.at = *taken ? in.label() : way.at + 1;
    return;
  }
  others.push_back(way);
  go(others.back(), true);
  go(way, false);
}

/// One instruction. False where the way ends.
bool ClauseNeeds::step(Way& way, std::vector<Way>& others) {
  if (way.at >= difo_->text.size()) return false;
  const Insn in{difo_->text[way.at]};
  if (in.op() == Opcode::Ret) {
    const Compared result = way.known.at(in.rd()).compared();
    const auto* const number = std::get_if<std::uint64_t>(&result);
    way.way.is_true = number == nullptr || *number != 0;
    for (const RecordCheck& check : checks_after(Opcode::Bne, true, result, std::uint64_t{0})) {
      way.way.steps.emplace_back(check);
    }
    return false;
  }
  if (is_branch(in.op())) {
    branch(way, in, others);
    return true;
  }
  if (const auto mark = mark_of(in, way.known)) way.way.steps.emplace_back(*mark);
  if (in.op() == Opcode::Cmp || in.op() == Opcode::Scmp || in.op() == Opcode::Tst) {
    way.left = way.known.at(in.r1()).compared();
    way.right =
        in.op() == Opcode::Tst ? Compared(std::uint64_t{0}) : way.known.at(in.r2()).compared();
  }
  run(way.at, in, way.known);
  ++way.at;
  return true;
}

/// All ways through the object; none if there are too many.
std::vector<PredicateWay> ClauseNeeds::find_ways() {
  constexpr std::size_t kMostWays = 64, kMostSteps = 4096;  // of all ways
  std::vector<PredicateWay> ways;
  std::vector<Way> open(1);
  open.front().known.variables = first_variables_;
  std::size_t steps = 0;
  while (!open.empty()) {
    Way way = std::move(open.back());
    open.pop_back();
    while (step(way, open) && ++steps < kMostSteps) continue;
    ways.push_back(std::move(way.way));
    if (steps >= kMostSteps || ways.size() + open.size() > kMostWays) return {};
  }
  return ways;
}

void ClauseNeeds::add_checks(const Difo& predicate) {
  needs_.predicate_arguments = needs_.arguments;
  needs_.predicate_loads = needs_.loads.size();
  const std::size_t paths = needs_.paths.size();
  difo_ = &predicate;
  const auto ways = find_ways();
  needs_.checks = common_checks(ways, true);
  needs_.later_checks = common_checks(ways, false);
  // On one way an address may be known that on all together has room: that load is a part of
  // another.
  needs_.loads.resize(needs_.predicate_loads);
  needs_.paths.resize(paths);
  std::erase_if(needs_.later_checks, [this](const RecordCheck& check) {
    const bool is_of_part = check.value.source == RecordValue::Source::Load &&
                            check.value.number >= needs_.predicate_loads;
    return is_of_part || std::ranges::find(needs_.checks, check) != needs_.checks.end();
  });
}

std::string of_action(const Action& action, std::string_view why) {
  const std::string_view named = action_info(action.kind).name;
  const std::string_view name = named.empty() ? "tracemem" : named;  // with three arguments
  const SourceMap::Part* const part = action.source.at(0);
  return part == nullptr ? fmt::format("{}() {}", name, why)
                         : fmt::format("{}: {}() {}", place_of(*part), name, why);
}

std::optional<std::string> obstacle_of(const Action& action) {
  switch (action_info(action.kind).changes) {
    case Changes::Guest: return of_action(action, "changes the guest");
    case Changes::Time: return of_action(action, "holds a vCPU");
    case Changes::Nothing:
    case Changes::Host: break;
  }
  const bool copies = dumps_memory(action.kind) || action.kind == ActionKind::Pcap;
  return copies ? std::optional(of_action(action, kReads)) : std::nullopt;
}

}  // namespace

/// Both predicates have to look at the same for a later check, so that no look of one of them comes
/// after it.
RecordNeeds& RecordNeeds::operator|=(const RecordNeeds& other) {
  const auto looks = [](const RecordNeeds& needs) {
    return std::span(needs.loads).first(needs.predicate_loads);
  };
  const bool look_alike = predicate_arguments == other.predicate_arguments &&
                          std::ranges::equal(looks(*this), looks(other));
  keep_common(checks, other.checks);
  keep_common(later_checks, look_alike ? other.later_checks : std::vector<RecordCheck>());
  add_looks(other);
  return *this;
}

/// Loads that are based on others of `other` are based on the same ones here.
void RecordNeeds::add_looks(const RecordNeeds& other) {
  arguments |= other.arguments;
  error_number |= other.error_number;
  registers |= other.registers;
  ids |= other.ids;
  stack |= other.stack;
  keeps_past_success |= other.keeps_past_success;
  for (const Builtin variable : other.variables) {
    if (std::ranges::find(variables, variable) == variables.end()) variables.push_back(variable);
  }
  std::vector<std::uint16_t> numbers;
  const auto renumber = [&numbers](RecordAddress& at) {
    if (at.base == Base::Load) at.number = numbers[at.number];
    if (at.index) at.index->load = numbers[at.index->load];
  };
  for (RecordLoad load : other.loads) {
    renumber(load.at);
    numbers.push_back(add(load));
  }
  for (RecordPath path : other.paths) {
    renumber(path.dentry);
    renumber(path.mount);
    add(path);
  }
  for (RecordCheck bound : other.bounds) {
    bound.value.number = numbers[bound.value.number];
    add_bound(bound);
  }
  if (!obstacle) obstacle = other.obstacle;
}

std::uint16_t RecordNeeds::add(const RecordLoad& load) {
  const auto found = std::ranges::find(loads, load);
  const auto number = static_cast<std::uint16_t>(found - loads.begin());
  if (found == loads.end()) loads.push_back(load);
  return number;
}

void RecordNeeds::add(const RecordPath& path) {
  if (std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
}

bool RecordNeeds::follows_arguments() const {
  const auto is_argument = [](const RecordAddress& at) { return at.base == Base::Argument; };
  return std::ranges::any_of(loads, is_argument, &RecordLoad::at) ||
         std::ranges::any_of(paths, is_argument, &RecordPath::dentry) ||
         std::ranges::any_of(paths, is_argument, &RecordPath::mount);
}

void RecordNeeds::add_bound(const RecordCheck& bound) {
  if (std::ranges::find(bounds, bound) == bounds.end()) bounds.push_back(bound);
}

RecordedNumber recorded_number(const Difo& difo) {
  ClauseNeeds needs(0);
  needs.add(difo);
  const auto address = needs.address_of_result();
  return {needs.take(), address};
}

RecordNeeds record_needs(const Clause& clause, std::uint32_t string_size,
                         const KeptArguments& kept) {
  ClauseNeeds needs(string_size, kept);
  if (clause.predicate) {
    needs.add(*clause.predicate);
    needs.add_checks(*clause.predicate);
  }
  for (const Action& action : clause.actions) {
    if (auto obstacle = obstacle_of(action)) needs.prevent(std::move(*obstacle));
    for (const Difo& difo : action.arguments) needs.add(difo);
  }
  return needs.take();
}

}  // namespace ringside::dif
