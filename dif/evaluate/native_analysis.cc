#include "dif/evaluate/native_analysis.h"

namespace ringside::dif {

namespace {

Form form_of(Insn in) {
  return opcode_info(static_cast<std::uint8_t>(in.op()))->form;
}

bool compares(Opcode op) {
  return op == Opcode::Cmp || op == Opcode::Tst || op == Opcode::Scmp;
}

}  // namespace

RegisterEffect register_effect(Insn in) {
  const RegisterBits r1 = register_bit(in.r1() % kRegisters),
                     r2 = register_bit(in.r2() % kRegisters),
                     rd = register_bit(in.rd() % kRegisters);
  const auto both = [](RegisterBits a, RegisterBits b) { return static_cast<RegisterBits>(a | b); };
  switch (form_of(in)) {
    case Form::Rrr: return {both(r1, r2), rd};
    case Form::Rr:
    case Form::Load: return {r1, rd};
    case Form::Compare: return {both(r1, r2), 0};
    case Form::Test: return {r1, 0};
    case Form::Store: return {both(r1, rd), 0};
    case Form::Copy: return {both(both(r1, r2), rd), 0};
    case Form::Return:
    case Form::StoreVariable: return {rd, 0};
    case Form::LoadArray: return {r2, rd};
    case Form::Push: return {both(r2, rd), 0};
    case Form::SetInteger:
    case Form::SetString:
    case Form::LoadVariable:
    case Form::Call: return {0, rd};
    case Form::Branch:
    case Form::None:
    case Form::StoreArray:
    case Form::Translate: break;
  }
  return {};
}

NativeAnalysis::NativeAnalysis(const Difo& difo)
    : live(difo.text.size() + 1), is_target(difo.text.size()), flags_at_hand(difo.text.size()) {
  for (std::size_t pc = difo.text.size(); pc-- > 0;) {
    const Insn in{difo.text[pc]};
    const Form form = form_of(in);
    const RegisterEffect effect = register_effect(in);
    RegisterBits after = live[pc + 1];
    if (form == Form::Return) after = 0;
    if (form == Form::Branch) {
      is_target[in.label()] = true;
      const RegisterBits there = live[in.label()];
      after = in.op() == Opcode::Ba ? there : static_cast<RegisterBits>(after | there);
    }
    live[pc] = static_cast<RegisterBits>((after & ~effect.writes) | effect.reads);
    used = static_cast<RegisterBits>(used | effect.reads | effect.writes);
    compiles &= form != Form::StoreArray && form != Form::Translate && in.op() != Opcode::Ldta;
  }
  for (std::size_t pc = 0; pc < difo.text.size(); ++pc) {
    const Opcode op = Insn{difo.text[pc]}.op();
    const bool branches = op >= Opcode::Be && op <= Opcode::Bleu;
    if (!branches) continue;
    flags_at_hand[pc] = pc > 0 && !is_target[pc] &&
                        (compares(Insn{difo.text[pc - 1]}.op()) || flags_at_hand[pc - 1]);
    keeps_compare |= !flags_at_hand[pc];
  }
}

}  // namespace ringside::dif
