#include "dif/d/code/emitter.h"

#include <algorithm>

namespace ringside::d {
namespace {

constexpr std::size_t kMaxTable = 0xffff;          // setx and sets have 16-bit operands
constexpr std::size_t kMaxText = (256 << 10) / 4;  // the verifier's limit for one object

}  // namespace

Checked<unsigned> Emitter::allocate(const Location& at) {
  const auto free = std::find(used_.begin(), used_.end(), false);
  const auto reg = static_cast<unsigned>(free - used_.begin());
  if (reg >= registers_ && registers_ < kLeastToSpill) {
    return complain("D_NOREG", at, "Insufficient registers to generate code");
  }
  if (free == used_.end()) used_.push_back(true);
  used_[reg] = true;
  return reg;
}

Checked<unsigned> Emitter::constant(std::uint64_t value, const Location& at) {
  const unsigned reg = TRY(allocate(at));
  set_integer(value, reg);
  return reg;
}

Checked<unsigned> Emitter::constant(std::uint64_t value, std::optional<std::uint32_t> name,
                                    const Location& at) {
  if (!name) return constant(value, at);
  const unsigned reg = TRY(allocate(at));
  set_named(*name, value, reg);
  return reg;
}

void Emitter::emit(Opcode op, unsigned r1, unsigned r2, unsigned rd) {
  text_.push_back({op, r1, r2, rd, part_});
}

void Emitter::indexed(Opcode op, unsigned index, unsigned rd) {
  text_.push_back({.op = op, .r1 = index, .rd = rd, .part = part_});
}

void Emitter::push(Opcode op, dif::TupleType type, unsigned size, unsigned value) {
  emit(op, static_cast<unsigned>(type), size, value);
}

void Emitter::variable(Opcode op, const dif::Variable& variable, std::optional<std::uint32_t> size,
                       unsigned rd) {
  const bool known = std::ranges::any_of(difo_.variables, [&](const dif::Variable& v) {
    return v.scope == variable.scope && v.id == variable.id;
  });
  if (!known && variable.id >= dif::kFirstUserVariable) {
    const auto index = static_cast<std::uint32_t>(difo_.variables.size());
    if (size) difo_.relocations.push_back({dif::Relocation::Place::Variable, index, *size});
    difo_.variables.push_back(variable);
  }
  indexed(op, variable.id, rd);
}

void Emitter::set_integer(std::uint64_t value, unsigned rd) {
  if (value == 0) return emit(Opcode::Mov, 0, 0, rd);
  const auto [at, fresh] = integers_.emplace(value, difo_.integers.size());
  if (fresh) difo_.integers.push_back(value);
  indexed(Opcode::Setx, at->second, rd);
}

void Emitter::set_named(std::uint32_t name, std::uint64_t value, unsigned rd) {
  const auto [at, fresh] = named_.emplace(name, difo_.integers.size());
  if (fresh) {
    difo_.relocations.push_back(
        {dif::Relocation::Place::Integer, static_cast<std::uint32_t>(difo_.integers.size()), name});
    difo_.integers.push_back(value);
  }
  indexed(Opcode::Setx, at->second, rd);
}

void Emitter::set_string(std::string_view text, unsigned rd) {
  if (difo_.strings.empty()) difo_.strings.push_back('\0');
  const auto [at, fresh] = strings_.emplace(std::string(text), difo_.strings.size());
  if (fresh) {
    difo_.strings += text;
    difo_.strings.push_back('\0');
  }
  indexed(Opcode::Sets, at->second, rd);
}

Label Emitter::label() {
  labels_.push_back(0);
  return {static_cast<std::uint32_t>(labels_.size() - 1)};
}

void Emitter::branch(Opcode op, Label to) {
  text_.push_back({.op = op, .r1 = to.index, .part = part_});
}

void Emitter::place(Label label) {
  labels_[label.index] = static_cast<std::uint32_t>(text_.size());
}

Checked<dif::Difo> Emitter::finish(unsigned reg, const dif::ValueType& result, const Location& at,
                                   std::optional<std::uint32_t> size) {
  emit(Opcode::Ret, 0, 0, reg);
  TRY(lower(text_, labels_, registers_, slots_, difo_));
  if (difo_.text.size() > kMaxText || difo_.integers.size() > kMaxTable ||
      difo_.strings.size() > kMaxTable) {
    return complain("D_UNKNOWN", at, "expression is too large");
  }
  if (difo_.strings.empty()) difo_.strings.push_back('\0');
  if (size) difo_.relocations.push_back({dif::Relocation::Place::Result, 0, *size});
  difo_.result = result;
  return std::move(difo_);
}

}  // namespace ringside::d
