#include <gtest/gtest.h>

#include "dif/d/actions/actions.h"

namespace ringside::d {
namespace {

using dif::ActionKind;

/// The tag of the first complaint about a clause of these actions; empty when there is none.
std::string_view check(std::initializer_list<ActionKind> kinds) {
  ActionOrder order;
  const Expr e;
  for (const ActionKind kind : kinds) {
    dif::Action action;
    action.kind = kind;
    if (const auto done = order.check(e, action); !done) return done.error().tag;
  }
  return {};
}

TEST(ActionOrder, SpeculateComesFirstAndOnce) {
  EXPECT_EQ(check({ActionKind::Evaluate, ActionKind::Speculate, ActionKind::Trace}), "");
  EXPECT_EQ(check({ActionKind::Trace, ActionKind::Speculate}), "D_SPEC_DREC");
  EXPECT_EQ(check({ActionKind::Speculate, ActionKind::Speculate}), "D_SPEC_SPEC");
  EXPECT_EQ(check({ActionKind::Commit, ActionKind::Speculate}), "D_SPEC_COMM");
}

TEST(ActionOrder, WhatIsSpeculativeOnlyRecords) {
  EXPECT_EQ(check({ActionKind::Speculate, ActionKind::Aggregate}), "D_AGG_SPEC");
  EXPECT_EQ(check({ActionKind::Speculate, ActionKind::Exit}), "D_EXIT_SPEC");
  EXPECT_EQ(check({ActionKind::Speculate, ActionKind::Chill}), "D_ACT_SPEC");
  EXPECT_EQ(check({ActionKind::Speculate, ActionKind::System}), "D_ACT_SPEC");
}

TEST(ActionOrder, CommitStandsWithNothingThatRecords) {
  EXPECT_EQ(check({ActionKind::Commit, ActionKind::Discard}), "");
  EXPECT_EQ(check({ActionKind::Commit, ActionKind::Commit}), "D_COMM_COMM");
  EXPECT_EQ(check({ActionKind::Printf, ActionKind::Commit}), "D_COMM_DREC");
  EXPECT_EQ(check({ActionKind::Commit, ActionKind::Printf}), "D_DREC_COMM");
  EXPECT_EQ(check({ActionKind::Commit, ActionKind::Aggregate}), "D_AGG_COMM");
}

}  // namespace
}  // namespace ringside::d
