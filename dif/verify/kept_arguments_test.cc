#include "dif/verify/kept_arguments.h"

#include <gtest/gtest.h>

#include <utility>

#include "dif/testing/make_dif.h"

namespace ringside::dif {
namespace {

using namespace testing;

constexpr std::uint16_t kKeptPath = kFirstUserVariable + 1;
constexpr ValueType kNoResult{ValueKind::Void, false, 0};

Difo storing_path(std::vector<std::uint32_t> text) {
  Difo made = difo(std::move(text), kNoResult);
  made.integers = {0, 8};
  made.variables = {{kKeptPath, VariableScope::Thread, VariableKind::Scalar, kLong, "path"}};
  return made;
}
constexpr std::uint32_t load_to_keep(Builtin which, unsigned to) {
  return encode_indexed(Opcode::Ldgs, static_cast<unsigned>(which), to);
}
constexpr std::uint32_t kStorePath = encode_indexed(Opcode::Stts, kKeptPath, 1);
/// self->path = argN, of that builtin.
Difo store_of(Builtin which) {
  return storing_path({load_to_keep(which, 1), kStorePath, encode_return(0)});
}
Difo store_of_zero() {
  return storing_path({encode(Opcode::Mov, 0, 0, 1), kStorePath, encode_return(0)});
}
Clause clause_at(ProbeDescription probe, std::vector<Difo> objects) {
  Clause made = clause({});
  made.probes = {std::move(probe)};
  for (Difo& object : objects) made.actions.push_back(action(ActionKind::Trace, {object}));
  return made;
}
const ProbeDescription kOpenEntry{"syscall", "", "open", "entry"},
    kOpenReturn{"syscall", "", "open", "return"};
/// Kept by the first of those clauses.
KeptArguments kept_by(std::vector<Clause> clauses) {
  const Program program = testing::program(std::move(clauses));
  const KeptArgumentFinder finder(program);
  const std::uint32_t first = 0;
  return finder.find("syscall", {&first, 1});
}
const KeptArguments kOnlyArg1 = {{kKeptPath, 1}};

TEST(KeptArguments, AVariableHoldsWhatTheEntryStores) {
  EXPECT_EQ(kept_by({clause_at(kOpenEntry, {store_of(Builtin::Arg1)})}), kOnlyArg1);
  EXPECT_EQ(kept_by({clause_at(kOpenEntry, {store_of(Builtin::Arg1)}),
                     clause_at(kOpenReturn, {store_of_zero()})}),
            kOnlyArg1);
  EXPECT_EQ(kept_by({clause_at(kOpenEntry, {store_of_zero(), store_of(Builtin::Arg1)})}),
            kOnlyArg1);
  EXPECT_TRUE(kept_by({clause_at(kOpenEntry, {store_of(Builtin::Arg1), store_of_zero()})}).empty());
  EXPECT_TRUE(
      kept_by({clause_at(kOpenReturn, {}), clause_at(kOpenEntry, {store_of(Builtin::Arg1)})})
          .empty());
}

TEST(KeptArguments, TheLastOfTheEntrysClausesCounts) {
  const Program program = testing::program({clause_at(kOpenEntry, {store_of(Builtin::Arg1)}),
                                            clause_at(kOpenEntry, {store_of(Builtin::Arg0)}),
                                            clause_at(kOpenEntry, {store_of(Builtin::Pid)})});
  const KeptArgumentFinder finder(program);
  EXPECT_TRUE(finder.any());
  using Order = std::vector<std::uint32_t>;
  EXPECT_EQ(finder.find("syscall", Order{1, 0}), kOnlyArg1);
  EXPECT_EQ(finder.find("syscall", Order{0, 1}), (KeptArguments{{kKeptPath, 0}}));
  EXPECT_TRUE(finder.find("syscall", Order{0, 2}).empty());
  EXPECT_TRUE(finder.find("fbt", Order{0}).empty()) << "others than its own store it";
}

TEST(KeptArguments, TheStoreHasToHappen) {
  Clause clause = clause_at(kOpenEntry, {store_of(Builtin::Arg1)});
  clause.predicate = builtin(Builtin::Pid);
  EXPECT_TRUE(kept_by({clause}).empty());
  clause.predicate.reset();
  clause.continues = true;
  EXPECT_TRUE(kept_by({clause}).empty());
  const Difo may_fail = load_from(0xffffffff82001000);
  EXPECT_TRUE(kept_by({clause_at(kOpenEntry, {may_fail, store_of(Builtin::Arg1)})}).empty());
  EXPECT_EQ(kept_by({clause_at(kOpenEntry, {store_of(Builtin::Arg1), may_fail})}), kOnlyArg1);
  const Difo branches = storing_path({load_to_keep(Builtin::Arg1, 1), encode(Opcode::Tst, 1),
                                      encode_branch(Opcode::Be, 4), kStorePath, encode_return(0)});
  EXPECT_TRUE(kept_by({clause_at(kOpenEntry, {branches})}).empty());
}

TEST(KeptArguments, TheValueHasToBeTheArgument) {
  EXPECT_TRUE(kept_by({clause_at(kOpenEntry, {store_of(Builtin::Pid)})}).empty());
  const Difo behind =
      storing_path({load_to_keep(Builtin::Arg1, 1), encode_indexed(Opcode::Setx, 1, 2),
                    encode(Opcode::Add, 1, 2, 1), kStorePath, encode_return(0)});
  EXPECT_TRUE(kept_by({clause_at(kOpenEntry, {behind})}).empty());
  const Difo moved = storing_path(
      {load_to_keep(Builtin::Arg1, 2), encode(Opcode::Mov, 2, 0, 1), kStorePath, encode_return(0)});
  EXPECT_EQ(kept_by({clause_at(kOpenEntry, {moved})}), kOnlyArg1);
  Difo narrow = store_of(Builtin::Arg1);
  narrow.variables[0].type.size = 4;
  EXPECT_TRUE(kept_by({clause_at(kOpenEntry, {narrow})}).empty());
}

TEST(KeptArguments, NothingElseMayBeStoredMeanwhile) {
  const Clause entry = clause_at(kOpenEntry, {store_of(Builtin::Arg1)});
  const auto with = [&entry](const ProbeDescription& probe, const Difo& store) {
    return kept_by({entry, clause_at(probe, {store})});
  };
  const Difo other = store_of(Builtin::Arg2);
  EXPECT_EQ(with({"syscall", "", "read", "entry"}, other), kOnlyArg1) << "of another call";
  EXPECT_TRUE(with(kOpenReturn, other).empty());
  EXPECT_TRUE(with({"fbt", "", "do_sys_open", "entry"}, other).empty());
  EXPECT_TRUE(with({"sys*", "", "read", "entry"}, other).empty());
  EXPECT_TRUE(with({"syscall", "", "read", "*"}, other).empty());
  EXPECT_EQ(with({"fbt", "", "do_sys_open", "entry"}, store_of_zero()), kOnlyArg1);
}

}  // namespace
}  // namespace ringside::dif
