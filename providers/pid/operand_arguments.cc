// In this file, top to bottom: reading descriptions, values.
#include "providers/pid/operand_arguments.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "dif/evaluate/guest_context.h"
#include "vmm/base/numbers.h"

namespace ringside::providers {
namespace {

struct NamedRegister {
  arch::Register which = nullptr;
  bool is_high_byte = false;
};

/// The names of a register's parts: rax, eax, ax, al and ah; rsi, esi, si, sil; r8, r8d, r8w, r8b.
std::optional<NamedRegister> register_named(std::string_view name) {
  const auto& whole = arch::kNamesByEncoding;
  const auto with_number = [&](std::size_t n) {
    return NamedRegister{arch::kByEncoding.at(n), false};
  };
  constexpr std::string_view kLow[] = {"al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil"};
  constexpr std::string_view kHigh[] = {"ah", "ch", "dh", "bh"};
  constexpr std::string_view kNumbered[] = {"", "d", "w", "b"};  // what follows r8 and on
  for (std::size_t n = 0; n < whole.size(); ++n) {
    if (name == whole[n]) return with_number(n);
    if (n < std::size(kLow)) {
      const auto word = whole[n].substr(1);
      const bool is_part = name == word || name == kLow[n] ||
                           (name.size() == 3 && name[0] == 'e' && name.substr(1) == word);
      if (is_part) return with_number(n);
      if (n < std::size(kHigh) && name == kHigh[n])
        return NamedRegister{with_number(n).which, true};
    } else if (name.starts_with(whole[n]) &&
               std::ranges::find(kNumbered, name.substr(whole[n].size())) != std::end(kNumbered)) {
      return with_number(n);
    }
  }
  return std::nullopt;
}

/// As the assembler writes it: "-20", "0x18".
std::optional<std::int64_t> number_in(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  const bool is_hexadecimal = text.starts_with("0x");
  if (is_hexadecimal) text.remove_prefix(2);
  const auto number = parse_number<std::uint64_t>(text, is_hexadecimal ? 16 : 10);
  if (!number) return std::nullopt;
  return static_cast<std::int64_t>(is_negative ? 0 - *number : *number);
}

/// The whole registers that memory is addressed by; others would be cut.
std::optional<arch::Register> base_in(std::string_view text) {
  if (!text.starts_with('%')) return std::nullopt;
  if (text == "%rip") return arch::kProgramCounter;
  const auto& names = arch::kNamesByEncoding;
  const auto found = std::ranges::find(names, text.substr(1));
  if (found == names.end()) return std::nullopt;
  return arch::kByEncoding.at(static_cast<std::size_t>(found - names.begin()));
}

/// "16(%rax,%rdx,8)", each part of which may be missing.
std::optional<disasm::MemoryOperand> memory_in(std::string_view text) {
  const std::size_t open = text.find('(');
  if (open == text.npos || !text.ends_with(')')) return std::nullopt;
  disasm::MemoryOperand memory;
  if (open > 0) {
    const auto displacement = number_in(text.substr(0, open));
    if (!displacement) return std::nullopt;
    memory.displacement = *displacement;
  }
  std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  const auto take = [&inside] {
    const std::size_t comma = std::min(inside.find(','), inside.size());
    const auto part = inside.substr(0, comma);
    inside.remove_prefix(std::min(comma + 1, inside.size()));
    return part;
  };
  const auto base = take(), index = take(), scale = take();
  if (!inside.empty() || (base.empty() && index.empty())) return std::nullopt;
  for (const auto& [part, into] : {std::pair{base, &memory.base}, {index, &memory.index}}) {
    if (part.empty()) continue;
    const auto which = base_in(part);
    if (!which) return std::nullopt;
    *into = *which;
  }
  if (!scale.empty()) {
    const auto by = parse_number<std::uint8_t>(scale, 10);
    if (!by || (*by != 1 && *by != 2 && *by != 4 && *by != 8)) return std::nullopt;
    memory.scale = *by;
  }
  return memory;
}

ArgumentOperand operand_in(std::string_view text) {
  ArgumentOperand operand;
  const std::size_t at = text.find('@');
  const auto size = number_in(text.substr(0, at));
  const std::int64_t bytes = size ? std::abs(*size) : 0;
  if (at == text.npos || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)) return operand;
  operand.bytes = static_cast<std::uint8_t>(bytes);
  operand.is_signed = *size < 0;
  text.remove_prefix(at + 1);
  using Kind = ArgumentOperand::Kind;
  if (text.starts_with('$')) {
    if (const auto number = number_in(text.substr(1))) {
      operand.kind = Kind::Constant;
      operand.constant = static_cast<std::uint64_t>(*number);
    }
  } else if (text.starts_with('%') && !text.ends_with(')')) {
    if (const auto named = register_named(text.substr(1))) {
      operand.kind = Kind::Register;
      operand.which = named->which;
      operand.is_high_byte = named->is_high_byte;
    }
  } else if (auto memory = memory_in(text)) {
    operand.kind = Kind::Memory;
    operand.memory = *memory;
  }
  return operand;
}

}  // namespace

std::vector<ArgumentOperand> parse_operands(std::string_view text) {
  std::vector<ArgumentOperand> operands;
  while (operands.size() < dif::kMaxProbeArguments) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) break;
    const std::size_t end = std::min(text.find(' '), text.size());
    operands.push_back(operand_in(text.substr(0, end)));
    text.remove_prefix(end);
  }
  return operands;
}

ArgumentPlan OperandArguments::plan() const {
  ArgumentPlan plan;
  for (std::size_t n = 0; n < operands_.size(); ++n) {
    const ArgumentOperand& operand = operands_[n];
    const bool is_plain = operand.kind == ArgumentOperand::Kind::Register && !operand.is_high_byte;
    const auto source = is_plain ? ArgumentSource::in(operand.which)
                                 : ArgumentSource::computed(*this, static_cast<unsigned>(n));
    plan.arguments[n] = operand.kind == ArgumentOperand::Kind::Unknown
                            ? ArgumentSource::untold()
                            : source.narrowed(operand.bytes, operand.is_signed);
  }
  return plan;
}

Result<std::uint64_t, Fault> OperandArguments::argument(unsigned n,
                                                        const ArgumentMoment& at) const {
  constexpr unsigned kByteBits = 8;
  const ArgumentOperand& operand = operands_.at(n);
  switch (operand.kind) {
    case ArgumentOperand::Kind::Constant: return operand.constant;
    case ArgumentOperand::Kind::Register:
      return at.registers.*operand.which >> (operand.is_high_byte ? kByteBits : 0);
    case ArgumentOperand::Kind::Memory: {
      if (at.guest == nullptr) break;
      const GuestVirt address(disasm::effective_address(operand.memory, at.registers));
      std::uint64_t value = 0;
      TRY(at.guest->user().read(address,
                                std::as_writable_bytes(std::span(&value, 1)).first(operand.bytes)));
      return value;
    }
    case ArgumentOperand::Kind::Unknown: break;
  }
  return tl::make_unexpected(Fault{FaultKind::IllegalOperation, 0, 0});
}

RecordedArgument OperandArguments::recorded(unsigned n) const {
  RecordedArgument argument;
  const ArgumentOperand& operand = operands_.at(n);
  if (operand.kind != ArgumentOperand::Kind::Memory) return argument;
  const arch::Register base = operand.memory.base;
  if (base == nullptr || base == arch::kProgramCounter || operand.memory.index != nullptr) {
    argument.code.needs.obstacle =
        "an argument lies at an index, or in a variable, of the process's memory";
    return argument;
  }
  using Base = dif::RecordAddress::Base;
  argument.code.plan = arguments_from({ArgumentSource::in(base)});
  const std::uint16_t load = argument.code.needs.add(
      {{Base::Argument, 0, operand.memory.displacement}, operand.bytes, true});
  if (operand.bytes == sizeof(std::uint64_t)) {
    argument.address = dif::RecordAddress{Base::Load, load, 0};
  }
  return argument;
}

}  // namespace ringside::providers
