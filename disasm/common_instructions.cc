// In this file, top to bottom: the tables of opcodes, the bytes after an opcode, decode_common().
// Intel SDM volume 2: 2.1 (the form of an instruction), appendix A (opcode maps).
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

#include "disasm/decoders.h"
#include "vmm/base/bytes.h"

namespace ringside::disasm {
namespace {

/// The number that comes after the opcode and its ModRM byte.
enum class Immediate : std::uint8_t {
  None,
  Byte,
  Word,       // two bytes with the operand-size prefix, else four
  Moved,      // of mov to a register: the same, or eight bytes with REX.W
  Distance8,  // of a branch
  Distance32,
};

struct Opcode {
  bool is_common = false;
  bool has_modrm = false;
  bool is_memory_only = false;  // its operand is no register
  Immediate immediate = Immediate::None;
  Flow flow = Flow::Next;
  /// Bit n: ModRM.reg may be n. The opcode means something else with the others.
  std::uint8_t groups = 0xff;
  /// Bit n: the immediate is there if ModRM.reg is n.
  std::uint8_t immediate_groups = 0xff;
};
using OpcodeMap = std::array<Opcode, 256>;

constexpr Opcode kPlain{.is_common = true};
constexpr Opcode kModRm{.is_common = true, .has_modrm = true};

constexpr Opcode with(Opcode opcode, Immediate immediate) {
  opcode.immediate = immediate;
  return opcode;
}
constexpr Opcode with_flow(Opcode opcode, Flow flow) {
  opcode.flow = flow;
  return opcode;
}
constexpr Opcode of_groups(Opcode opcode, std::uint8_t groups) {
  opcode.groups = groups;
  return opcode;
}
constexpr void put(OpcodeMap& map, std::initializer_list<unsigned> numbers, Opcode opcode) {
  for (const unsigned number : numbers) map[number] = opcode;
}
constexpr void put_range(OpcodeMap& map, unsigned first, unsigned last, Opcode opcode) {
  for (unsigned number = first; number <= last; ++number) map[number] = opcode;
}

constexpr OpcodeMap kOneByte = [] {
  OpcodeMap map{};
  for (unsigned first = 0x00; first < 0x40; first += 8) {  // add, or, adc, ..., cmp
    put_range(map, first, first + 3, kModRm);
    map[first + 4] = with(kPlain, Immediate::Byte);
    map[first + 5] = with(kPlain, Immediate::Word);
  }
  put_range(map, 0x50, 0x5f, kPlain);         // push, pop
  map[0x63] = kModRm;                         // movsxd
  map[0x68] = with(kPlain, Immediate::Word);  // push
  map[0x69] = with(kModRm, Immediate::Word);  // imul
  map[0x6a] = with(kPlain, Immediate::Byte);  // push
  map[0x6b] = with(kModRm, Immediate::Byte);  // imul
  put_range(map, 0x70, 0x7f, with_flow(with(kPlain, Immediate::Distance8), Flow::ConditionalJump));
  put(map, {0x80, 0x83}, with(kModRm, Immediate::Byte));  // add, or, adc, ..., cmp
  map[0x81] = with(kModRm, Immediate::Word);
  put_range(map, 0x84, 0x8b, kModRm);  // test, xchg, mov
  map[0x8d] = kModRm;                  // lea
  map[0x8d].is_memory_only = true;
  put_range(map, 0x90, 0x99, kPlain);  // nop, xchg, cdqe, cqo
  map[0xa8] = with(kPlain, Immediate::Byte);
  map[0xa9] = with(kPlain, Immediate::Word);
  put_range(map, 0xb0, 0xb7, with(kPlain, Immediate::Byte));
  put_range(map, 0xb8, 0xbf, with(kPlain, Immediate::Moved));
  constexpr std::uint8_t kShifts = 0b1011'1111;
  put(map, {0xc0, 0xc1}, of_groups(with(kModRm, Immediate::Byte), kShifts));
  map[0xc3] = with_flow(kPlain, Flow::Return);
  map[0xc6] = of_groups(with(kModRm, Immediate::Byte), 0b1);
  map[0xc7] = of_groups(with(kModRm, Immediate::Word), 0b1);
  map[0xc9] = kPlain;  // leave
  map[0xcc] = with_flow(kPlain, Flow::Stop);
  put_range(map, 0xd0, 0xd3, of_groups(kModRm, kShifts));
  map[0xe8] = with_flow(with(kPlain, Immediate::Distance32), Flow::Call);
  map[0xe9] = with_flow(with(kPlain, Immediate::Distance32), Flow::Jump);
  map[0xeb] = with_flow(with(kPlain, Immediate::Distance8), Flow::Jump);
  map[0xf6] = of_groups(with(kModRm, Immediate::Byte), 0b1111'1101);  // test, not, neg, mul, ...
  map[0xf7] = of_groups(with(kModRm, Immediate::Word), 0b1111'1101);
  map[0xf6].immediate_groups = map[0xf7].immediate_groups = 0b1;  // test
  map[0xfe] = of_groups(kModRm, 0b11);                            // inc, dec
  map[0xff] = of_groups(kModRm, 0b0100'0011);                     // the same, push
  return map;
}();

/// Of opcodes after 0f.
constexpr OpcodeMap kTwoBytes = [] {
  OpcodeMap map{};
  map[0x0b] = with_flow(kPlain, Flow::Stop);  // ud2
  map[0x1f] = of_groups(kModRm, 0b1);         // nop
  put_range(map, 0x40, 0x4f, kModRm);         // cmov
  put_range(map, 0x80, 0x8f, with_flow(with(kPlain, Immediate::Distance32), Flow::ConditionalJump));
  put_range(map, 0x90, 0x9f, kModRm);  // set
  put(map, {0xa3, 0xab, 0xb3, 0xbb}, kModRm);
  put(map, {0xa4, 0xac}, with(kModRm, Immediate::Byte));              // shld, shrd
  put(map, {0xa5, 0xad, 0xaf}, kModRm);                               // the same, imul
  put(map, {0xb0, 0xb1, 0xc0, 0xc1}, kModRm);                         // cmpxchg, xadd
  put(map, {0xb6, 0xb7, 0xbe, 0xbf}, kModRm);                         // movzx, movsx
  map[0xba] = of_groups(with(kModRm, Immediate::Byte), 0b1111'0000);  // bt, bts, btr, btc
  put_range(map, 0xc8, 0xcf, kPlain);                                 // bswap
  return map;
}();

/// How long the ModRM byte, the SIB byte and the displacement are; `rest` begins with the first.
struct OperandBytes {
  std::size_t length = 1;
  bool is_memory = false, is_rip_relative = false;
};
OperandBytes operand_at(std::span<const std::byte> rest) {
  constexpr unsigned kRegister = 3, kHasSib = 4, kNoBase = 5;
  const auto modrm = std::to_integer<unsigned>(rest[0]);
  const unsigned mod = modrm >> 6, rm = modrm & 7;
  OperandBytes out{.is_memory = mod != kRegister};
  if (!out.is_memory) return out;
  unsigned base = rm;
  if (rm == kHasSib) {
    ++out.length;
    if (rest.size() > 1) base = std::to_integer<unsigned>(rest[1]) & 7;  // else it is cut short
  }
  out.is_rip_relative = mod == 0 && rm == kNoBase;
  if (mod == 1) out.length += 1;
  if (mod == 2 || (mod == 0 && base == kNoBase)) out.length += 4;
  return out;
}

std::size_t size_of(Immediate immediate, bool is_narrow, bool is_wide) {
  const std::size_t word = is_narrow && !is_wide ? 2 : 4;
  switch (immediate) {
    case Immediate::None: return 0;
    case Immediate::Byte:
    case Immediate::Distance8: return 1;
    case Immediate::Word: return word;
    case Immediate::Moved: return is_wide ? 8 : word;
    case Immediate::Distance32: return 4;
  }
  return 0;
}

struct Prefixes {
  std::size_t size = 0;
  bool is_narrow = false;  // 66, the operand size
  std::uint8_t rex = 0;
};
/// Those that do not change what a common opcode means: the operand size, CS, DS and GS, and REX,
/// which is the last one.
Prefixes prefixes_of(std::span<const std::byte> bytes) {
  Prefixes out;
  for (; out.size < bytes.size(); ++out.size) {
    const auto byte = std::to_integer<std::uint8_t>(bytes[out.size]);
    if (byte == 0x66) {
      out.is_narrow = true;
    } else if ((byte & 0xf0) == 0x40) {
      out.rex = byte;
      ++out.size;
      break;
    } else if (byte != 0x2e && byte != 0x3e && byte != 0x65) {
      break;
    }
  }
  return out;
}

}  // namespace

std::optional<Instruction> decode_common(std::span<const std::byte> bytes, GuestVirt address) {
  constexpr std::byte kEscape{0x0f};
  bytes = bytes.first(std::min(bytes.size(), arch::kLongestInstruction));
  const Prefixes prefixes = prefixes_of(bytes);
  std::size_t at = prefixes.size;
  const bool is_escaped = at < bytes.size() && bytes[at] == kEscape;
  if (is_escaped) ++at;
  if (at >= bytes.size()) return std::nullopt;
  const auto number = std::to_integer<std::uint8_t>(bytes[at++]);
  const Opcode& opcode = (is_escaped ? kTwoBytes : kOneByte)[number];
  if (!opcode.is_common) return std::nullopt;
  // Processors differ in what the operand size does to a branch.
  if (opcode.flow != Flow::Next && (prefixes.is_narrow || prefixes.rex != 0)) return std::nullopt;

  Instruction out;
  bool has_immediate = true;
  if (opcode.has_modrm) {
    if (at >= bytes.size()) return std::nullopt;
    const unsigned group = std::to_integer<unsigned>(bytes[at]) >> 3 & 7;
    const OperandBytes operand = operand_at(bytes.subspan(at));
    if ((opcode.groups >> group & 1) == 0) return std::nullopt;
    if (opcode.is_memory_only && !operand.is_memory) return std::nullopt;
    has_immediate = (opcode.immediate_groups >> group & 1) != 0;
    out.rip_relative = operand.is_rip_relative;
    at += operand.length;
  }
  const bool is_wide = (prefixes.rex & 8) != 0;
  const std::size_t immediate = at;
  if (has_immediate) at += size_of(opcode.immediate, prefixes.is_narrow, is_wide);
  if (at > bytes.size()) return std::nullopt;

  out.length = static_cast<std::uint8_t>(at);
  out.flow = opcode.flow;
  if (opcode.flow == Flow::ConditionalJump) out.condition = number & 0x0f;
  if (opcode.immediate == Immediate::Distance8) {
    const std::uint64_t distance = load_at<std::uint8_t>(bytes, immediate);
    out.target = address.wrapping_add(at + (distance ^ 0x80) - 0x80);  // of a signed byte
  } else if (opcode.immediate == Immediate::Distance32) {
    const auto distance = static_cast<std::uint64_t>(load_at<std::int32_t>(bytes, immediate));
    out.target = address.wrapping_add(at + distance);
  }
  return out;
}

}  // namespace ringside::disasm
