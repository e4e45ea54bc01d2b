// Random instruction words: objects that the verifier accepts must run to an end, whatever they
// compute. Sanitizers make this test sharp.
#include <gtest/gtest.h>

#include <random>

#include "dif/evaluate/evaluate.h"
#include "dif/program/listing.h"
#include "dif/testing/fake_guest.h"
#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"

namespace ringside::dif {
namespace {

using namespace testing;

constexpr std::uint64_t kGuestPage = 0xffff'8880'0000'1000;

Difo declaring() {
  Difo object = difo({encode_return(0)});
  const ValueType bytes{ValueKind::Bytes, false, 24};
  const auto declare = [&](std::uint16_t id, VariableScope scope, VariableKind kind,
                           ValueType type) {
    object.variables.push_back({id, scope, kind, type, "v"});
  };
  declare(0x500, VariableScope::Global, VariableKind::Scalar, kLong);
  declare(0x501, VariableScope::Global, VariableKind::Scalar, kString);
  declare(0x502, VariableScope::Global, VariableKind::Associative, kString);
  declare(0x500, VariableScope::Thread, VariableKind::Scalar, kString);
  declare(0x501, VariableScope::Thread, VariableKind::Associative, kLong);
  declare(0x500, VariableScope::Clause, VariableKind::Scalar, bytes);
  object.integers = {0,
                     1,
                     8,
                     255,
                     UINT64_MAX,
                     kGuestPage,
                     kGuestPage + 60,
                     make_handle(Arena::Dynamic, 64),
                     0x7f00'0000'1000,
                     std::uint64_t{1} << 63};
  object.strings += std::string("a/b\0:,\0", 7);
  return object;
}

/// Words that are likely to pass: known opcodes, small fields.
std::uint32_t random_word(std::mt19937_64& random, std::size_t pc) {
  const auto pick = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  for (;;) {
    const auto number = static_cast<std::uint8_t>(1 + pick(80));
    const auto info = opcode_info(number);
    if (!info) continue;
    const Opcode op = info->op;
    switch (info->form) {
      case Form::Branch: return encode_branch(op, static_cast<std::uint32_t>(pc) + 1 + pick(4));
      case Form::SetInteger: return encode_indexed(op, pick(10), 1 + pick(7));
      case Form::SetString: return encode_indexed(op, pick(8), 1 + pick(7));
      case Form::LoadVariable:
      case Form::StoreVariable:
        return encode_indexed(op, pick(3) == 0 ? 0x100 + pick(0x22) : 0x500 + pick(3), 1 + pick(7));
      case Form::Call: return encode_indexed(op, pick(kPublishedSubroutines), 1 + pick(7));
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
      case Form::LoadArray: return encode(op, 0, pick(8), 1 + pick(7));
      default: return encode(op, pick(8), pick(8), 1 + pick(7));
    }
  }
}

TEST(RandomDif, WhatTheVerifierAcceptsRunsToAnEnd) {
  std::mt19937_64 random(20240817);
  const Difo declared = declaring();
  const EngineOptions options{.dynamic_size = 16384, .scratch_size = 8192};
  const Program whole = program({clause({action(ActionKind::Evaluate, {declared})})});
  SharedState shared(whole, options, 1);
  SpeculationIds speculations;
  Evaluator evaluator(whole, options, shared, speculations, 0);
  FakeGuest guest;
  guest.kernel_memory.put(kGuestPage, std::vector<std::byte>(100, std::byte{'k'}));
  guest.user_memory.put_text(0x7f00'0000'1000, "user text");
  const FireRecord record;

  unsigned accepted = 0, finished = 0;
  for (int round = 0; round < 1000; ++round) {
    Difo object = declared;
    object.text.clear();
    const std::size_t length = 2 + random() % 12;
    while (object.text.size() < length) {
      const std::uint32_t word = random_word(random, object.text.size());
      object.text.push_back(word);
      Difo prefix = object;  // keeps only words that can pass, so that most objects do
      prefix.text.insert(prefix.text.end(), 5, encode_return(0));
      if (!verify_difo(prefix)) object.text.pop_back();
    }
    object.text.insert(object.text.end(), 5, encode_return(1));
    if (!verify_difo(object)) continue;
    ++accepted;
    evaluator.begin_firing({}, record, guest);
    evaluator.begin_clause(EcbId{1});
    if (evaluator.evaluate(object)) ++finished;
    EXPECT_FALSE(list_difo(object).empty());
  }

  EXPECT_GT(accepted, 950u);
  EXPECT_GT(finished, 50u) << "not all of it ends in a fault";
}

}  // namespace
}  // namespace ringside::dif
