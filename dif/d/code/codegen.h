// Compiles resolved expressions to DIF. One CodeGenerator makes one object.
//
// Values: a register holds the 64 bits of an integer, or the address of a by-reference value.
// Operators work on all 64 bits, and variables keep them. Loads from memory extend from the type's
// size; a record, a key and some casts (Types::cast_cuts()) cut a value to their own size.
#pragma once

#include <span>

#include "dif/d/code/emitter.h"
#include "dif/d/code/memory_access.h"
#include "dif/d/code/source_parts.h"
#include "dif/d/resolve/resolve.h"

namespace ringside::d {

class CodeGenerator {
 public:
  explicit CodeGenerator(Resolver& resolver)
      : resolver_(resolver),
        types_(resolver.types()),
        out_(resolver.options().integer_registers, [this](unsigned n) { return spill_slot(n); }),
        memory_(types_, resolver.namer(), out_) {}
  CodeGenerator(const CodeGenerator&) = delete;
  CodeGenerator& operator=(const CodeGenerator&) = delete;

  /// The value of `e`; a record keeps as much of it as its type has.
  static Checked<dif::Difo> generate_value(Resolver& resolver, const Expr& e);
  static Checked<dif::Difo> generate_string(Resolver& resolver, const Expr& e);
  /// The value of `e`, cut to as many bits as `as` has.
  static Checked<dif::Difo> generate_integer(Resolver& resolver, const Expr& e, TypeId as);
  /// An object without code, for values that the engine finds itself.
  static Checked<dif::Difo> generate_nothing(Resolver& resolver, const dif::ValueType& type,
                                             const Location& at);
  /// Evaluates `e` for what it does.
  static Checked<dif::Difo> generate_effect(Resolver& resolver, const Expr& e);

 private:
  /// While it lives, what is emitted is of the expression, where no other one is begun inside.
  class Part {
   public:
    Part(CodeGenerator& generator, const Expr& e)
        : out_(generator.out_), before_(out_.begin_part(generator.parts_.add(e))) {}
    ~Part() { out_.begin_part(before_); }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    Emitter& out_;
    const unsigned before_;
  };
  Checked<dif::Difo> finish(unsigned reg, const dif::ValueType& type, const Expr& e,
                            std::optional<KernelNamer::Index> size = std::nullopt);

  // codegen.cc: integers and control flow
  Checked<unsigned> evaluate(const Expr& e);
  Checked<unsigned> value_of(const Expr& e);
  Checked<unsigned> fitted(const Expr& e, TypeId to);
  enum class As : std::uint8_t { Text, Value };
  bool is_copied_in(const Expr& e, As as) const;
  Checked<unsigned> readable(const Expr& e, As as);
  bool fits(const Expr& e) const;
  Checked<unsigned> truth(const Expr& e);
  Checked<void> jump(const Expr& e, bool when, Label to);
  Checked<void> compare(const Expr& e, bool when, Label to);
  Checked<unsigned> unary(const Expr& e);
  Checked<unsigned> binary(const Expr& e);
  Checked<unsigned> conditional(const Expr& e);
  Checked<unsigned> cast(const Expr& e);
  Checked<unsigned> combine(Op op, unsigned left, TypeId type, const Expr& right);
  Checked<unsigned> pointer_step(Op op, unsigned left, const Expr& pointer, const Expr& right);
  static bool is_zero(const Expr& e) { return e.constant == 0U && !e.late; }
  Checked<void> extend(unsigned reg, TypeId type, const Location& at);
  using KernelName = std::optional<KernelNamer::Index>;
  /// `size` bytes, or what the kernel says that the name is worth.
  Checked<void> scale(unsigned reg, std::uint64_t size, KernelName name, const Location& at);
  /// The size of e's value, where the kernel says it.
  KernelName size_name(const dif::ValueType& type, const Expr& e);

  // codegen_lvalues.cc: variables, memory, calls
  enum class Use : std::uint8_t { Read, Write };
  Checked<unsigned> address(const Expr& e, Use use = Use::Read);
  Checked<unsigned> made(const Expr& e);
  Checked<unsigned> present(const Expr& e);
  Checked<unsigned> size_where_absent(const Expr& e, unsigned address, Label there);
  Checked<unsigned> member_address(const Expr& e, Use use);
  Checked<unsigned> pointed(const Expr& pointer, Use use);
  Checked<unsigned> load(const Expr& e);
  Checked<unsigned> load_at(const Expr& e, unsigned address);
  using Registers = std::vector<unsigned>;
  Checked<const Registers*> keep_impure_keys(const Expr& e, Registers& waiting);
  Checked<unsigned> load_identifier(const Expr& e, const Registers* keys = nullptr);
  Checked<void> store_symbol(const Expr& e, unsigned value, const Registers* keys = nullptr);
  Checked<unsigned> assign(const Expr& e);
  Checked<unsigned> step(const Expr& e, bool want_old);
  Checked<unsigned> read_modify_write(const Expr& target, const Expr& e, bool want_old);
  Checked<unsigned> call(const Expr& e);
  unsigned call(dif::Subroutine subroutine, std::span<const unsigned> values);
  struct Slot {  // one value for the tuple stack
    const Expr* value;
    TypeId type;  // to convert to
    bool as_string;
  };
  Checked<void> push_all(const std::vector<Slot>& slots);
  bool uses_tuple(const Expr& e) const;
  Checked<unsigned> slot_value(const Slot& slot);
  Checked<void> push(const Slot& slot, unsigned reg);
  Checked<void> fits_tuple(const std::vector<Slot>& slots) const;
  std::vector<Slot> key_slots(const Expr& e) const;
  Checked<void> push_keys(const Expr& e, const Registers* keys);
  dif::Variable variable(const Identifier& identifier) const;
  void emit_variable(Opcode op, const Identifier& identifier, unsigned rd, const Location& at);
  Checked<dif::Variable> spill_slot(unsigned number);

  Resolver& resolver_;
  Types& types_;
  Emitter out_;
  MemoryAccess memory_;
  SourceParts parts_;
};

}  // namespace ringside::d
