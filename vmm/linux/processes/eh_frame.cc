// In this file, top to bottom: encoded pointers, the index, CIEs and FDEs, programs of rules, the
// step up.
#include "vmm/linux/processes/eh_frame.h"

#include <algorithm>
#include <string_view>

#include "vmm/arch/arch.h"
#include "vmm/linux/processes/dwarf_cursor.h"

namespace ringside::guest_linux {
namespace {

/// How a pointer is encoded (LSB 5.0 Core, 10.5): its format, and what it counts from.
constexpr std::uint8_t kAbsolute = 0x00, kUdata2 = 0x02, kUdata4 = 0x03, kUdata8 = 0x04,
                       kSdata2 = 0x0a, kSdata4 = 0x0b, kSdata8 = 0x0c, kFormat = 0x0f,
                       kFromHere = 0x10, kFromHeader = 0x30, kBase = 0x70, kOmitted = 0xff;

constexpr std::uint64_t kMostEntryBytes = 1 << 20;  // of one CIE or FDE
constexpr std::size_t kMostRemembered = 8;
constexpr std::size_t kIndexEntry = 8;

std::uint64_t take_encoded(DwarfCursor& from, std::uint8_t format) {
  switch (format & kFormat) {
    case kAbsolute:
    case kUdata8:
    case kSdata8: return from.take<std::uint64_t>();
    case kUdata2: return from.take<std::uint16_t>();
    case kUdata4: return from.take<std::uint32_t>();
    case kSdata2: return static_cast<std::uint64_t>(std::int64_t{from.take<std::int16_t>()});
    case kSdata4: return static_cast<std::uint64_t>(std::int64_t{from.take<std::int32_t>()});
    default: from.fail(); return 0;
  }
}

GuestVirt take_pointer(DwarfCursor& from, std::uint8_t encoding) {
  const GuestVirt here = from.at();
  const std::uint64_t number = take_encoded(from, encoding);
  switch (encoding & ~kFormat) {
    case 0: return GuestVirt(number);
    case kFromHere: return here.wrapping_add(number);
    default: from.fail(); return {};
  }
}

/// The bytes of the CIE or FDE at `at`, behind its length. Empty of one that ends the section.
DwarfCursor take_entry(const GuestReader& image, GuestVirt at) {
  DwarfCursor entry(image, at, at.wrapping_add(sizeof(std::uint32_t) + kMostEntryBytes));
  const auto length = entry.take<std::uint32_t>();
  // A length of 2^32 - 1 would announce a 64-bit table, which nobody writes.
  entry.limit(length <= kMostEntryBytes ? length : 0);
  return entry;
}

/// A common information entry: the part that FDEs share.
struct Cie {
  std::uint64_t code_unit = 0;
  std::int64_t data_unit = 0;
  std::uint8_t pointers = kAbsolute;  // the encoding of addresses in FDEs
  bool has_augmentation = false;      // FDEs say how long theirs is
  bool is_signal = false;
};

/// Reads up to the instructions; false if it is of an unknown form.
bool take_cie(DwarfCursor& from, Cie& cie) {
  if (from.take<std::uint32_t>() != 0) return false;  // the id of a CIE
  const auto version = from.take<std::uint8_t>();
  if (version != 1 && version != 3) return false;
  std::array<char, 8> text{};
  for (std::size_t n = 0; (text[n] = static_cast<char>(from.take<std::uint8_t>())) != '\0'; ++n) {
    if (n + 2 == text.size()) return false;
  }
  cie.code_unit = from.take_uleb();
  cie.data_unit = from.take_sleb();
  const std::uint64_t return_address = version == 1 ? from.take<std::uint8_t>() : from.take_uleb();
  if (return_address != arch::kDwarfReturnAddress) return false;
  if (text[0] == '\0') return from.ok();
  if (text[0] != 'z') return false;
  const std::uint64_t length = from.take_uleb();
  const GuestVirt begin = from.at();
  for (const char letter : std::string_view(text.data()).substr(1)) {
    switch (letter) {
      case 'R': cie.pointers = from.take<std::uint8_t>(); break;
      case 'L': (void)from.take<std::uint8_t>(); break;
      case 'P': (void)take_encoded(from, from.take<std::uint8_t>()); break;
      case 'S': cie.is_signal = true; break;
      default: return false;
    }
  }
  cie.has_augmentation = true;
  from.go_to(begin);
  from.skip(length);
  return from.ok();
}

/// Runs the programs of a CIE and an FDE up to one address.
class RuleProgram {
 public:
  RuleProgram(const Cie& cie, GuestVirt begin, GuestVirt pc, StepBudget& budget)
      : cie_(cie), at_(begin), pc_(pc), budget_(budget) {
    rules_.is_signal = cie.is_signal;
  }

  bool run_cie(DwarfCursor& from) {
    const bool done = run(from);
    initial_ = rules_;
    return done;
  }
  bool run(DwarfCursor& from) {
    while (from.ok() && !from.at_end() && at_ <= pc_) {
      if (!budget_.take()) return false;
      const auto code = from.take<std::uint8_t>();
      const std::uint64_t operand = code & 0x3f;
      switch (code & 0xc0) {
        case 0x40: advance(operand); break;                                   // advance_loc
        case 0x80: set(operand, at_offset(scaled(from.take_uleb()))); break;  // offset
        case 0xc0: restore(operand); break;                                   // restore
        default:
          if (!place_or_state(code, from) && !cfa(code, from) && !register_rule(code, from)) {
            return false;
          }
      }
    }
    return from.ok() && ok_;
  }
  const FrameRules& rules() const { return rules_; }

 private:
  using Kind = RegisterRule::Kind;

  static RegisterRule at_offset(std::int64_t offset) { return {Kind::AtOffset, 0, offset}; }
  std::int64_t scaled(std::uint64_t units) const {
    return static_cast<std::int64_t>(units * static_cast<std::uint64_t>(cie_.data_unit));
  }
  std::int64_t scaled(std::int64_t units) const {
    return scaled(static_cast<std::uint64_t>(units));
  }
  void advance(std::uint64_t units) {
    const std::uint64_t distance = units * cie_.code_unit;
    at_ = at_.checked_add(distance).value_or(GuestVirt(UINT64_MAX));
  }
  /// Registers that are not tracked (SSE and others) may have rules.
  void set(std::uint64_t number, const RegisterRule& rule) {
    if (number < rules_.registers.size()) rules_.registers[number] = rule;
  }
  void restore(std::uint64_t number) {
    if (number < rules_.registers.size()) rules_.registers[number] = initial_.registers[number];
  }
  void set_cfa(std::uint64_t number, std::int64_t offset) {
    ok_ = ok_ && number < rules_.registers.size();
    rules_.cfa_register = static_cast<std::uint8_t>(number);
    rules_.cfa = {Kind::IsOffset, 0, offset};
  }
  /// A block: its length, then the expression.
  RegisterRule take_expression(Kind kind, DwarfCursor& from) {
    const std::uint64_t length = from.take_uleb();
    const GuestVirt at = from.at();
    from.skip(length);
    ok_ = ok_ && length <= UINT16_MAX;
    return {kind, static_cast<std::uint16_t>(length), static_cast<std::int64_t>(at.raw())};
  }

  /// Each of these says whether it knows the instruction (DWARF 5, table 7.29).
  bool place_or_state(std::uint8_t code, DwarfCursor& from) {
    switch (code) {
      case 0x00: return true;                                           // nop
      case 0x01: at_ = take_pointer(from, cie_.pointers); return true;  // set_loc
      case 0x02: advance(from.take<std::uint8_t>()); return true;       // advance_loc1, 2, 4
      case 0x03: advance(from.take<std::uint16_t>()); return true;
      case 0x04: advance(from.take<std::uint32_t>()); return true;
      case 0x0a:  // remember_state
        if (remembered_count_ == remembered_.size()) return false;
        remembered_[remembered_count_++] = rules_;
        return true;
      case 0x0b:  // restore_state
        if (remembered_count_ == 0) return false;
        rules_ = remembered_[--remembered_count_];
        return true;
      case 0x2e: (void)from.take_uleb(); return true;  // GNU_args_size
      default: return false;
    }
  }

  bool cfa(std::uint8_t code, DwarfCursor& from) {
    switch (code) {
      case 0x0c: {  // def_cfa
        const std::uint64_t number = from.take_uleb();
        set_cfa(number, static_cast<std::int64_t>(from.take_uleb()));
        return true;
      }
      case 0x0d: set_cfa(from.take_uleb(), rules_.cfa.value); return true;  // def_cfa_register
      case 0x0e:                                                            // def_cfa_offset
        set_cfa(rules_.cfa_register, static_cast<std::int64_t>(from.take_uleb()));
        return true;
      case 0x0f: rules_.cfa = take_expression(Kind::IsExpression, from); return true;
      case 0x12: {  // def_cfa_sf
        const std::uint64_t number = from.take_uleb();
        set_cfa(number, scaled(from.take_sleb()));
        return true;
      }
      case 0x13: set_cfa(rules_.cfa_register, scaled(from.take_sleb())); return true;
      default: return false;
    }
  }

  bool register_rule(std::uint8_t code, DwarfCursor& from) {
    const auto value = [this](std::int64_t units) {
      return RegisterRule{Kind::IsOffset, 0, scaled(units)};
    };
    const std::uint64_t number = from.take_uleb();
    switch (code) {
      case 0x05: set(number, at_offset(scaled(from.take_uleb()))); return true;  // offset_extended
      case 0x06: restore(number); return true;                                   // restore_extended
      case 0x07: set(number, {Kind::Undefined, 0, 0}); return true;
      case 0x08: set(number, {Kind::Unchanged, 0, 0}); return true;  // same_value
      case 0x09: {                                                   // register
        const std::uint64_t other = from.take_uleb();
        ok_ = ok_ && other < rules_.registers.size();
        set(number, {Kind::IsRegister, 0, static_cast<std::int64_t>(other)});
        return true;
      }
      case 0x10: set(number, take_expression(Kind::AtExpression, from)); return true;
      case 0x11: set(number, at_offset(scaled(from.take_sleb()))); return true;  // ..._extended_sf
      case 0x14: set(number, value(static_cast<std::int64_t>(from.take_uleb()))); return true;
      case 0x15: set(number, value(from.take_sleb())); return true;  // val_offset_sf
      case 0x16: set(number, take_expression(Kind::IsExpression, from)); return true;
      case 0x2f:  // GNU_negative_offset_extended
        set(number, at_offset(scaled(0 - from.take_uleb())));
        return true;
      default: return false;
    }
  }

  const Cie& cie_;
  GuestVirt at_;
  const GuestVirt pc_;
  StepBudget& budget_;
  FrameRules rules_, initial_;
  std::array<FrameRules, kMostRemembered> remembered_;
  std::size_t remembered_count_ = 0;
  bool ok_ = true;
};

/// The last entry whose code begins at or before `pc`. Empty: there is none.
Result<std::optional<GuestVirt>, NoRules> find_entry(const GuestReader& image,
                                                     const EhFrameIndex& index, GuestVirt pc,
                                                     StepBudget& budget) {
  struct Entry {
    std::int32_t code, fde;
  };
  static_assert(sizeof(Entry) == kIndexEntry);
  const auto wanted = static_cast<std::int64_t>(pc.offset_from(index.header));
  std::uint32_t low = 0, high = index.count;
  std::optional<std::int32_t> found;
  while (low < high) {
    if (!budget.take()) return tl::make_unexpected(NoRules::Unreadable);
    const std::uint32_t middle = low + (high - low) / 2;
    const auto entry = load<Entry>(
        image, index.header.wrapping_add(index.first + std::uint64_t{middle} * kIndexEntry));
    if (!entry) return tl::make_unexpected(NoRules::Unreadable);
    if (entry->code <= wanted) {
      found = entry->fde;
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (!found) return std::nullopt;
  return index.header.wrapping_add(static_cast<std::uint64_t>(std::int64_t{*found}));
}

}  // namespace

Result<EhFrameIndex, Fault> EhFrameIndex::read(const GuestReader& image, GuestVirt header) {
  constexpr Fault kUnknown{FaultKind::IllegalOperation, 0, 0};
  constexpr std::uint64_t kLongestHeader = 4 + 8 + 8;
  DwarfCursor cursor(image, header, header.wrapping_add(kLongestHeader));
  const auto version = cursor.take<std::uint8_t>(), frame = cursor.take<std::uint8_t>(),
             count = cursor.take<std::uint8_t>(), entries = cursor.take<std::uint8_t>();
  if (!cursor.ok()) return tl::make_unexpected(Fault{FaultKind::BadAddress, 0, header.raw()});
  const bool is_known = version == 1 && entries == (kFromHeader | kSdata4) && count != kOmitted &&
                        (count & kBase) == 0 && frame != kOmitted;
  if (!is_known) return tl::make_unexpected(kUnknown);
  (void)take_encoded(cursor, frame);
  const std::uint64_t number = take_encoded(cursor, count);
  if (!cursor.ok() || number > UINT32_MAX) return tl::make_unexpected(kUnknown);
  return EhFrameIndex{header, cursor.at().offset_from(header), static_cast<std::uint32_t>(number)};
}

namespace {

/// A frame description entry, read up to its rules.
struct Fde {
  Cie cie;
  DwarfCursor shared, own;  // the instructions of the CIE and its own
  GuestVirt begin;
  std::uint64_t size = 0;

  Result<FrameRules, NoRules> rules_at(GuestVirt pc, StepBudget& budget) {
    RuleProgram program(cie, begin, pc, budget);
    if (program.run_cie(shared) && program.run(own)) return program.rules();
    return tl::make_unexpected(NoRules::Unreadable);
  }
};

Result<Fde, NoRules> find_fde(const GuestReader& image, const EhFrameIndex& index, GuestVirt pc,
                              StepBudget& budget) {
  constexpr auto kUnreadable = NoRules::Unreadable;
  const auto entry = TRY(find_entry(image, index, pc, budget));
  if (!entry) return tl::make_unexpected(NoRules::NotCovered);
  DwarfCursor own = take_entry(image, *entry);
  const GuestVirt link = own.at();
  const auto distance = own.take<std::uint32_t>();  // from here back to its CIE; of a CIE: 0
  if (!own.ok() || distance == 0) return tl::make_unexpected(kUnreadable);
  Cie cie;
  DwarfCursor shared = take_entry(image, link.wrapping_sub(distance));
  if (!take_cie(shared, cie)) return tl::make_unexpected(kUnreadable);
  const GuestVirt begin = take_pointer(own, cie.pointers);
  const std::uint64_t size = take_encoded(own, cie.pointers);
  if (!own.ok()) return tl::make_unexpected(kUnreadable);
  if (!pc.is_in(begin, size)) return tl::make_unexpected(NoRules::NotCovered);
  if (cie.has_augmentation) own.skip(own.take_uleb());
  return Fde{cie, shared, own, begin, size};
}

}  // namespace

Result<FrameRules, NoRules> find_frame_rules(const GuestReader& image, const EhFrameIndex& index,
                                             GuestVirt pc, StepBudget& budget) {
  return TRY(find_fde(image, index, pc, budget)).rules_at(pc, budget);
}

Result<CodePiece, NoRules> find_code_piece(const GuestReader& image, const EhFrameIndex& index,
                                           GuestVirt pc, StepBudget& budget) {
  Fde fde = TRY(find_fde(image, index, pc, budget));
  return CodePiece{fde.begin, fde.size, TRY(fde.rules_at(fde.begin, budget))};
}

namespace {

std::optional<std::uint64_t> load_word(const GuestReader& process, std::uint64_t at) {
  const auto word = load<std::uint64_t>(process, GuestVirt(at));
  return word ? std::optional(*word) : std::nullopt;
}

}  // namespace

FrameStep step_up(const FrameRules& rules, const GuestReader& image, const GuestReader& process,
                  FrameRegisters& registers, StepBudget& budget) {
  using Kind = RegisterRule::Kind;
  const FrameRegisters own = registers;
  const auto value_of = [&](const RegisterRule& rule, std::optional<std::uint64_t> first) {
    const DwarfExpression expression{GuestVirt(static_cast<std::uint64_t>(rule.value)),
                                     rule.length};
    return evaluate(expression, image, process, own, first, budget);
  };
  std::optional<std::uint64_t> cfa;
  if (rules.cfa.kind == Kind::IsExpression) {
    cfa = value_of(rules.cfa, std::nullopt);
  } else if (rules.cfa.kind == Kind::IsOffset) {
    cfa = own[rules.cfa_register] + static_cast<std::uint64_t>(rules.cfa.value);
  }
  if (!cfa) return FrameStep::Failed;
  registers[arch::kDwarfStackPointer] = *cfa;
  for (std::size_t n = 0; n < own.size(); ++n) {
    const RegisterRule& rule = rules.registers[n];
    std::optional<std::uint64_t> value;
    switch (rule.kind) {
      case Kind::Unchanged:
        if (n == arch::kDwarfReturnAddress) return FrameStep::Failed;
        continue;
      case Kind::Undefined:
        if (n == arch::kDwarfReturnAddress) return FrameStep::Outermost;
        continue;
      case Kind::AtOffset:
        value = load_word(process, *cfa + static_cast<std::uint64_t>(rule.value));
        break;
      case Kind::IsOffset: value = *cfa + static_cast<std::uint64_t>(rule.value); break;
      case Kind::IsRegister: value = own[static_cast<std::size_t>(rule.value)]; break;
      case Kind::AtExpression:
        if (const auto at = value_of(rule, cfa)) value = load_word(process, *at);
        break;
      case Kind::IsExpression: value = value_of(rule, cfa); break;
    }
    if (!value || !budget.take()) return FrameStep::Failed;
    registers[n] = *value;
  }
  return FrameStep::Up;
}

}  // namespace ringside::guest_linux
