// Random objects that the verifier accepts, for tests of all that runs DIF. They use every opcode,
// variables of all scopes, and constants that lead to D's memory, to a guest's, and nowhere.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "dif/evaluate/memory.h"
#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"

namespace ringside::dif::testing {

inline constexpr std::uint64_t kKernelBytes = 0xffff'8880'0000'1000;
inline constexpr std::uint64_t kUserBytes = 0x7f00'0000'1000;

class RandomDif {
 public:
  explicit RandomDif(std::uint64_t seed) : random_(seed) {
    while (words_.size() < kWords) {
      const std::uint32_t word = any_word();
      Difo alone = declared_;  // each word by itself, with room for a branch
      alone.text = {word, 0, 0, 0, 0, encode_return(0)};
      std::fill_n(alone.text.begin() + 1, 4, encode(Opcode::Nop));
      if (verify_difo(alone)) words_.push_back(word);
    }
  }

  unsigned pick(unsigned n) { return static_cast<unsigned>(random_() % n); }

  Difo object() {
    Difo made = declared_;
    made.text.clear();
    for (unsigned number = 1; number < kRegisters; ++number) {
      if (pick(2) == 0) made.text.push_back(encode_indexed(Opcode::Setx, pick_integer(), number));
    }
    const std::size_t length = made.text.size() + 2 + pick(24);
    while (made.text.size() < length) add(made.text, Insn{words_[pick(kWords)]});
    made.text.insert(made.text.end(), 7, encode_return(1 + pick(7)));
    return made;
  }

  /// An object without code that declares all variables that objects use.
  const Difo& declared() const { return declared_; }

 private:
  static constexpr unsigned kWords = 512;
  // Of the integers, by what they are addresses of.
  static constexpr unsigned kFirstKernel = 12, kFirstUser = 17, kFirstHandle = 20, kIntegers = 26;

  /// The word, with another before it that makes it likely to do more than fault; or nothing.
  void add(std::vector<std::uint32_t>& text, Insn in) {
    const auto here = static_cast<std::uint32_t>(text.size());
    switch (opcode_info(static_cast<std::uint8_t>(in.op()))->form) {
      case Form::Branch:
        if (pick(2) == 0) text.push_back(encode(Opcode::Cmp, pick(8), pick(8)));
        text.push_back(encode_branch(in.op(), here + 2 + pick(5)));
        return;
      case Form::Load:
      case Form::Store: {
        if (pick(3) != 0) return;
        const bool loads = opcode_info(static_cast<std::uint8_t>(in.op()))->form == Form::Load;
        const unsigned address = loads ? in.r1() : in.rd();
        if (address != 0 && pick(8) != 0) {
          text.push_back(encode_indexed(Opcode::Setx, pick_address(in.op()), address));
        }
        break;
      }
      case Form::Copy:
      case Form::Call:
      case Form::LoadArray:
      case Form::Compare:
        if (pick(3) != 0) return;
        break;
      case Form::Rrr:
        if (in.op() >= Opcode::Sdiv && in.op() <= Opcode::Urem) {
          if (pick(2) != 0 || in.r2() == 0) return;
          text.push_back(encode_indexed(Opcode::Setx, pick_integer(), in.r2()));
        }
        break;
      case Form::Push:
        if (pick(16) == 0) text.insert(text.end(), kTupleSlots - 1, in.word);
        break;
      default: break;
    }
    text.push_back(in.word);
  }

  static Difo declare() {
    Difo object = difo({encode_return(0)});
    const ValueType bytes{ValueKind::Bytes, false, 24};
    const auto add = [&](std::uint16_t id, VariableScope scope, VariableKind kind, ValueType type) {
      object.variables.push_back({id, scope, kind, type, "v"});
    };
    add(0x500, VariableScope::Global, VariableKind::Scalar, kLong);
    add(0x501, VariableScope::Global, VariableKind::Scalar, kString);
    add(0x502, VariableScope::Global, VariableKind::Associative, kString);
    add(0x500, VariableScope::Thread, VariableKind::Scalar, kString);
    add(0x501, VariableScope::Thread, VariableKind::Associative, kLong);
    add(0x500, VariableScope::Clause, VariableKind::Scalar, bytes);
    add(0x501, VariableScope::Clause, VariableKind::Scalar, kLong);
    object.strings += std::string("a/b\0:,\0", 7);
    object.integers = {0,
                       1,
                       2,
                       3,
                       8,
                       63,
                       64,
                       255,
                       UINT64_MAX,
                       UINT64_MAX - 3,
                       std::uint64_t{1} << 63,
                       std::uint64_t{1} << 31,
                       kKernelBytes,
                       kKernelBytes + 56,
                       kKernelBytes + 61,
                       kKernelBytes + 96,
                       kKernelBytes + 129,
                       kUserBytes,
                       kUserBytes + 62,
                       kUserBytes + 300,
                       make_handle(Arena::Dynamic, 64),
                       make_handle(Arena::Scratch, 0),
                       make_handle(Arena::Scratch, 13),
                       make_handle(Arena::Globals, 4),
                       make_handle(Arena::Locals, 16),
                       make_handle(Arena::Constants, 1)};
    return object;
  }

  unsigned pick_integer() { return pick(kIntegers); }
  /// Of memory that the opcode may use.
  unsigned pick_address(Opcode op) {
    const auto memory = loaded_memory(op);
    if (memory == LoadedMemory::User) return kFirstUser + pick(kFirstHandle - kFirstUser);
    if (memory == LoadedMemory::Guest) return kFirstKernel + pick(kIntegers - kFirstKernel);
    return kFirstHandle + pick(kIntegers - kFirstHandle);
  }

  /// One that is likely to pass: a known opcode, small fields.
  std::uint32_t any_word() {
    for (;;) {
      const auto info = opcode_info(static_cast<std::uint8_t>(1 + pick(80)));
      if (!info) continue;
      const Opcode op = info->op;
      switch (info->form) {
        case Form::Branch: return encode_branch(op, 1 + pick(5));
        case Form::SetInteger: return encode_indexed(op, pick_integer(), 1 + pick(7));
        case Form::SetString: return encode_indexed(op, pick(8), 1 + pick(7));
        case Form::LoadVariable:
        case Form::StoreVariable: {
          const unsigned id = pick(3) == 0 ? 0x100 + pick(0x22) : 0x500 + pick(3);
          return encode_indexed(op, id, 1 + pick(7));
        }
        case Form::Call: return call(op);
        case Form::Push: return encode(op, pick(2), pick(8), pick(8));
        case Form::Rr:
        case Form::Load:
        case Form::Store: return encode(op, pick(8), 0, 1 + pick(7));
        case Form::Compare: return encode(op, pick(8), pick(8), 0);
        case Form::Test: return encode(op, pick(8), 0, 0);
        case Form::None: return encode(op);
        case Form::Return:
          if (pick(8) != 0) continue;
          return encode_return(pick(8));
        case Form::LoadArray: return encode(op, pick(3), pick(8), 1 + pick(7));
        default: return encode(op, pick(8), pick(8), 1 + pick(7));
      }
    }
  }

  /// Of any subroutine but rand(), which nothing can repeat.
  std::uint32_t call(Opcode op) {
    unsigned id = pick(kPublishedSubroutines + 16);
    if (id >= kPublishedSubroutines) id += kFirstPrivateSubroutine - kPublishedSubroutines;
    if (id == static_cast<unsigned>(Subroutine::Rand)) ++id;
    return encode_indexed(op, id, 1 + pick(7));
  }

  std::mt19937_64 random_;
  const Difo declared_ = declare();
  std::vector<std::uint32_t> words_;
};

}  // namespace ringside::dif::testing
