// Integers and control flow. Order in this file: entry points, conversions, conditions,
// operators, and the switch over expressions.
#include "dif/d/code/codegen.h"

#include <fmt/format.h>

#include <array>
#include <bit>

namespace ringside::d {

Checked<dif::Difo> CodeGenerator::generate_value(Resolver& resolver, const Expr& e) {
  CodeGenerator generator(resolver);
  const Part part(generator, e);
  const dif::ValueType type = TRY(resolver.value_type(e));
  const unsigned reg = TRY(generator.readable(e, As::Value));
  if (resolver.types().is_float(e.type) && e.identifier != nullptr) {
    // A variable that nobody assigned to lies nowhere; as a number it is 0.
    const Label there = generator.out_.label();
    generator.out_.emit(Opcode::Tst, reg);
    generator.out_.branch(Opcode::Bne, there);
    generator.out_.set_integer(type.size, reg);
    generator.out_.emit(Opcode::Allocs, reg, 0, reg);
    generator.out_.place(there);
  }
  return generator.finish(reg, type, e, generator.size_name(type, e));
}

Checked<dif::Difo> CodeGenerator::generate_string(Resolver& resolver, const Expr& e) {
  CodeGenerator generator(resolver);
  const Part part(generator, e);
  const unsigned reg = TRY(generator.readable(e, As::Text));
  return generator.finish(reg, {dif::ValueKind::String, false, 0}, e);
}

Checked<dif::Difo> CodeGenerator::generate_integer(Resolver& resolver, const Expr& e, TypeId as) {
  CodeGenerator generator(resolver);
  const Part part(generator, e);
  const unsigned reg = TRY(generator.fitted(e, as));
  const auto type = generator.types_.value_type(as);
  return generator.finish(reg, type.value_or(dif::ValueType{}), e);
}

Checked<dif::Difo> CodeGenerator::generate_nothing(Resolver& resolver, const dif::ValueType& type,
                                                   const Location& at) {
  return CodeGenerator(resolver).out_.finish(0, type, at);
}

Checked<dif::Difo> CodeGenerator::generate_effect(Resolver& resolver, const Expr& e) {
  CodeGenerator generator(resolver);
  const Part part(generator, e);
  const bool steps = e.kind == ExprKind::Unary && (e.op == Op::PostInc || e.op == Op::PostDec);
  if (steps) {
    TRY(generator.step(e, false));  // nobody wants the old value
  } else {
    TRY(generator.evaluate(e));
  }
  return generator.finish(0, {dif::ValueKind::Void, false, 0}, e);
}

Checked<dif::Difo> CodeGenerator::finish(unsigned reg, const dif::ValueType& type, const Expr& e,
                                         std::optional<KernelNamer::Index> size) {
  dif::Difo difo = TRY(out_.finish(reg, type, e.at, size));
  parts_.describe(difo.source);
  return difo;
}

CodeGenerator::KernelName CodeGenerator::size_name(const dif::ValueType& type, const Expr& e) {
  if (type.kind != dif::ValueKind::Bytes) return std::nullopt;
  return resolver_.namer().name_size(e);
}

/// Makes the low bits of `reg`, as many as `type` has, the whole truth.
Checked<void> CodeGenerator::extend(unsigned reg, TypeId type, const Location& at) {
  const std::uint64_t size = types_.size(type);
  if (types_.by_reference(type) || size >= 8 || size == 0) return {};
  const unsigned bits = TRY(out_.constant(64 - size * 8, at));
  out_.emit(Opcode::Sll, reg, bits, reg);
  out_.emit(types_.is_signed(type) ? Opcode::Sra : Opcode::Srl, reg, bits, reg);
  out_.release(bits);
  return {};
}

/// Whether `e` is always a value of its own type: variables and arithmetic may have more bits.
bool CodeGenerator::fits(const Expr& e) const {
  if (e.identifier != nullptr && e.identifier->kind == Identifier::Kind::Variable) return false;
  switch (e.kind) {
    case ExprKind::Name:
    case ExprKind::KernelSymbol:
    case ExprKind::Index:
    case ExprKind::Member:
    case ExprKind::Arrow:
    case ExprKind::Call: return true;
    case ExprKind::Unary: return e.op == Op::Deref || e.op == Op::Not;
    case ExprKind::Cast: return types_.cast_cuts(e.a->type, e.type) || fits(*e.a);
    default: return false;
  }
}

/// The value of `e`, cut to as many bits as `to` has.
Checked<unsigned> CodeGenerator::fitted(const Expr& e, TypeId to) {
  if (e.constant && !e.late && types_.is_scalar(to)) {
    return out_.constant(types_.wrap(to, *e.constant), e.at);
  }
  const unsigned reg = TRY(evaluate(e));
  if (!fits(e) || types_.cast_cuts(e.type, to)) TRY(extend(reg, to, e.at));
  return reg;
}

/// Whether it lies in a process's memory, which D's operations on text and objects do not read.
bool CodeGenerator::is_copied_in(const Expr& e, As as) const {
  if (as == As::Text) return types_.is_user_pointer(types_.decay(e.type));
  return types_.is_userland(e.type) && types_.by_reference(e.type);
}

/// The value of `e` where D can read it: that of a process is copied.
Checked<unsigned> CodeGenerator::readable(const Expr& e, As as) {
  const unsigned reg = TRY(evaluate(e));
  if (!is_copied_in(e, as)) return reg;
  if (as == As::Text && !types_.is_array(e.type)) {
    return call(dif::Subroutine::Copyinstr, std::array{reg});
  }
  const unsigned size = TRY(out_.constant(types_.measure(e.type), e.at));
  const auto copy = as == As::Text ? dif::Subroutine::Copyinstr : dif::Subroutine::Copyin;
  return call(copy, std::array{reg, size});
}

// Conditions

Checked<void> CodeGenerator::compare(const Expr& e, bool when, Label to) {
  const Part part(*this, e);
  const TypeId a = types_.decay(e.a->type), b = types_.decay(e.b->type);
  // NULL is no string: it is compared by its address.
  const bool null = is_zero(*e.a) || is_zero(*e.b);
  const bool strings = !null && (types_.is_string(a) || types_.is_string(b));
  const bool integers = types_.is_integer(a) && types_.is_integer(b);
  const TypeId work = integers ? types_.arithmetic(a, b) : types_.uint64;
  const bool is_signed = strings || types_.is_signed(work);
  const unsigned left = TRY(strings ? readable(*e.a, As::Text) : evaluate(*e.a));
  const unsigned right = TRY(strings ? readable(*e.b, As::Text) : evaluate(*e.b));
  out_.emit(strings ? Opcode::Scmp : Opcode::Cmp, left, right);
  out_.release(left);
  out_.release(right);

  struct Row {
    Op op, opposite;
    Opcode if_signed, if_unsigned;
  };
  constexpr Row kRows[] = {
      {Op::Eq, Op::Ne, Opcode::Be, Opcode::Be},  {Op::Ne, Op::Eq, Opcode::Bne, Opcode::Bne},
      {Op::Lt, Op::Ge, Opcode::Bl, Opcode::Blu}, {Op::Ge, Op::Lt, Opcode::Bge, Opcode::Bgeu},
      {Op::Gt, Op::Le, Opcode::Bg, Opcode::Bgu}, {Op::Le, Op::Gt, Opcode::Ble, Opcode::Bleu},
  };
  for (const Row& row : kRows) {
    if ((when ? row.op : row.opposite) != e.op) continue;
    out_.branch(is_signed ? row.if_signed : row.if_unsigned, to);
  }
  return {};
}

/// Goes to `to` when the truth of `e` is `when`; goes on otherwise.
Checked<void> CodeGenerator::jump(const Expr& e, bool when, Label to) {
  if (e.constant && !e.late) {
    if ((*e.constant != 0) == when) out_.branch(Opcode::Ba, to);
    return {};
  }
  if (e.kind == ExprKind::Unary && e.op == Op::Not) return jump(*e.a, !when, to);
  if (e.kind == ExprKind::Binary && (e.op == Op::And || e.op == Op::Or)) {
    const bool decides = e.op == Op::Or;  // the truth of a that settles it
    if (decides == when) {
      TRY(jump(*e.a, when, to));
      return jump(*e.b, when, to);
    }
    const Label settled = out_.label();
    TRY(jump(*e.a, decides, settled));
    TRY(jump(*e.b, when, to));
    out_.place(settled);
    return {};
  }
  if (e.kind == ExprKind::Binary && e.op >= Op::Lt && e.op <= Op::Ne) return compare(e, when, to);
  const unsigned reg = TRY(evaluate(e));
  out_.emit(Opcode::Tst, reg);
  out_.release(reg);
  out_.branch(when ? Opcode::Bne : Opcode::Be, to);
  return {};
}

/// 1 or 0.
Checked<unsigned> CodeGenerator::truth(const Expr& e) {
  const Label no = out_.label(), end = out_.label();
  TRY(jump(e, false, no));
  const unsigned reg = TRY(out_.allocate(e.at));
  out_.set_integer(1, reg);
  out_.branch(Opcode::Ba, end);
  out_.place(no);
  out_.set_integer(0, reg);
  out_.place(end);
  return reg;
}

Checked<unsigned> CodeGenerator::conditional(const Expr& e) {
  const Label otherwise = out_.label(), end = out_.label();
  const auto side = [&](const Expr& value) {
    return types_.is_string(e.type) && !is_zero(value) ? readable(value, As::Text)
                                                       : evaluate(value);
  };
  TRY(jump(*e.a, false, otherwise));
  const unsigned result = TRY(side(*e.b));
  out_.branch(Opcode::Ba, end);
  out_.place(otherwise);
  out_.release(result);
  const unsigned second = TRY(side(*e.c));
  if (second != result) {  // the first one's register is free again here
    out_.emit(Opcode::Mov, second, 0, result);
    out_.release(second);
  }
  out_.take(result);
  out_.place(end);
  return result;
}

// Operators

Checked<void> CodeGenerator::scale(unsigned reg, std::uint64_t size, KernelName name,
                                   const Location& at) {
  if (name) {
    const unsigned factor = TRY(out_.constant(size, name, at));
    out_.emit(Opcode::Mul, reg, factor, reg);
    out_.release(factor);
    return {};
  }
  if (size <= 1) return {};
  const bool power = std::has_single_bit(size);
  const unsigned factor =
      TRY(out_.constant(power ? static_cast<std::uint64_t>(std::countr_zero(size)) : size, at));
  out_.emit(power ? Opcode::Sll : Opcode::Mul, reg, factor, reg);
  out_.release(factor);
  return {};
}

/// pointer + integer, pointer - integer, pointer - pointer, where `left` has the first one's value.
Checked<unsigned> CodeGenerator::pointer_step(Op op, unsigned left, const Expr& pointer,
                                              const Expr& right) {
  const std::uint64_t size = types_.measure(types_.referent(types_.decay(pointer.type)));
  const KernelName name = resolver_.namer().name_element_size(pointer);
  const bool difference = !types_.is_integer(right.type);
  const unsigned other = TRY(evaluate(right));
  if (!difference) TRY(scale(other, size, name, right.at));
  out_.emit(op == Op::Sub ? Opcode::Sub : Opcode::Add, left, other, left);
  out_.release(other);
  if (difference && (size > 1 || name)) {
    const unsigned divisor = TRY(out_.constant(size, name, right.at));
    out_.emit(Opcode::Sdiv, left, divisor, left);
    out_.release(divisor);
  }
  return left;
}

/// left op right for integers, where the result has type `type`. Overwrites `left`.
Checked<unsigned> CodeGenerator::combine(Op op, unsigned left, TypeId type, const Expr& right) {
  const bool is_signed = types_.is_signed(type);
  const unsigned other = TRY(evaluate(right));
  const auto opcode = [&] {
    switch (op) {
      case Op::Mul: return Opcode::Mul;
      case Op::Div: return is_signed ? Opcode::Sdiv : Opcode::Udiv;
      case Op::Mod: return is_signed ? Opcode::Srem : Opcode::Urem;
      case Op::Add: return Opcode::Add;
      case Op::Sub: return Opcode::Sub;
      case Op::Shl: return Opcode::Sll;
      case Op::Shr: return is_signed ? Opcode::Sra : Opcode::Srl;
      case Op::BitAnd: return Opcode::And;
      case Op::BitXor: return Opcode::Xor;
      default: return Opcode::Or;
    }
  }();
  out_.emit(opcode, left, other, left);
  out_.release(other);
  return left;
}

Checked<unsigned> CodeGenerator::binary(const Expr& e) {
  if (e.op == Op::Xor) {
    const unsigned a = TRY(truth(*e.a));
    const unsigned b = TRY(truth(*e.b));
    out_.emit(Opcode::Xor, a, b, a);
    out_.release(b);
    return a;
  }
  if (e.op == Op::And || e.op == Op::Or || (e.op >= Op::Lt && e.op <= Op::Ne)) {
    return truth(e);
  }
  const TypeId a = types_.decay(e.a->type), b = types_.decay(e.b->type);
  if (types_.is_pointer(a)) return pointer_step(e.op, TRY(evaluate(*e.a)), *e.a, *e.b);
  if (types_.is_pointer(b)) {  // integer + pointer
    const unsigned offset = TRY(evaluate(*e.a));
    TRY(scale(offset, types_.measure(types_.referent(b)), resolver_.namer().name_element_size(*e.b),
              e.at));
    const unsigned base = TRY(evaluate(*e.b));
    out_.emit(Opcode::Add, offset, base, offset);
    out_.release(base);
    return offset;
  }
  return combine(e.op, TRY(evaluate(*e.a)), e.type, *e.b);
}

Checked<unsigned> CodeGenerator::unary(const Expr& e) {
  switch (e.op) {
    case Op::Not: return truth(e);
    case Op::Deref: return load(e);
    case Op::AddressOf: return address(*e.a, Use::Write);
    case Op::PreInc:
    case Op::PreDec: return step(e, false);
    case Op::PostInc:
    case Op::PostDec: return step(e, true);
    default: break;
  }
  const unsigned reg = TRY(evaluate(*e.a));
  if (e.op == Op::Plus) return reg;
  if (e.op == Op::Neg) {
    out_.emit(Opcode::Sub, 0, reg, reg);
  } else {
    out_.emit(Opcode::Not, reg, 0, reg);
  }
  return reg;
}

Checked<unsigned> CodeGenerator::cast(const Expr& e) {
  if (types_.is_string(e.a->type) && types_.is_integer(e.type)) return truth(*e.a);
  if (types_.is_string(e.type)) return readable(*e.a, As::Text);
  const unsigned reg = TRY(evaluate(*e.a));
  const TypeId from = types_.decay(e.a->type);
  if (types_.is_scalar(e.type) && types_.cast_cuts(from, e.type)) TRY(extend(reg, e.type, e.at));
  return reg;
}

Checked<unsigned> CodeGenerator::evaluate(const Expr& e) {
  const Part part(*this, e);
  return value_of(e);
}

Checked<unsigned> CodeGenerator::value_of(const Expr& e) {
  if (e.constant && !e.late) return out_.constant(*e.constant, e.at);
  switch (e.kind) {
    case ExprKind::String: {
      const unsigned reg = TRY(out_.allocate(e.at));
      out_.set_string(*e.text, reg);
      return reg;
    }
    case ExprKind::Unary: return unary(e);
    case ExprKind::Binary: return binary(e);
    case ExprKind::Assign: return assign(e);
    case ExprKind::Conditional: return conditional(e);
    case ExprKind::Comma: {
      out_.release(TRY(evaluate(*e.a)));
      return evaluate(*e.b);
    }
    case ExprKind::Call:
      if (e.identifier != nullptr) return call(e);
      return complain("D_CG_EXPR", e.at,
                      fmt::format("{}( ) may not be called from a D expression (D program context "
                                  "required)",
                                  *e.text));
    case ExprKind::Aggregation:
      return complain("D_SYNTAX", e.at, "an aggregation may not be used in an expression");
    case ExprKind::Cast: return cast(e);
    case ExprKind::Stringof: return readable(*e.a, As::Text);
    case ExprKind::SizeofType:
    case ExprKind::SizeofExpr:
    case ExprKind::Offsetof:
    case ExprKind::Integer:
      return out_.constant(e.constant.value_or(0), resolver_.namer().name_late_constant(e), e.at);
    case ExprKind::Name:
      if (e.late) {
        return out_.constant(e.constant.value_or(0), resolver_.namer().name_late_constant(e), e.at);
      }
      return load(e);
    default: return load(e);
  }
}

}  // namespace ringside::d
