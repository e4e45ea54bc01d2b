#include "dif/d/code/spill.h"

#include <algorithm>
#include <array>

namespace ringside::d {
namespace {

using dif::Form;
using dif::Opcode;

/// The use that an instruction makes of each of its fields.
struct Roles {
  bool reads_r1 = false, reads_r2 = false, reads_rd = false, writes_rd = false;
};

Roles roles(Form form) {
  switch (form) {
    case Form::Rrr: return {.reads_r1 = true, .reads_r2 = true, .writes_rd = true};
    case Form::Rr:
    case Form::Load: return {.reads_r1 = true, .writes_rd = true};
    case Form::Compare: return {.reads_r1 = true, .reads_r2 = true};
    case Form::Test: return {.reads_r1 = true};
    case Form::Store: return {.reads_r1 = true, .reads_rd = true};
    case Form::Copy: return {.reads_r1 = true, .reads_r2 = true, .reads_rd = true};
    case Form::StoreVariable:
    case Form::Return: return {.reads_rd = true};
    case Form::LoadArray: return {.reads_r2 = true, .writes_rd = true};
    case Form::StoreArray:
    case Form::Push: return {.reads_r2 = true, .reads_rd = true};
    case Form::SetInteger:
    case Form::SetString:
    case Form::LoadVariable:
    case Form::Call:
    case Form::Translate: return {.writes_rd = true};
    case Form::Branch:
    case Form::None: return {};
  }
  return {};
}

Form form_of(Opcode op) {
  return dif::opcode_info(static_cast<std::uint8_t>(op))->form;
}

/// Whether an instruction can be where a program ends, or its value's use does.
bool may_fault(Form form) {
  switch (form) {
    case Form::SetInteger:
    case Form::SetString:
    case Form::Branch:
    case Form::Test:
    case Form::None: return false;
    default: return true;
  }
}

std::uint32_t encode(const WideInsn& in) {
  switch (form_of(in.op)) {
    case Form::Branch: return dif::encode_branch(in.op, in.r1);
    case Form::SetInteger:
    case Form::SetString:
    case Form::LoadVariable:
    case Form::StoreVariable:
    case Form::Call:
    case Form::Translate: return dif::encode_indexed(in.op, in.r1, in.rd);
    default: return dif::encode(in.op, in.r1, in.r2, in.rd);
  }
}

/// The highest register that `in` names.
unsigned highest(const WideInsn& in) {
  const Roles role = roles(form_of(in.op));
  return std::max({role.reads_r1 ? in.r1 : 0, role.reads_r2 ? in.r2 : 0,
                   role.reads_rd || role.writes_rd ? in.rd : 0});
}

class Spiller {
 public:
  Spiller(unsigned registers, const SpillSlots& slots, dif::Difo& difo)
      : kept_(registers - kLeastToSpill), slots_(slots), difo_(difo) {}

  Checked<void> add(WideInsn in) {
    const Roles role = roles(form_of(in.op));
    const unsigned written = in.rd;
    if (role.reads_r1) in.r1 = TRY(reloaded(in.r1, 1));
    if (role.reads_r2) in.r2 = TRY(reloaded(in.r2, 2));
    if (role.reads_rd) in.rd = TRY(reloaded(in.rd, 3));
    if (role.writes_rd && written > kept_) in.rd = kept_ + 3;
    difo_.text.push_back(encode(in));
    if (role.writes_rd && written > kept_) TRY(move(Opcode::Stls, written, in.rd));
    return {};
  }

 private:
  /// The register that holds what `reg` stands for: itself, or a spare one that is loaded.
  Checked<unsigned> reloaded(unsigned reg, unsigned spare) {
    if (reg <= kept_) return reg;
    TRY(move(Opcode::Ldls, reg, kept_ + spare));
    return kept_ + spare;
  }

  Checked<void> move(Opcode op, unsigned reg, unsigned spare) {
    const std::size_t slot = reg - kept_ - 1;
    if (slot >= ids_.size()) ids_.resize(slot + 1);
    if (ids_[slot] == 0) {
      difo_.variables.push_back(TRY(slots_(static_cast<unsigned>(slot))));
      ids_[slot] = difo_.variables.back().id;
    }
    difo_.text.push_back(dif::encode_indexed(op, ids_[slot], spare));
    return {};
  }

  const unsigned kept_;  // registers 1 to this are as they are
  const SpillSlots& slots_;
  dif::Difo& difo_;
  std::vector<std::uint16_t> ids_;  // of the slots' variables; 0: none yet
};

}  // namespace

Checked<void> lower(std::span<const WideInsn> text, std::span<const std::uint32_t> labels,
                    unsigned registers, const SpillSlots& slots, dif::Difo& difo) {
  const bool fits =
      std::ranges::all_of(text, [&](const WideInsn& in) { return highest(in) < registers; });
  std::vector<std::uint32_t> starts;  // of each instruction's words
  starts.reserve(text.size());
  Spiller spiller(fits ? kLeastToSpill : registers, slots, difo);
  std::vector<dif::SourceMap::Part>& parts = difo.source.parts;
  for (const WideInsn& in : text) {
    starts.push_back(static_cast<std::uint32_t>(difo.text.size()));
    const auto part = static_cast<std::int32_t>(in.part);
    if (may_fault(form_of(in.op)) && (parts.empty() || parts.back().line != part)) {
      parts.push_back({.first = starts.back(), .line = part});
    }
    if (fits) {
      difo.text.push_back(encode(in));
    } else {
      TRY(spiller.add(in));
    }
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (form_of(text[i].op) != Form::Branch) continue;
    difo.text[starts[i]] = dif::encode_branch(text[i].op, starts[labels[text[i].r1]]);
  }
  return {};
}

}  // namespace ringside::d
