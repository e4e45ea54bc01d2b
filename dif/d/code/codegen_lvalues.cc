// Lvalues: where they lie, loads; D's variables, assignment, tuples and calls.
#include <fmt/format.h>

#include <algorithm>

#include "dif/d/code/codegen.h"
#include "dif/d/syntax/ast.h"

namespace ringside::d {

/// Its code uses the tuple stack.
bool CodeGenerator::uses_tuple(const Expr& e) const {
  const bool copied = is_copied_in(e, As::Text) || is_copied_in(e, As::Value);
  const bool element =
      e.kind == ExprKind::Index && e.identifier != nullptr && e.identifier->is_associative;
  const bool to_memory =
      e.kind == ExprKind::Assign && e.a->identifier == nullptr;  // string_length()
  if (e.kind == ExprKind::Call || copied || element || to_memory) return true;
  for (const Expr* part : {e.a, e.b, e.c}) {
    if (part != nullptr && uses_tuple(*part)) return true;
  }
  return std::ranges::any_of(e.list, [this](const Expr* part) { return uses_tuple(*part); });
}

// Lvalues

/// Where a member lies; of a bit-field its unit.
Checked<unsigned> CodeGenerator::member_address(const Expr& e, Use use) {
  const auto path = resolver_.namer().find_member_path(e);
  const Expr& first = path ? *path->first : e;
  const unsigned reg =
      TRY(first.kind == ExprKind::Arrow ? pointed(*first.a, use) : address(*first.a, use));
  TRY(memory_.add_member(e, path, reg));
  return reg;
}

/// Where lies what a pointer points at, or an array or string itself.
Checked<unsigned> CodeGenerator::pointed(const Expr& pointer, Use use) {
  const bool in_place = types_.is_array(pointer.type) || types_.is_string(pointer.type);
  return in_place ? address(pointer, use) : evaluate(pointer);
}

/// Where an lvalue in memory, or a by-reference value, lies. Of a bit-field: its unit. With
/// Use::Write, a D variable that it is a part of is there afterwards.
Checked<unsigned> CodeGenerator::address(const Expr& e, Use use) {
  if (e.kind == ExprKind::KernelSymbol)
    return out_.constant(0, resolver_.namer().name_symbol(e), e.at);
  if (e.kind == ExprKind::Unary && e.op == Op::Deref) return pointed(*e.a, use);
  if (e.kind == ExprKind::Member || e.kind == ExprKind::Arrow) return member_address(e, use);
  if (e.kind == ExprKind::Index && e.identifier == nullptr && e.a->type.value != 0) {
    const unsigned base = TRY(pointed(*e.a, use));
    const Expr& position = *e.list[0];
    if (position.constant) resolver_.namer().need_element(*e.a, *position.constant);
    const unsigned index = TRY(evaluate(position));
    TRY(scale(index, types_.measure(e.type), resolver_.namer().name_element_size(*e.a), e.at));
    out_.emit(Opcode::Add, base, index, base);
    out_.release(index);
    return base;
  }
  const bool variable = e.identifier != nullptr && e.identifier->kind == Identifier::Kind::Variable;
  if (!variable || !types_.by_reference(e.type)) return evaluate(e);
  return use == Use::Write ? made(e) : present(e);
}

/// Goes to `there` where `address` is one; where it is 0, on, with the size of what `e` is.
Checked<unsigned> CodeGenerator::size_where_absent(const Expr& e, unsigned address, Label there) {
  out_.emit(Opcode::Tst, address);
  out_.branch(Opcode::Bne, there);
  return out_.constant(types_.measure(e.type), resolver_.namer().name_size(e.type, e.at), e.at);
}

/// Of a variable that is held by reference and that nobody assigned to yet, a part reads as zero:
/// the storage is zeroes in scratch memory.
Checked<unsigned> CodeGenerator::present(const Expr& e) {
  const unsigned reg = TRY(evaluate(e));
  const Label there = out_.label();
  const unsigned size = TRY(size_where_absent(e, reg, there));
  out_.emit(Opcode::Allocs, size, 0, reg);
  out_.release(size);
  out_.place(there);
  return reg;
}

/// The storage of a variable that is held by reference. One that nobody assigned to yet, or that
/// was freed, comes to be, with zeroes in it; where there is no room, the value written is lost.
Checked<unsigned> CodeGenerator::made(const Expr& e) {
  Registers waiting;
  const Registers* keys = TRY(keep_impure_keys(e, waiting));
  const unsigned reg = TRY(load_identifier(e, keys));
  const Label there = out_.label();
  const unsigned zeroes = TRY(size_where_absent(e, reg, there));
  out_.emit(Opcode::Allocs, zeroes, 0, zeroes);
  TRY(store_symbol(e, zeroes, keys));
  const unsigned stored = TRY(load_identifier(e, keys));
  out_.emit(Opcode::Mov, zeroes, 0, reg);
  out_.emit(Opcode::Tst, stored);
  out_.branch(Opcode::Be, there);
  out_.emit(Opcode::Mov, stored, 0, reg);
  out_.place(there);
  for (const unsigned done : {zeroes, stored}) out_.release(done);
  for (const unsigned done : waiting) out_.release(done);
  return reg;
}

/// Computes the keys of an element that is used more than once, where that must not happen again.
Checked<const CodeGenerator::Registers*> CodeGenerator::keep_impure_keys(const Expr& e,
                                                                         Registers& waiting) {
  const auto pure_key = [](const Expr* key) { return is_pure(*key); };
  if (e.identifier == nullptr || std::ranges::all_of(e.list, pure_key)) return nullptr;
  for (const Slot& slot : key_slots(e)) waiting.push_back(TRY(slot_value(slot)));
  return &waiting;
}

Checked<unsigned> CodeGenerator::load(const Expr& e) {
  if (e.identifier != nullptr) return load_identifier(e);
  const bool is_argument = e.kind == ExprKind::Index && e.a->type.value == 0;
  if (is_argument && e.text != nullptr) {
    const unsigned reg = TRY(evaluate(*e.list[0]));
    out_.emit(Opcode::Ldga, *e.text == "uregs" ? dif::kUregsArray : dif::kRegsArray, reg, reg);
    return reg;
  }
  if (is_argument) {  // args[n]: the registers' upper bits are not the argument's
    const unsigned reg = TRY(out_.constant(e.address, e.at));
    out_.emit(Opcode::Ldga, dif::kArgsArray, reg, reg);
    TRY(extend(reg, e.type, e.at));
    return reg;
  }
  const unsigned reg = TRY(address(e));
  if (types_.by_reference(e.type) || types_.kind(e.type) == TypeKind::Function) return reg;
  return load_at(e, reg);
}

Checked<unsigned> CodeGenerator::load_at(const Expr& e, unsigned address) {
  if (types_.is_scalar(e.type)) return memory_.load(e, address);
  TRY(resolver_.value_type(e));
  return complain("D_UNKNOWN", e.at,
                  fmt::format("a value of type {} is not supported yet", types_.name(e.type)));
}

// D's variables

dif::Variable CodeGenerator::variable(const Identifier& identifier) const {
  dif::Variable result;
  result.id = identifier.id;
  result.scope = identifier.scope == Scope::Thread   ? dif::VariableScope::Thread
                 : identifier.scope == Scope::Clause ? dif::VariableScope::Clause
                                                     : dif::VariableScope::Global;
  result.kind =
      identifier.is_associative ? dif::VariableKind::Associative : dif::VariableKind::Scalar;
  result.type = types_.value_type(identifier.type).value_or(dif::ValueType{});
  result.name = identifier.name;
  return result;
}

void CodeGenerator::emit_variable(Opcode op, const Identifier& identifier, unsigned rd,
                                  const Location& at) {
  const dif::Variable made = variable(identifier);
  const bool in_memory = made.type.kind == dif::ValueKind::Bytes;
  out_.variable(op, made,
                in_memory ? resolver_.namer().name_size(identifier.type, at) : std::nullopt, rd);
}

/// The clause-local variable that stands in for a register. All objects share them: none holds a
/// value from one object to the next.
Checked<dif::Variable> CodeGenerator::spill_slot(unsigned number) {
  return variable(*TRY(resolver_.find_hidden_local(fmt::format("%spill_{}", number))));
}

/// `keys` are the values of an element's keys where they have been computed already; they stay.
Checked<unsigned> CodeGenerator::load_identifier(const Expr& e, const Registers* keys) {
  const Identifier& identifier = *e.identifier;
  const bool thread = identifier.scope == Scope::Thread;
  if (identifier.is_associative) TRY(push_keys(e, keys));
  const unsigned reg = TRY(out_.allocate(e.at));
  const Opcode op = identifier.is_associative           ? (thread ? Opcode::Ldtaa : Opcode::Ldgaa)
                    : thread                            ? Opcode::Ldts
                    : identifier.scope == Scope::Clause ? Opcode::Ldls
                                                        : Opcode::Ldgs;
  emit_variable(op, identifier, reg, e.at);
  return reg;
}

Checked<void> CodeGenerator::store_symbol(const Expr& e, unsigned value, const Registers* keys) {
  const Identifier& identifier = *e.identifier;
  const bool thread = identifier.scope == Scope::Thread;
  if (identifier.is_associative) TRY(push_keys(e, keys));
  const Opcode op = identifier.is_associative           ? (thread ? Opcode::Sttaa : Opcode::Stgaa)
                    : thread                            ? Opcode::Stts
                    : identifier.scope == Scope::Clause ? Opcode::Stls
                                                        : Opcode::Stgs;
  emit_variable(op, identifier, value, e.at);
  return {};
}

// Assignment

Checked<unsigned> CodeGenerator::assign(const Expr& e) {
  const Expr& target = *e.a;
  if (e.compound) return read_modify_write(target, e, false);
  const bool frees = types_.by_reference(target.type) && is_zero(*e.b);
  const bool cut = target.identifier != nullptr && !target.identifier->is_hidden_variable() &&
                   types_.store_cuts(e.b->type, target.type);
  const unsigned value = TRY(frees                              ? out_.constant(0, e.at)
                             : cut                              ? fitted(*e.b, target.type)
                             : types_.is_string(target.type)    ? readable(*e.b, As::Text)
                             : types_.by_reference(target.type) ? readable(*e.b, As::Value)
                                                                : evaluate(*e.b));
  if (target.identifier != nullptr) {
    TRY(store_symbol(target, value));
    return value;
  }
  const unsigned at = TRY(address(target, Use::Write));
  TRY(memory_.store(target, at, value));
  out_.release(at);
  return value;
}

Checked<unsigned> CodeGenerator::step(const Expr& e, bool want_old) {
  return read_modify_write(*e.a, e, want_old);
}

/// `target op= e.b`, or ++ and -- when `e` is unary. The result is the new value, or the old.
Checked<unsigned> CodeGenerator::read_modify_write(const Expr& target, const Expr& e,
                                                   bool want_old) {
  const bool in_memory = target.identifier == nullptr;
  Registers waiting;
  const Registers* keys = TRY(keep_impure_keys(target, waiting));
  unsigned at = 0;
  unsigned value = 0;
  if (in_memory) {
    at = TRY(address(target, Use::Write));
    value = TRY(out_.allocate(e.at));
    out_.emit(Opcode::Mov, at, 0, value);
    value = TRY(load_at(target, value));
  } else {
    value = TRY(load_identifier(target, keys));
  }
  unsigned old = 0;
  if (want_old) {
    old = TRY(out_.allocate(e.at));
    out_.emit(Opcode::Mov, value, 0, old);
  }
  Expr one;
  one.at = e.at;
  one.constant = 1;
  one.type = types_.int32;
  const bool steps = e.kind == ExprKind::Unary;
  const Op op = !steps ? e.op : e.op == Op::PreInc || e.op == Op::PostInc ? Op::Add : Op::Sub;
  const Expr& right = steps ? one : *e.b;
  if (types_.is_pointer(target.type)) {
    value = TRY(pointer_step(op, value, target, right));
  } else {
    value = TRY(combine(op, value, target.type, right));
    const bool shifts = op == Op::Shl || op == Op::Shr;
    const TypeId type = shifts ? target.type : types_.arithmetic(target.type, right.type);
    if (!in_memory && types_.store_cuts(type, target.type)) TRY(extend(value, target.type, e.at));
  }
  TRY(in_memory ? memory_.store(target, at, value) : store_symbol(target, value, keys));
  for (const unsigned reg : waiting) out_.release(reg);
  if (in_memory) out_.release(at);
  if (!want_old) return value;
  out_.release(value);
  return old;
}

// Tuples and calls

Checked<unsigned> CodeGenerator::slot_value(const Slot& slot) {
  if (slot.as_string) return readable(*slot.value, As::Text);
  if (!types_.is_scalar(slot.type)) return readable(*slot.value, As::Value);
  return fitted(*slot.value, slot.type);
}

Checked<void> CodeGenerator::push(const Slot& slot, unsigned reg) {
  if (slot.as_string) {
    out_.push(Opcode::Pushtr, dif::TupleType::String, 0, reg);
  } else if (types_.is_scalar(slot.type)) {
    out_.push(Opcode::Pushtv, dif::TupleType::Value, 0, reg);
  } else {
    const unsigned size = TRY(out_.constant(
        types_.measure(slot.type), resolver_.namer().name_size(*slot.value), slot.value->at));
    out_.push(Opcode::Pushtr, dif::TupleType::Value, size, reg);
    out_.release(size);
  }
  return {};
}

/// Empties the tuple stack and pushes all. Values that need the stack themselves come first, and
/// wait in registers with those before them.
Checked<void> CodeGenerator::push_all(const std::vector<Slot>& slots) {
  TRY(fits_tuple(slots));
  std::size_t early = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (uses_tuple(*slots[i].value)) early = i + 1;
  }
  std::vector<unsigned> waiting;
  for (std::size_t i = 0; i < early; ++i) waiting.push_back(TRY(slot_value(slots[i])));
  out_.emit(Opcode::Flushts);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const unsigned reg = i < early ? waiting[i] : TRY(slot_value(slots[i]));
    TRY(push(slots[i], reg));
    out_.release(reg);
  }
  return {};
}

Checked<void> CodeGenerator::fits_tuple(const std::vector<Slot>& slots) const {
  if (slots.size() <= resolver_.options().tuple_registers) return {};
  return complain("D_NOREG", slots[0].value->at, "Insufficient tuple registers to generate code");
}

std::vector<CodeGenerator::Slot> CodeGenerator::key_slots(const Expr& e) const {
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < e.list.size(); ++i) {
    const TypeId type = e.identifier->keys[i];
    slots.push_back({e.list[i], type, types_.is_string(type)});
  }
  return slots;
}

Checked<void> CodeGenerator::push_keys(const Expr& e, const Registers* keys) {
  const std::vector<Slot> slots = key_slots(e);
  if (keys == nullptr) return push_all(slots);
  TRY(fits_tuple(slots));
  out_.emit(Opcode::Flushts);
  for (std::size_t i = 0; i < slots.size(); ++i) TRY(push(slots[i], (*keys)[i]));
  return {};
}

Checked<unsigned> CodeGenerator::call(const Expr& e) {
  const dif::SubroutineInfo& info = *e.identifier->subroutine;
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < e.list.size(); ++i) {
    const bool null_string = is_zero(*e.list[i]);
    const bool as_string = info.arguments[i] == dif::ArgumentKind::String && !null_string;
    const bool pointer = info.arguments[i] != dif::ArgumentKind::Integer;
    slots.push_back({e.list[i], pointer ? types_.uint64 : types_.int64, as_string});
  }
  TRY(push_all(slots));
  const unsigned reg = TRY(out_.allocate(e.at));
  out_.indexed(Opcode::Call, static_cast<unsigned>(info.id), reg);
  return reg;
}

/// With numbers; the first one's register gets what it returns, the others' are released.
unsigned CodeGenerator::call(dif::Subroutine subroutine, std::span<const unsigned> values) {
  out_.emit(Opcode::Flushts);
  for (const unsigned value : values) out_.push(Opcode::Pushtv, dif::TupleType::Value, 0, value);
  for (const unsigned value : values.subspan(1)) out_.release(value);
  out_.indexed(Opcode::Call, static_cast<unsigned>(subroutine), values.front());
  return values.front();
}

}  // namespace ringside::d
