// Random instruction words: objects that the verifier accepts must run to an end, whatever they
// compute. Sanitizers make this test sharp. native_code_test.cc compares what they compute.
#include "dif/testing/random_dif.h"

#include <gtest/gtest.h>

#include "dif/evaluate/evaluate.h"
#include "dif/program/listing.h"
#include "dif/testing/fake_guest.h"
#include "dif/verify/verify.h"

namespace ringside::dif {
namespace {

using namespace testing;

TEST(RandomDif, WhatTheVerifierAcceptsRunsToAnEnd) {
  RandomDif random(20240817);
  const EngineOptions options{.dynamic_size = 16384, .scratch_size = 8192};
  const Program whole = program({clause({action(ActionKind::Evaluate, {random.declared()})})});
  SharedState shared(whole, options, 1);
  SpeculationIds speculations;
  Evaluator evaluator(whole, options, shared, speculations, 0);
  FakeGuest guest;
  guest.kernel_memory.put(kKernelBytes, std::vector<std::byte>(100, std::byte{'k'}));
  guest.user_memory.put_text(kUserBytes, "user text");
  const FireRecord record;

  unsigned accepted = 0, finished = 0;
  for (int round = 0; round < 1000; ++round) {
    const Difo object = random.object();
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
