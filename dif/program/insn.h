// One DIF instruction word: its opcode, its fields, and how to make one. Used by the compiler (to
// emit), the verifier, the evaluator and the listing. Checks nothing: that is the verifier's work.
// Layout (published DIF version 2), from bit 31 down:
//   op 8 | r1 8 | r2 8 | rd 8          most
//   op 8 | label 24                    branches; the label is an instruction index, not an offset
//   op 8 | index 16 | rd 8             setx, sets, scalar and associative variables, call
//   op 8 | variable 8 | r2 8 | rd 8    ldga: the array in r1's place, the index in register r2
//   op 8 | type 8 | r2 8 | rd 8        pushtr, pushtv: type in r1's place, size in register r2
// Fire context: yes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace ringside::dif {

enum class Opcode : std::uint8_t {
#define DIF_OP(name, number, text, form) name = number,
#include "dif/program/opcodes.def"
#undef DIF_OP
};

/// Whether it may go on elsewhere than at the next instruction.
constexpr bool is_branch(Opcode op) {
  return op >= Opcode::Ba && op <= Opcode::Bleu;
}

/// The result of a compare or test, for the branches after it.
struct ConditionCodes {
  bool negative = false, zero = false, overflow = false, carry = false;
};
constexpr ConditionCodes compare(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t difference = a - b;
  return {.negative = static_cast<std::int64_t>(difference) < 0,
          .zero = a == b,
          .overflow = static_cast<std::int64_t>((a ^ b) & (a ^ difference)) < 0,
          .carry = a < b};
}
constexpr bool takes_branch(Opcode op, const ConditionCodes& codes) {
  const bool less = codes.negative != codes.overflow;
  switch (op) {
    case Opcode::Ba: return true;
    case Opcode::Be: return codes.zero;
    case Opcode::Bne: return !codes.zero;
    case Opcode::Bg: return !codes.zero && !less;
    case Opcode::Bgu: return !codes.carry && !codes.zero;
    case Opcode::Bge: return !less;
    case Opcode::Bgeu: return !codes.carry;
    case Opcode::Bl: return less;
    case Opcode::Blu: return codes.carry;
    case Opcode::Ble: return codes.zero || less;
    case Opcode::Bleu: return codes.carry || codes.zero;
    default: return false;  // only branches are asked about
  }
}

/// Where a load of memory may look.
enum class LoadedMemory : std::uint8_t {
  Guest,  // the guest's kernel, or D's own memory, as the address says
  User,   // a process of the guest
  Own,    // D's own memory
};
/// Empty: it loads no memory by its address.
constexpr std::optional<LoadedMemory> loaded_memory(Opcode op) {
  if (op >= Opcode::Ldsb && op <= Opcode::Ldx) return LoadedMemory::Guest;
  if (op >= Opcode::Uldsb && op <= Opcode::Uldx) return LoadedMemory::User;
  if (op >= Opcode::Rldsb && op <= Opcode::Rldx) return LoadedMemory::Own;
  return std::nullopt;
}

/// How many bytes such a load takes.
constexpr unsigned loaded_bytes(Opcode op) {
  constexpr Opcode kOne[] = {Opcode::Ldsb,  Opcode::Ldub,  Opcode::Uldsb,
                             Opcode::Uldub, Opcode::Rldsb, Opcode::Rldub};
  constexpr Opcode kTwo[] = {Opcode::Ldsh,  Opcode::Lduh,  Opcode::Uldsh,
                             Opcode::Ulduh, Opcode::Rldsh, Opcode::Rlduh};
  constexpr Opcode kEight[] = {Opcode::Ldx, Opcode::Uldx, Opcode::Rldx};
  if (std::ranges::find(kOne, op) != std::end(kOne)) return 1;
  if (std::ranges::find(kTwo, op) != std::end(kTwo)) return 2;
  return std::ranges::find(kEight, op) != std::end(kEight) ? 8 : 4;
}

/// Whether its value is extended by its sign.
constexpr bool loads_signed(Opcode op) {
  constexpr Opcode kSigned[] = {Opcode::Ldsb,  Opcode::Ldsh,  Opcode::Ldsw,
                                Opcode::Uldsb, Opcode::Uldsh, Opcode::Uldsw,
                                Opcode::Rldsb, Opcode::Rldsh, Opcode::Rldsw};
  return std::ranges::find(kSigned, op) != std::end(kSigned);
}

/// The places of an instruction's operands. Fields that a form does not name must be zero.
enum class Form : std::uint8_t {
  Rrr,            // r1, r2, rd
  Rr,             // r1, rd
  Compare,        // r1, r2
  Test,           // r1
  Branch,         // label
  Load,           // [r1], rd
  Store,          // r1, [rd]
  Copy,           // [r1], size r2, [rd]
  Return,         // rd
  None,           // nothing
  SetInteger,     // index, rd
  SetString,      // index, rd
  LoadArray,      // variable, r2, rd
  StoreArray,     // variable, r2, rd
  LoadVariable,   // index, rd
  StoreVariable,  // index, rd
  Push,           // type, size r2, value rd
  Call,           // index, rd
  Translate,      // index, rd
};

/// The kind of a value that pushtr or pushtv pushes.
enum class TupleType : std::uint8_t {
  Value = 0,   // pushtv: 64 bits (r2 is r0); pushtr: r2 bytes by reference
  String = 1,  // pushtr only: NUL-terminated, at most strsize bytes (r2 is r0)
};

struct Insn {
  std::uint32_t word = 0;

  constexpr Opcode op() const { return static_cast<Opcode>(word >> 24); }
  constexpr std::uint8_t r1() const { return static_cast<std::uint8_t>(word >> 16); }
  constexpr std::uint8_t r2() const { return static_cast<std::uint8_t>(word >> 8); }
  constexpr std::uint8_t rd() const { return static_cast<std::uint8_t>(word); }
  constexpr std::uint32_t label() const { return word & 0xff'ffff; }
  constexpr std::uint16_t index() const { return static_cast<std::uint16_t>(word >> 8); }
};
static_assert(sizeof(Insn) == 4);

/// op r1, r2, rd; also compare, test, loads, stores, copys, ret, nop: unused fields stay 0.
constexpr std::uint32_t encode(Opcode op, unsigned r1 = 0, unsigned r2 = 0, unsigned rd = 0) {
  return static_cast<std::uint32_t>(op) << 24 | (r1 & 0xff) << 16 | (r2 & 0xff) << 8 | (rd & 0xff);
}
/// setx, sets, ld/st of variables, call.
constexpr std::uint32_t encode_indexed(Opcode op, unsigned index, unsigned rd) {
  return static_cast<std::uint32_t>(op) << 24 | (index & 0xffff) << 8 | (rd & 0xff);
}
constexpr std::uint32_t encode_branch(Opcode op, std::uint32_t label) {
  return static_cast<std::uint32_t>(op) << 24 | (label & 0xff'ffff);
}
/// pushtr, pushtv. `size` and `value` are registers.
constexpr std::uint32_t encode_push(Opcode op, TupleType type, unsigned size, unsigned value) {
  return encode(op, static_cast<unsigned>(type), size, value);
}
constexpr std::uint32_t encode_return(unsigned rd) {
  return encode(Opcode::Ret, 0, 0, rd);
}

struct OpcodeInfo {
  Opcode op;
  std::string_view text;
  Form form;
};

/// Empty for a number that is no opcode.
constexpr std::optional<OpcodeInfo> opcode_info(std::uint8_t number) {
  switch (number) {
#define DIF_OP(name, no, text, form) \
  case no:                           \
    return OpcodeInfo{Opcode::name, text, Form::form};
#include "dif/program/opcodes.def"
#undef DIF_OP
    default: return std::nullopt;
  }
}

}  // namespace ringside::dif
