// Resolved expressions to DIF. One CodeGenerator makes one object.
//
// Values: a register holds an integer sign- or zero-extended from its type's size to 64 bits, or
// the address of a by-reference value. Arithmetic on 32-bit types may leave more bits set for a
// while; Value::clean says which.
// Fire context: no.
#pragma once

#include "dif/d/emitter.h"
#include "dif/d/resolve.h"

namespace ringside::d {

class CodeGenerator {
 public:
  explicit CodeGenerator(Resolver& resolver)
      : resolver_(resolver),
        types_(resolver.types()),
        out_(resolver.options().integer_registers, [this](unsigned n) { return spill_slot(n); }) {}
  CodeGenerator(const CodeGenerator&) = delete;
  CodeGenerator& operator=(const CodeGenerator&) = delete;

  /// The value of `e` as its own type; string-like arrays as strings when `strings` is set.
  static Checked<dif::Difo> value(Resolver& resolver, const Expr& e);
  static Checked<dif::Difo> string(Resolver& resolver, const Expr& e);
  static Checked<dif::Difo> integer(Resolver& resolver, const Expr& e, TypeId as);
  /// What lies at the lvalue `e`, whatever its type is.
  static Checked<dif::Difo> bytes(Resolver& resolver, const Expr& e);
  /// An object without code, for values that the engine finds itself.
  static Checked<dif::Difo> nothing(Resolver& resolver, const dif::ValueType& type,
                                    const Location& at);
  /// Evaluates `e` for what it does.
  static Checked<dif::Difo> effect(Resolver& resolver, const Expr& e);

 private:
  struct Value {
    unsigned reg = 0;
    bool clean = true;
  };

  // codegen.cc: integers and control flow
  Checked<Value> raw(const Expr& e);
  Checked<unsigned> clean(const Expr& e);
  Checked<unsigned> converted(const Expr& e, TypeId to);
  Checked<unsigned> truth(const Expr& e);
  Checked<void> jump(const Expr& e, bool when, Label to);
  Checked<void> compare(const Expr& e, bool when, Label to);
  Checked<Value> unary(const Expr& e);
  Checked<Value> binary(const Expr& e);
  Checked<Value> conditional(const Expr& e);
  Checked<Value> cast(const Expr& e);
  Checked<Value> combine(Op op, Value left, TypeId left_type, const Expr& right);
  Checked<Value> pointer_step(Op op, unsigned left, TypeId pointer, const Expr& right);
  Checked<void> extend(unsigned reg, TypeId type, const Location& at);
  Checked<void> scale(unsigned reg, std::uint64_t size, const Location& at);
  bool representation_differs(TypeId from, TypeId to) const;
  Checked<unsigned> constant(std::uint64_t value, const Location& at);

  // codegen_memory.cc: variables, guest memory, calls
  enum class Use : std::uint8_t { Read, Write };
  Checked<unsigned> address(const Expr& e, Use use = Use::Read);
  Checked<unsigned> made(const Expr& e);
  Checked<void> add_offset(unsigned reg, std::uint64_t offset, const Location& at);
  Checked<unsigned> string_length(unsigned value, const Location& at);
  Checked<unsigned> load(const Expr& e);
  Checked<unsigned> load_at(const Expr& e, unsigned address);
  Checked<void> store_at(const Expr& e, unsigned address, unsigned value);
  Checked<void> store_bits(const Expr& e, unsigned address, unsigned value);
  Checked<unsigned> load_spread(const Expr& e, unsigned address);
  Checked<void> store_spread(const Expr& e, unsigned address, unsigned value);
  using Registers = std::vector<unsigned>;
  Checked<const Registers*> keep_impure_keys(const Expr& e, Registers& waiting);
  Checked<unsigned> load_symbol(const Expr& e, const Registers* keys = nullptr);
  Checked<void> store_symbol(const Expr& e, unsigned value, const Registers* keys = nullptr);
  Checked<Value> assign(const Expr& e);
  Checked<Value> step(const Expr& e, bool want_old);
  Checked<unsigned> read_modify_write(const Expr& target, const Expr& e, bool want_old);
  Checked<unsigned> call(const Expr& e);
  struct Slot {  // one value for the tuple stack
    const Expr* value;
    TypeId type;  // to convert to
    bool as_string;
  };
  Checked<void> push_all(const std::vector<Slot>& slots);
  Checked<unsigned> slot_value(const Slot& slot);
  Checked<void> push(const Slot& slot, unsigned reg);
  Checked<void> fits_tuple(const std::vector<Slot>& slots) const;
  std::vector<Slot> key_slots(const Expr& e) const;
  Checked<void> push_keys(const Expr& e, const Registers* keys);
  dif::Variable variable(const Symbol& symbol) const;
  Checked<dif::Variable> spill_slot(unsigned number);

  Resolver& resolver_;
  Types& types_;
  Emitter out_;
};

/// The aligned unit of memory that holds a bit-field.
struct BitUnit {
  std::uint64_t byte = 0;  // offset from the start of the struct
  unsigned size = 8;
  unsigned shift = 0;  // of the field's lowest bit
};
std::optional<BitUnit> bit_unit(const FoundMember& member);

}  // namespace ringside::d
