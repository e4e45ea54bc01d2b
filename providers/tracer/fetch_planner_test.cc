#include "providers/tracer/fetch_planner.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "providers/context/argument_plan.h"

namespace ringside::providers {
namespace {

using dif::Builtin, dif::RecordAddress, dif::RecordCheck, dif::RecordLoad, dif::RecordNeeds,
    dif::RecordValue;
using vmm::FetchCheck, vmm::FetchList, vmm::FetchLoad, vmm::TaskCheck;
using Base = RecordAddress::Base;

constexpr std::uint16_t kRdi = FetchLoad::register_source(SHIM_RDI),
                        kRsp = FetchLoad::register_source(SHIM_RSP),
                        kFirstRun = (SHIM_RECORD_RUNS + sizeof(shim_run)) / 8,
                        kFirstWithoutRegisters = (SHIM_RECORD_CR3 + sizeof(shim_run)) / 8;

class Planner : public testing::Test {
 protected:
  Planner() {
    layout_.task_real_parent = 0x610;
    layout_.task_tgid = 0x604;
    layout_.task_cred = 0x7d8;
    layout_.cred_uid = 8;
    layout_.cred_gid = 12;
    layout_.task_stack = 0x20;
  }
  std::optional<std::string> add(const RecordNeeds& needs, const ArgumentPlan& plan) {
    binding_.plan = &plan;
    const PlacedProbe probe{&binding_, needs};
    return plan_fetch(list_, std::span(&probe, 1), places());
  }
  std::optional<std::string> add(const RecordNeeds& needs) {
    return add(needs, kFunctionEntryArguments);
  }
  /// The checks of the list, with how many loads stand before each.
  std::vector<std::pair<std::size_t, FetchCheck>> checks() {
    std::vector<std::pair<std::size_t, FetchCheck>> found;
    for (const auto& one : list_.checks()) found.emplace_back(one.loads, one.check);
    return found;
  }
  std::size_t all_checks() const { return list_.checks().size() + list_.task_checks().size(); }
  void expect(std::vector<FetchLoad> loads) {
    EXPECT_EQ(std::vector(list_.loads().begin(), list_.loads().end()), loads);
  }
  static RecordNeeds loading(std::vector<RecordLoad> loads) {
    RecordNeeds needs;
    needs.loads = std::move(loads);
    return needs;
  }

  KernelOffsets places() const { return {layout_, run_queues_, paths_}; }

  guest_linux::KernelLayout layout_;
  std::optional<GuestVirt> run_queues_;
  std::optional<guest_linux::PathLayout> paths_;
  Binding binding_;
  FetchList list_;
};

TEST_F(Planner, ARegisterIsInEachRecord) {
  EXPECT_FALSE(add({.arguments = 0b111111}));
  EXPECT_TRUE(list_.is_default());
}

TEST_F(Planner, AnArgumentOnTheStackIsCopied) {
  EXPECT_FALSE(add({.arguments = 1 << 7}));
  expect({{kRsp, 1, false, 16}});
}

TEST_F(Planner, SoAreThoseOfASystemCallWithItsNumberAndResult) {
  ArgumentPlan plan;
  plan.arguments[1] = ArgumentSource::word(&Registers::rdi, 0x68);
  plan.system_call_number = ArgumentSource::word(&Registers::rdi, 0x78);
  plan.system_call_result = ArgumentSource::word(&Registers::rdi, 0x50);
  binding_.number = 3;
  EXPECT_FALSE(add({.arguments = 2, .error_number = true}, plan));
  expect({{kRdi, 6, false, 0x50}});
}

TEST_F(Planner, OnlyWhatIsUsedIsCopied) {
  ArgumentPlan plan;
  plan.arguments[1] = ArgumentSource::word(&Registers::rdi, 0x68);
  plan.system_call_number = plan.system_call_result = ArgumentSource::word(&Registers::rdi, 0x78);
  EXPECT_FALSE(add({.arguments = 1}, plan));
  EXPECT_TRUE(list_.is_default());
}

class Computed final : public ComputedArguments {
 public:
  Result<std::uint64_t, Fault> argument(unsigned, const ArgumentMoment&) const override {
    return 0;
  }
  RecordedArgument recorded(unsigned) const override { return answer; }

  RecordedArgument answer;
};

TEST_F(Planner, WhatCannotBeComputedOfARecordWaits) {
  Computed computed;
  computed.answer.code.needs.obstacle = "it is so";
  ArgumentPlan plan;
  plan.arguments[2] = plan.system_call_result = plan.system_call_number =
      ArgumentSource::computed(computed, 0);
  EXPECT_FALSE(add({.arguments = 3}, plan));
  EXPECT_EQ(add({.arguments = 4}, plan), "it is so");
  EXPECT_EQ(add({.error_number = true}, plan), "it is so");
  binding_.number = 3;
  EXPECT_EQ(add({}, plan), "it is so");
}

TEST_F(Planner, AComputationHasItsOwnArgumentsAndMayBeAnAddress) {
  Computed computed;
  computed.answer.code.plan = arguments_from({ArgumentSource::in(&Registers::rdi)});
  computed.answer.code.needs = loading({{{Base::Argument, 0, 0x10}, 8, false}});
  computed.answer.address = RecordAddress{Base::Load, 0, 0x20};
  ArgumentPlan plan;
  plan.arguments[2] = ArgumentSource::computed(computed, 0);

  EXPECT_FALSE(add(loading({{{Base::Argument, 2, 8}, 8, false}}), plan));
  expect({{kRdi, 2, false, 0x10}, {kFirstRun, 2, false, 0x28}});

  computed.answer.address.reset();
  EXPECT_FALSE(add({.arguments = 4}, plan));
  EXPECT_EQ(add(loading({{{Base::Argument, 2, 8}, 8, false}}), plan),
            "arg2 is no address that a record has");
}

TEST_F(Planner, AnObstacleWaits) {
  EXPECT_EQ(add({.obstacle = "line 1: it is so"}), "line 1: it is so");
}

class Filter final : public TrapFilter {
 public:
  bool fires(const ArgumentMoment&, FilterValues&) const override { return true; }
  RecordedFilter recorded() const override { return answer; }

  RecordedFilter answer;
};

TEST_F(Planner, WhatAFilterLooksAtIsCopiedAndItsWordsMayBeAddresses) {
  Filter filter;
  const ArgumentPlan registers = arguments_from({ArgumentSource::in(&Registers::rsp)});
  filter.answer.codes = {{registers, loading({{{Base::Argument, 0, 0x40}, 8, false},
                                              {{Base::PerCpu, 0, 0x100}, 4, false}})}};
  filter.answer.words[1] = {0, RecordAddress{Base::Load, 0, 0x18}};
  filter.answer.words[2] = {0, RecordAddress{Base::Argument, 0, 0x80}};
  binding_.filter = &filter;
  ArgumentPlan plan;
  for (unsigned n = 0; n < 4; ++n) plan.arguments[n] = ArgumentSource::filter_value(n);

  EXPECT_FALSE(
      add(loading({{{Base::Argument, 1, 0}, 8, false}, {{Base::Argument, 2, 8}, 8, false}}), plan));
  expect({{kRsp, 11, false, 0x40},
          {FetchLoad::kPerCpuBase, 1, false, 0x100},
          {kFirstRun, 2, false, 0x18}});
  EXPECT_FALSE(add({.arguments = 15}, plan)) << "the host works them out";
  EXPECT_TRUE(add(loading({{{Base::Argument, 3, 0}, 8, false}}), plan));
  filter.answer.codes[0].needs.obstacle = "it is so";
  EXPECT_EQ(add({}), "it is so");
}

TEST_F(Planner, AFilterSeesEachTrap) {
  Filter filter;
  RecordNeeds needs;
  needs.checks = {
      {RecordValue{RecordValue::Source::Pid, 0, 4, true}, RecordCheck::Relation::Equal, false, 7}};
  EXPECT_FALSE(add(needs));
  EXPECT_EQ(all_checks(), 1u);
  list_ = {};
  binding_.filter = &filter;
  EXPECT_FALSE(add(needs));
  EXPECT_EQ(all_checks(), 0u);
  EXPECT_EQ(list_.copies(), FetchList::Copies());
}

TEST_F(Planner, WhatNoClauseLooksAtIsLeftOut) {
  const auto copies = [this](const RecordNeeds& needs) {
    list_ = {};
    EXPECT_FALSE(add(needs));
    return list_.copies();
  };
  using Copies = FetchList::Copies;
  EXPECT_EQ(copies({}), (Copies{.registers = false, .ids = false}));
  EXPECT_EQ(copies({.ids = true}), (Copies{.registers = false, .ids = true}));
  EXPECT_EQ(copies({.registers = true}), (Copies{.registers = true, .ids = false}));
  EXPECT_TRUE(copies({.arguments = 1}).registers);
  EXPECT_TRUE(copies({.error_number = true}).registers);
  EXPECT_TRUE(copies({.stack = true}).registers);
  EXPECT_TRUE(copies(loading({{{Base::Argument, 0, 8}, 8, false}})).registers);
  EXPECT_FALSE(copies(loading({{{Base::Task, 0, 8}, 8, false}})).registers);
  binding_.condition = arch::Condition{4};
  EXPECT_TRUE(copies({}).registers) << "the flags tell whether it fires";
  binding_.condition = arch::kNoCondition;
  const std::array<PlacedProbe, 2> two{{{&binding_, {.ids = true}}, {&binding_, {.arguments = 1}}}};
  EXPECT_FALSE(plan_fetch(list_, two, places()));
  EXPECT_EQ(list_.copies(), Copies()) << "for both";
}

TEST_F(Planner, VariablesOfTheTaskLieBehindPointers) {
  EXPECT_FALSE(add({.variables = {Builtin::Ppid, Builtin::Uid, Builtin::Gid}}));
  expect({{FetchLoad::kTask, 1, false, 0x610},
          {kFirstWithoutRegisters, 1, false, 0x604},
          {FetchLoad::kTask, 1, false, 0x7d8},
          {static_cast<std::uint16_t>(kFirstWithoutRegisters + 6), 1, false, 8}});
  layout_.cred_uid.reset();
  EXPECT_TRUE(add({.variables = {Builtin::Uid}}));
}

TEST_F(Planner, TheTimeThatATaskHasRunIsOfTheTaskAndItsCpu) {
  layout_.task_pid = 0x600;
  layout_.task_sum_exec_runtime = 0xa0;
  layout_.task_exec_start = 0x98;
  layout_.rq_clock = 0xb00;
  layout_.rq_clock_task = 0xb40;
  const RecordNeeds needs{.variables = {Builtin::Vtimestamp}};
  EXPECT_TRUE(add(needs)) << "a kernel without run queues";
  list_ = {};
  run_queues_ = GuestVirt(0x33000);
  EXPECT_FALSE(add(needs));
  expect({{FetchLoad::kTask, 1, false, 0x600},
          {FetchLoad::kTask, 2, false, 0x98},
          {FetchLoad::kPerCpuBase, 9, false, 0x33b00}});
  list_ = {};
  run_queues_ = GuestVirt(0xffffffff83000000);  // since 6.15
  EXPECT_FALSE(add(needs));
  EXPECT_EQ(list_.loads()[2].offset, static_cast<std::int32_t>(0x83000b00));
  layout_.task_exec_start.reset();
  EXPECT_TRUE(add(needs));
}

TEST_F(Planner, TheCallerIsAWordOfTheStackAtAFunctionsEdge) {
  EXPECT_FALSE(add({.variables = {Builtin::Caller}}));
  expect({{kRsp, 1, false, 0}});
  EXPECT_FALSE(list_.has_stack());
  binding_.at_function_edge = false;
  EXPECT_FALSE(add({.variables = {Builtin::Caller}}));
  EXPECT_TRUE(list_.has_stack()) << "elsewhere it takes a walk";
}

TEST_F(Planner, AStackNeedsTheTasks) {
  EXPECT_FALSE(add({.stack = true}));
  EXPECT_TRUE(list_.has_stack());
  list_ = {};
  EXPECT_FALSE(add({.variables = {Builtin::Stackdepth}}));
  EXPECT_TRUE(list_.has_stack());
  layout_.task_stack.reset();
  EXPECT_TRUE(add({.stack = true}));
}

TEST_F(Planner, LoadsBeginAtArgumentsTheTaskConstantsAndEarlierLoads) {
  EXPECT_FALSE(add(loading({{{Base::Argument, 0, 0x20}, 8, false},
                            {{Base::Load, 0, 4}, 4, false},
                            {{Base::Task, 0, 16}, 16, false},
                            {{Base::Constant, 0, -0x1000}, 2, false},
                            {{Base::Argument, 0, 3}, 1, true}})));
  expect({{kRdi, 2, false, 0x20},
          {kFirstRun, 2, false, 4},
          {FetchLoad::kTask, 2, false, 16},
          {0, 1, false, -0x1000},
          {kRdi, 1, true, 3}});
}

TEST_F(Planner, AddressesMayLieInMemoryAndMayBeMissing) {
  ArgumentPlan plan;
  plan.arguments[0] = ArgumentSource::word(&Registers::rdi, 0x70);
  plan.arguments[2] = ArgumentSource::in(&Registers::rdi).narrowed(4, false);
  plan.arguments[3] = ArgumentSource::of_site();
  EXPECT_FALSE(
      add(loading({{{Base::Argument, 0, 8}, 8, true}, {{Base::Argument, 1, 8}, 8, true}}), plan));
  expect({{kRdi, 1, false, 0x70}, {kFirstRun, 2, true, 8}, {0, 1, true, 8}});
  EXPECT_EQ(add(loading({{{Base::Argument, 2, 0}, 8, true}}), plan),
            "arg2 is no address that a record has");
  EXPECT_TRUE(add(loading({{{Base::Argument, 3, 0}, 8, true}}), plan));
}

TEST_F(Planner, WhatIsNotAlignedMayReachIntoTheNextWord) {
  EXPECT_FALSE(add(loading({{{Base::Task, 0, 6}, 4, true},
                            {{Base::Task, 0, 12}, 8, true},
                            {{Base::Task, 0, 12}, 4, true},
                            {{Base::Task, 0, -1}, 2, true},
                            {{Base::Task, 0, 200}, 7, true},
                            {{Base::Task, 0, 201}, 16, true}})));
  expect({{FetchLoad::kTask, 2, true, 6},
          {FetchLoad::kTask, 2, true, 12},
          {FetchLoad::kTask, 1, true, 12},
          {FetchLoad::kTask, 2, true, -1},
          {FetchLoad::kTask, 1, true, 200},
          {FetchLoad::kTask, 3, true, 201}});
  EXPECT_TRUE(add(loading({{{Base::Task, 0, 12}, 8, false}, {{Base::Load, 0, 0}, 8, false}})));
}

TEST_F(Planner, ANumberInAWordMayBeAddedToAnAddress) {
  const auto behind = [](std::int64_t number_at, std::uint8_t bytes) {
    return loading({{{Base::Argument, 0, 0xc8}, 8, false},
                    {{Base::Argument, 0, number_at}, bytes, false},
                    {{Base::Load, 0, 9, 0, RecordAddress::Index{1, bytes}}, 1, false}});
  };
  EXPECT_FALSE(add(behind(0xb4, 2)));
  const std::uint16_t number_at = kFirstRun;  // both are one piece
  ASSERT_EQ(list_.loads().size(), 2u);
  const FetchLoad& header = list_.loads()[1];
  EXPECT_EQ(header.source, kFirstRun + 3);
  EXPECT_EQ(header.offset, 9);
  EXPECT_EQ(header.index, (FetchLoad::Index{number_at, 16, 48}));
  EXPECT_FALSE(add(behind(0xb4, 4)));
  EXPECT_EQ(list_.loads()[1].index, (FetchLoad::Index{number_at, 0, 32}));
  EXPECT_TRUE(add(behind(0xb6, 4))) << "it may lie in two words";
  RecordNeeds pointer = behind(0xb4, 2);
  pointer.loads[2].bytes = 8;
  pointer.loads.push_back({{Base::Load, 2, 0}, 8, false});
  EXPECT_TRUE(add(pointer)) << "nobody knows how that pointer is aligned";
  RecordNeeds narrow = behind(0xb4, 4);
  narrow.loads[2].at.index->bytes = 2;
  EXPECT_FALSE(add(narrow));
  EXPECT_EQ(list_.loads()[1].index, (FetchLoad::Index{number_at, 16, 48}));
}

TEST_F(Planner, AnArgumentMayPointAnywhere) {
  for (const std::uint32_t bytes : {1u, 2u, 4u, 8u, 9u, 16u, 17u}) {
    list_ = {};
    EXPECT_FALSE(add(loading({{{Base::Argument, 0, 0}, bytes, true}})));
    const std::size_t held = 8 * list_.loads()[0].words;
    EXPECT_GE(held, bytes == 1 ? 1u : bytes + 7) << "from the last byte of a word on";
    EXPECT_LT(held, bytes + 15) << bytes;
  }
}

constexpr RecordValue kPid{RecordValue::Source::Pid, 0, 4, true};
constexpr RecordCheck kIsPid42{kPid, RecordCheck::Relation::Equal, false, 42};
constexpr RecordCheck is_zero(RecordValue value) {
  return {value, RecordCheck::Relation::Equal, false, 0};
}
constexpr FetchCheck kPidIs42{.source = FetchCheck::kTids,
                              .left = 0,
                              .right = 32,
                              .is_signed = true,
                              .relation = FetchCheck::Relation::Equal,
                              .is_negated = false,
                              .mask = UINT64_MAX,
                              .with = 42};

TEST_F(Planner, ChecksOfTheTaskComeFirst) {
  RecordNeeds needs = loading({{{Base::Task, 0, 16}, 8, false}});
  needs.checks = {kIsPid42,
                  {{RecordValue::Source::Tid, 0, 4, true}, RecordCheck::Relation::Less, true, 3},
                  {{RecordValue::Source::Name, 1, 8, false, 0xff},
                   RecordCheck::Relation::LessUnsigned,
                   false,
                   9},
                  is_zero({RecordValue::Source::Task})};
  layout_.task_tgid.reset();
  EXPECT_FALSE(add(needs));
  ASSERT_EQ(checks().size(), 4u);
  EXPECT_EQ(checks()[0], std::pair(std::size_t{0}, kPidIs42));
  FetchCheck tid = kPidIs42;
  tid.left = 32;
  tid.relation = FetchCheck::Relation::Less;
  tid.is_negated = true;
  tid.with = 3;
  EXPECT_EQ(checks()[1], std::pair(std::size_t{0}, tid));
  const FetchCheck name{.source = FetchCheck::kName + 1,
                        .relation = FetchCheck::Relation::LessUnsigned,
                        .mask = 0xff,
                        .with = 9};
  EXPECT_EQ(checks()[2], std::pair(std::size_t{0}, name));
  EXPECT_EQ(checks()[3], std::pair(std::size_t{0}, FetchCheck{.source = FetchLoad::kTask}));
}

TEST_F(Planner, EqualityOfNamesAndIdsIsCheckedBeforeThereIsARecord) {
  layout_.task_pid = 0x600;
  layout_.task_comm = 0x718;
  constexpr RecordValue kTid{RecordValue::Source::Tid, 0, 4, true};
  const auto equal = [](RecordValue value, std::uint64_t with, bool is_negated = false) {
    return RecordCheck{value, RecordCheck::Relation::Equal, is_negated, with};
  };
  RecordNeeds needs;
  needs.checks = {kIsPid42, equal(kTid, static_cast<std::uint64_t>(-3)),
                  equal({RecordValue::Source::Name, 1, 8, false, 0xffff}, 0x6162, true)};
  EXPECT_FALSE(add(needs));
  EXPECT_TRUE(checks().empty());
  const auto seen = list_.task_checks();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0], (TaskCheck{.offset = 0x604, .mask = UINT32_MAX, .with = 42}));
  EXPECT_EQ(seen[1], (TaskCheck{.offset = 0x600, .mask = UINT32_MAX, .with = 0xfffffffd}));
  EXPECT_EQ(seen[2],
            (TaskCheck{.offset = 0x720, .is_negated = true, .mask = 0xffff, .with = 0x6162}));

  RecordValue masked = kTid, narrow = kTid;
  masked.mask = 4;
  narrow.bytes = 2;
  needs.checks = {equal(kTid, std::uint64_t{1} << 32), equal(masked, 4), equal(narrow, 4)};
  EXPECT_FALSE(add(needs));
  EXPECT_TRUE(list_.task_checks().empty()) << "these are more than a comparison of 4 bytes";
  EXPECT_EQ(checks().size(), 3u);
  layout_.task_pid = 0x10000;
  needs.checks = {equal(kTid, 1)};
  EXPECT_FALSE(add(needs));
  EXPECT_EQ(checks().size(), 1u) << "too far away";
}

TEST_F(Planner, LaterChecksStandBehindAllThatThePredicateLooksAt) {
  RecordNeeds needs =
      loading({{{Base::Argument, 0, 0x14}, 4, false}, {{Base::Argument, 0, 0x20}, 8, false}});
  needs.arguments = 0b1000001;
  needs.predicate_loads = 1;
  needs.predicate_arguments = 0b1000001;
  needs.later_checks = {is_zero({RecordValue::Source::Argument, 0}),
                        is_zero({RecordValue::Source::Argument, 6}),
                        is_zero({RecordValue::Source::Load, 0, 4, true}), kIsPid42};
  EXPECT_FALSE(add(needs));
  expect({{kRsp, 1, false, 8}, {kRdi, 4, false, 0x14}});
  ASSERT_EQ(checks().size(), 4u);
  for (const auto& [loads, check] : checks()) EXPECT_EQ(loads, 2u);
  EXPECT_EQ(checks()[0].second, FetchCheck{.source = kRdi});
  EXPECT_EQ(checks()[1].second, FetchCheck{.source = kFirstRun});
  EXPECT_EQ(checks()[2].second,
            (FetchCheck{.source = kFirstRun + 3, .left = 0, .right = 32, .is_signed = true}));
  EXPECT_EQ(checks()[3].second, kPidIs42);
}

TEST_F(Planner, APointerMayBeMarkedInItsLowestBit) {
  // ((long **)(arg0->head - 1))[2][0]
  EXPECT_FALSE(add(loading({{{Base::Argument, 0, 8}, 8, false},
                            {{Base::Load, 0, 15}, 8, false},
                            {{Base::Load, 1, 0}, 4, false}})));
  expect({{kRdi, 2, false, 8}, {kFirstRun, 2, false, 15}, {kFirstRun + 4, 2, false, 0}});
  EXPECT_TRUE(add(loading({{{Base::Argument, 0, 7}, 8, false}, {{Base::Load, 0, 0}, 4, false}})))
      << "an argument has no mark";
}

TEST_F(Planner, AnArgumentThatACallHasKeptLiesOnTheTasksStack) {
  RecordNeeds needs = loading({{{Base::Kept, 1, 0}, 8, true}});
  EXPECT_TRUE(add(needs)) << "it is gone";
  ArgumentPlan plan = kSystemCallReturnArguments;
  plan.kept.on_stack[1] = 0x3f58;
  EXPECT_TRUE(plan.kept.any());
  EXPECT_FALSE(add(needs, plan));
  const auto word = kFirstWithoutRegisters;
  expect({{FetchLoad::kTask, 1, false, 0x20}, {word, 1, false, 0x3f58}, {word + 3, 2, true, 0}});
  needs.keeps_past_success = true;
  EXPECT_FALSE(add(needs, plan));
  plan.kept.until_success = true;
  EXPECT_TRUE(add(needs, plan));
  needs.keeps_past_success = false;
  EXPECT_FALSE(add(needs, plan));
  layout_.task_stack.reset();
  EXPECT_TRUE(add(needs, plan));
}

TEST_F(Planner, ABoundStandsBehindItsLoadOnce) {
  RecordNeeds needs = loading({{{Base::Argument, 0, 0x14}, 2, false},
                               {{Base::Argument, 0, 0x20}, 8, false},
                               {{Base::Load, 1, 0}, 64, false}});
  needs.bounds = {
      {{RecordValue::Source::Load, 0, 2}, RecordCheck::Relation::LessUnsigned, false, 5}};
  EXPECT_FALSE(add(needs));
  const FetchCheck bound{.source = kFirstRun,
                         .left = 16,
                         .right = 48,
                         .relation = FetchCheck::Relation::LessUnsigned,
                         .with = 5,
                         .lets_wait = true};
  const std::vector expected = {std::pair(std::size_t{1}, bound)};
  EXPECT_EQ(checks(), expected);
  const std::array both = {PlacedProbe{&binding_, needs}, PlacedProbe{&binding_, needs}};
  EXPECT_FALSE(plan_fetch(list_, both, places()));
  EXPECT_EQ(checks(), expected);
}

TEST_F(Planner, WithoutRoomForABoundItWaits) {
  RecordNeeds needs = loading({{{Base::Argument, 0, 0}, 4, false}});
  for (std::size_t n = 0; n <= FetchList::kMostChecks; ++n) {
    needs.bounds.push_back(
        {{RecordValue::Source::Load, 0, 4}, RecordCheck::Relation::Equal, false, n});
  }
  EXPECT_TRUE(add(needs));
  needs.bounds.pop_back();
  EXPECT_FALSE(add(needs));
  // In two words it is not compared.
  needs = loading({{{Base::Argument, 0, 6}, 4, false}});
  needs.bounds = {{{RecordValue::Source::Load, 0, 4}, RecordCheck::Relation::Equal, false, 1}};
  EXPECT_TRUE(add(needs));
}

TEST_F(Planner, AnArgumentThatIsPartOfARegisterIsCheckedInItsPart) {
  ArgumentPlan plan;
  plan.arguments[0] = ArgumentSource::in(&Registers::rdi).narrowed(4, true);
  RecordNeeds needs;
  needs.arguments = needs.predicate_arguments = 1;
  needs.later_checks = {is_zero({RecordValue::Source::Argument, 0}),
                        is_zero({RecordValue::Source::Argument, 0, 2, false}),
                        is_zero({RecordValue::Source::Argument, 0, 4, false})};
  EXPECT_FALSE(add(needs, plan));
  ASSERT_EQ(checks().size(), 3u);
  EXPECT_EQ(checks()[0].second,
            (FetchCheck{.source = kRdi, .left = 32, .right = 32, .is_signed = true}));
  EXPECT_EQ(checks()[1].second, (FetchCheck{.source = kRdi, .left = 48, .right = 48}));
  EXPECT_EQ(checks()[2].second, (FetchCheck{.source = kRdi, .left = 32, .right = 32}));
  list_ = {};
  plan.arguments[0] = ArgumentSource::in(&Registers::rdi).narrowed(1, true);
  EXPECT_FALSE(add(needs, plan));
  EXPECT_EQ(checks().size(), 1u) << "it has no more than a byte";
}

/// An argument that is an address with a distance, as a provider computes it.
TEST_F(Planner, BytesBehindAnArgumentThatIsComputedAreCheckedWhereTheyLie) {
  const ArgumentPlan registers = arguments_from({ArgumentSource::in(&Registers::rdi)});
  Computed computed;
  ArgumentPlan plan;
  plan.arguments[0] = ArgumentSource::computed(computed, 0);
  RecordNeeds needs = loading({{{Base::Argument, 0, 0}, 4, false}});
  needs.arguments = needs.predicate_arguments = 1;
  needs.predicate_loads = 1;
  needs.later_checks = {is_zero({RecordValue::Source::Load, 0, 4, false})};

  computed.answer = {{registers, {.arguments = 1}}, RecordAddress{Base::Argument, 0, 4}};
  EXPECT_FALSE(add(needs, plan));
  ASSERT_EQ(checks().size(), 1u);
  EXPECT_EQ(checks()[0].second.left, 0) << "its upper half";
  EXPECT_EQ(checks()[0].second.right, 32);

  computed.answer.code.needs = loading({{{Base::Argument, 0, 0xb4}, 2, false}});
  computed.answer.address = RecordAddress{Base::Argument, 0, 0, 0, RecordAddress::Index{0, 2}};
  EXPECT_FALSE(add(needs, plan));
  EXPECT_TRUE(list_.loads().back().index);
  EXPECT_TRUE(checks().empty()) << "they may lie anywhere in the word";
}

TEST_F(Planner, NoCheckIsMadeOfWhatNoRecordTells) {
  ArgumentPlan plan;
  plan.arguments[0] = ArgumentSource::of_site();
  RecordNeeds needs = loading({{{Base::Task, 0, 6}, 4, false}});
  needs.predicate_loads = 1;
  needs.predicate_arguments = 0b11;
  needs.later_checks = {is_zero({RecordValue::Source::Argument, 0}),
                        is_zero({RecordValue::Source::Argument, 1}),
                        is_zero({RecordValue::Source::Load, 0, 4, false})};
  EXPECT_FALSE(add(needs, plan));
  EXPECT_TRUE(checks().empty()) << "a constant, none, and a part of two words";
  needs.checks = {kIsPid42};
  needs.later_checks = {kIsPid42};
  plan.arguments[1] = ArgumentSource::untold();
  EXPECT_FALSE(add(needs, plan));
  EXPECT_EQ(all_checks(), 1u) << "it will be a fault, so the later one is left out";
}

TEST_F(Planner, OfSeveralProbesAtAPlaceOnlyCommonChecksRemain) {
  RecordNeeds pid, other;
  pid.checks = {kIsPid42};
  other.checks = {is_zero(kPid), kIsPid42};
  binding_.plan = &kFunctionEntryArguments;
  const auto plan_of = [this](const std::vector<PlacedProbe>& probes) {
    list_ = {};
    EXPECT_FALSE(plan_fetch(list_, probes, places()));
    return all_checks();
  };
  EXPECT_EQ(plan_of({{&binding_, pid}, {&binding_, other}}), 1u);
  EXPECT_EQ(plan_of({{&binding_, other}, {&binding_, other}}), 2u);
  EXPECT_EQ(plan_of({{&binding_, pid}, {&binding_, {}}}), 0u);
  RecordNeeds later;
  later.predicate_arguments = 1;
  later.later_checks = {is_zero({RecordValue::Source::Argument, 0})};
  EXPECT_EQ(plan_of({{&binding_, later}, {&binding_, later}}), 1u);
  EXPECT_EQ(plan_of({{&binding_, later}, {&binding_, pid}}), 0u);
  Binding elsewhere = binding_;
  elsewhere.plan = &kFunctionReturnArguments;
  EXPECT_EQ(plan_of({{&binding_, later}, {&elsewhere, later}}), 0u);
}

TEST_F(Planner, TheOnlyCallOfASharedPlaceIsCheckedByItsNumber) {
  ArgumentPlan plan;
  plan.system_call_number = ArgumentSource::word(&Registers::rdi, 0x78);
  binding_.number = 3;
  EXPECT_FALSE(add({}, plan));
  expect({{kRdi, 1, false, 0x78}});
  ASSERT_EQ(checks().size(), 1u);
  EXPECT_EQ(checks()[0].first, 1u);
  EXPECT_EQ(checks()[0].second, (FetchCheck{.source = kFirstRun,
                                            .left = 32,
                                            .right = 32,
                                            .mask = ~std::uint64_t{0x40000000},
                                            .with = 3}));
  list_ = {};
  Binding other = binding_;
  other.number = 4;
  const std::array<PlacedProbe, 2> two{{{&binding_, {}}, {&other, {}}}};
  EXPECT_FALSE(plan_fetch(list_, two, places()));
  EXPECT_TRUE(checks().empty());
}

TEST_F(Planner, AStepOfAReturnIsAlwaysRecorded) {
  RecordNeeds needs;
  needs.checks = {kIsPid42};
  for (const Role role : {Role::Waits, Role::Ends, Role::EndsUnknown}) {
    list_ = {};
    binding_.role = role;
    EXPECT_FALSE(add(needs));
    EXPECT_TRUE(list_.is_default());
  }
}

TEST_F(Planner, TooMuchWaits) {
  EXPECT_TRUE(add(loading({{{Base::Task, 0, 0}, 4096, false}})));
  EXPECT_TRUE(add(loading({{{Base::Task, 0, 0}, 0xffffffff, false}})));
  RecordNeeds many;
  for (int n = 0; n < 40; ++n) many.add({{Base::Task, 0, 0x80 * n}, 8, false});
  EXPECT_TRUE(add(many));
}

TEST_F(Planner, APathIsFollowedForAFewDirectoriesAndMounts) {
  RecordNeeds needs;
  needs.add({{Base::Argument, 0, 0}, {Base::Argument, 1, 0}});
  EXPECT_TRUE(add(needs)) << "without types";
  paths_ = guest_linux::PathLayout{.parent = 24,
                                   .name = 40,
                                   .length = 36,
                                   .root = 0,
                                   .inner = 32,
                                   .parent_mount = 16,
                                   .mounted_upon = 24,
                                   .hashed = 16,
                                   .short_name = {56, 32}};
  EXPECT_FALSE(add(needs));
  EXPECT_TRUE(list_.copies().registers);
  ASSERT_EQ(list_.loads().size(), 8u + 1 + 4 + 1 + 1 + 1);
  constexpr std::uint16_t kRsi = FetchLoad::register_source(SHIM_RSI), kEntryWords = 9;
  EXPECT_EQ(list_.loads()[0], (FetchLoad{kRdi, kEntryWords, false, 16}));
  // The second one is the parent of the first.
  EXPECT_EQ(list_.loads()[1], (FetchLoad{kFirstRun + 1, kEntryWords, false, 16}));
  EXPECT_EQ(list_.loads()[8], (FetchLoad{kRsi, 3, false, -16})) << "the mount";
  const std::uint16_t mount = list_.source_of(8);
  const std::uint16_t upon = mount + 1;
  EXPECT_EQ(list_.loads()[9], (FetchLoad{upon, kEntryWords, false, 16}));
  EXPECT_EQ(list_.loads()[13], (FetchLoad{mount, 3, false, 16})) << "the mount above";

  const auto bounds = checks();
  ASSERT_EQ(bounds.size(), 8u + 1 + 4 + 1 + 1);
  const FetchCheck is_short{.source = kFirstRun + 2,
                            .left = 0,
                            .right = 32,
                            .relation = FetchCheck::Relation::LessUnsigned,
                            .with = 32,
                            .lets_wait = true};
  EXPECT_EQ(bounds[0], std::pair(std::size_t{1}, is_short));
  const FetchCheck is_root{.source = static_cast<std::uint16_t>(list_.source_of(7) + 5),
                           .left = 56,
                           .right = 56,
                           .with = '/',
                           .lets_wait = true};
  EXPECT_EQ(bounds[8], std::pair(std::size_t{8}, is_root));

  needs.add({{Base::Argument, 2, 0}, {Base::Argument, 3, 0}});
  EXPECT_TRUE(add(needs)) << "no room for two";
  paths_->short_name = {};
  EXPECT_TRUE(add(needs));
}

TEST_F(Planner, WhatLiesNearEachOtherIsOnePiece) {
  EXPECT_FALSE(add(loading({{{Base::Task, 0, 0x80}, 8, false},
                            {{Base::Task, 0, 0x3c}, 4, false},
                            {{Base::Task, 0, 0xc8}, 8, false},
                            {{Base::Task, 0, 0x120}, 8, false},
                            {{Base::Load, 0, 0x10}, 4, false},
                            {{Base::Load, 0, 0x1c}, 4, false},
                            {{Base::Task, 0, 0x30}, 8, true}})));
  const std::uint16_t pointer = kFirstWithoutRegisters + (0x80 - 0x38) / 8;
  expect({{FetchLoad::kTask, 19, false, 0x3c},
          {FetchLoad::kTask, 1, false, 0x120},
          {pointer, 3, false, 0x10},
          {FetchLoad::kTask, 1, true, 0x30}});
}

TEST_F(Planner, APieceHas32WordsAtMostUnlessALoadHasMore) {
  RecordNeeds row;
  for (int n = 0; n < 40; ++n) row.add({{Base::Task, 0, 8 * n}, 8, false});
  EXPECT_FALSE(add(row));
  expect({{FetchLoad::kTask, 32, false, 0}, {FetchLoad::kTask, 8, false, 256}});

  EXPECT_FALSE(add(loading({{{Base::Task, 0, 0x100}, 8, false},
                            {{Base::Task, 0, 0}, 512, false},
                            {{Base::Task, 0, 0x200}, 8, false}})));
  expect({{FetchLoad::kTask, 64, false, 0}, {FetchLoad::kTask, 1, false, 0x200}});
}

TEST_F(Planner, APieceIsTheSameForAllProbesOfAPlace) {
  const RecordNeeds first = loading({{{Base::Task, 0, 0x10}, 8, false}}),
                    second = loading(
                        {{{Base::Task, 0, 0}, 8, false}, {{Base::Task, 0, 0x18}, 8, false}});
  const std::array both = {PlacedProbe{&binding_, first}, PlacedProbe{&binding_, second}};
  binding_.plan = &kFunctionEntryArguments;
  EXPECT_FALSE(plan_fetch(list_, both, places()));
  expect({{FetchLoad::kTask, 4, false, 0}});
}

}  // namespace
}  // namespace ringside::providers
