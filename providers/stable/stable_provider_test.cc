// A stable provider over a fake guest's text: which probes it has, where they stand, when they
// fire.
#include "providers/stable/stable_provider.h"

#include "providers/stable/stable_tables.h"
#include "providers/testing/functions_for_tests.h"

namespace ringside::providers {
namespace {

std::uint64_t doubled(std::uint64_t value) {
  return value * 2;
}

constexpr NativeValue kForked[] = {{"struct task_struct *", "task", "arg0"},
                                   {"int", "twice", "task->pid", doubled}};
constexpr NativeValue kResult[] = {{"int", "error", "-result"}};
constexpr NativeValue kAbsent[] = {{"int", "colour", "current->colour"}};
constexpr NativeValue kEither[] = {{"struct task_struct *", "task", "arg0"},
                                   {"int", "number", "task->colour|task->pid|task->tgid"}};
constexpr StableArgument kArguments[] = {{"psinfo_t *", 0}, {"int", 1}};
constexpr StableProbe kProbes[] = {
    {"create", PlaceKind::Entry, "old_name|fork", kForked, kArguments, "task->pid == task->tgid"},
    {"failure", PlaceKind::Return, "fork", kResult, {}, "error > 0"},
    {"start", PlaceKind::Entry, "start"},
    {"gone", PlaceKind::Entry, "absent"},
    {"coloured", PlaceKind::Entry, "fork", kAbsent},
    {"exit", PlaceKind::Tracepoint, "sched_process_exit"},
    {"either", PlaceKind::Entry, "fork", kEither},
    {"either", PlaceKind::Entry, "absent"},
    {"whole", PlaceKind::Entry, "fork", {}, {}, "", nullptr, {}, "start"},
    {"part", PlaceKind::Entry, "fork", {}, {}, "", nullptr, {}, "unlock"},
    {.name = "lock", .place = "fork", .kernels = KernelForm::Usual},
    {.name = "lock", .kind = PlaceKind::Nowhere, .place = "no", .kernels = KernelForm::RealTime},
};
constexpr StableTable kProcTable{"proc", kProbes};

class StableProviders : public FunctionProviders {
 protected:
  StableProviders() {
    FakeKernel::write_task(memory_);
    TypeGraph& types = kernel_.own_types();
    const TypeId number = *types.find("int");
    const Member members[] = {{"pid", number, 16 * 8, 0}, {"tgid", number, 20 * 8, 0}};
    task_ = types.add_struct(TypeKind::Struct, "task_struct", 64, members);
    types.index(task_);
    task_pointer_ = types.pointer_to(task_);
    fork_ = function("fork", kReturnsOne);
    function("start.isra.0", kReturnsOne);
    function("start.isra.0.cold", kReturnsOne);
    seal();
  }
  Probe named(std::string_view name) {
    Probe found;
    EXPECT_TRUE(provider_.provide({"proc", "", "", std::string(name)},
                                  [&](const Probe& probe) { found = probe; }));
    return found;
  }
  ArgumentMoment moment() const {
    return {registers_, text_, 0, {}, nullptr, kernel_address(kPercpu0)};
  }

  TypeId task_, task_pointer_;
  GuestVirt fork_;
  Registers registers_;
  StableProvider provider_{kProcTable, std::make_shared<KernelPlaces>(text_, kernel_, points_),
                           kernel_, points_};
};

TEST_F(StableProviders, AreAtTheFunctionsThatThisKernelHas) {
  EXPECT_EQ(listed(provider_, {"proc", "", "", ""}),
            (Names{"fork:create", "fork:failure", "start.isra.0:start", "fork:either", "fork:whole",
                   "fork:lock"}));
  EXPECT_EQ(listed(provider_, {"", "vmlinux", "st*", ""}), (Names{"start.isra.0:start"}));
  EXPECT_TRUE(listed(provider_, {"sched", "", "", ""}).empty());
}

TEST_F(StableProviders, IllumosModulesStandForThisKernelWhateverTheFunction) {
  const Names start{"start.isra.0:start"};
  EXPECT_EQ(listed(provider_, {"proc", "genunix", "", "start"}), start);
  EXPECT_EQ(listed(provider_, {"proc", "unix", "lwp_create", "start"}), start);
  EXPECT_TRUE(listed(provider_, {"proc", "sd", "", "start"}).empty());
  EXPECT_TRUE(listed(provider_, {"proc", "", "lwp_create", "start"}).empty());
}

TEST_F(StableProviders, TellWhatThisKernelLacks) {
  EXPECT_EQ(refused(provider_, {"proc", "", "", ""}),
            (Names{"absent:gone: this kernel has no function absent",
                   "fork:coloured: struct task_struct of this kernel has no member colour",
                   "sched_process_exit:exit: the guest's kernel has no static tracepoints "
                   "(CONFIG_TRACEPOINTS)",
                   "absent:either: this kernel has no function absent",
                   "fork:part: this kernel has unlock inlined in its callers, where it would be "
                   "missed"}));
}

TEST_F(StableProviders, ARowIsForItsFormOfKernelsAlone) {
  const dif::ProbeDescription lock{"proc", "", "", "lock"};
  EXPECT_EQ(listed(provider_, lock), Names{"fork:lock"});
  EXPECT_EQ(refused(provider_, lock), Names{});

  function("rt_spin_lock", kReturnsOne);
  seal();
  StableProvider real_time(kProcTable, std::make_shared<KernelPlaces>(text_, kernel_, points_),
                           kernel_, points_);
  EXPECT_EQ(listed(real_time, lock), Names{});
  EXPECT_EQ(refused(real_time, lock), Names{":lock: no"});
}

TEST_F(StableProviders, APlaceThatThisKernelLacksIsAGapOfTheOthersOfItsName) {
  Names gaps;
  provider_.gaps({"proc", "", "", ""}, [&](const Refusal& gap) {
    gaps.push_back(gap.name.to_string() + ": " + gap.reason);
  });
  EXPECT_EQ(gaps, (Names{"proc:vmlinux:absent:either: this kernel has no function absent"}));
}

TEST_F(StableProviders, AFunctionThatTakesSomethingElseIsRefused) {
  TypeGraph& types = kernel_.own_types();
  const Parameter number[] = {{"flags", types.pointer_to(*types.find("int"))}};
  kernel_.prototypes = {{"fork", types.add_function({}, number, false)}};
  EXPECT_EQ(
      refused(provider_, {"proc", "", "", "create"}),
      (Names{"fork:create: fork of this kernel takes no struct task_struct * as parameter 1"}));

  const Parameter task[] = {{"task", task_pointer_}};
  kernel_.prototypes = {{"fork", types.add_function({}, task, false)}};
  EXPECT_EQ(listed(provider_, {"proc", "", "", "create"}), (Names{"fork:create"}));
}

TEST_F(StableProviders, ArgumentsAreTypedAndTranslated) {
  const ProbeArguments arguments = provider_.arguments(named("create"));
  EXPECT_TRUE(arguments.known);
  EXPECT_EQ(arguments.types, (std::vector<TypeId>{task_pointer_, *kernel_.types().find("int")}));
  EXPECT_EQ(arguments.names, (Names{"task", "twice"}));
  ASSERT_EQ(arguments.translated.size(), 2u);
  EXPECT_EQ(arguments.translated[0].type, "psinfo_t *");
  EXPECT_EQ(arguments.translated[1].native, 1u);
}

TEST_F(StableProviders, FireWhereTheirConditionHolds) {
  ASSERT_TRUE(provider_.enable(named("create")));
  ASSERT_EQ(points_.bound.size(), 1u);
  EXPECT_EQ(points_.bound[0].at.raw(), fork_.raw() + kNopSize);
  const Binding& binding = points_.bound[0].binding;
  ASSERT_NE(binding.filter, nullptr);
  FilterValues nothing;

  registers_.rdi = kernel_address(kTask).raw();
  EXPECT_FALSE(binding.filter->fires(moment(), nothing)) << "pid 101, tgid 100: a thread";
  memory_.put32(kTask + 20, 101);
  EXPECT_TRUE(binding.filter->fires(moment(), nothing));
  EXPECT_EQ(binding.plan->value(0, moment()).value(), registers_.rdi);
  EXPECT_EQ(binding.plan->value(1, moment()).value(), 202u);
}

TEST_F(StableProviders, AValueIsTheFirstThatThisKernelHas) {
  ASSERT_TRUE(provider_.enable(named("either")));
  ASSERT_EQ(points_.bound.size(), 1u);

  registers_.rdi = kernel_address(kTask).raw();
  EXPECT_EQ(points_.bound[0].binding.plan->value(1, moment()).value(), 101u) << "the pid";
}

TEST_F(StableProviders, AReturnHasItsResult) {
  ASSERT_TRUE(provider_.enable(named("failure")));
  ASSERT_EQ(points_.bound.size(), 1u);
  EXPECT_EQ(points_.bound[0].at.raw(), fork_.raw() + kNopSize + 5);
  const Binding& binding = points_.bound[0].binding;
  FilterValues nothing;

  registers_.rax = 7;
  EXPECT_FALSE(binding.filter->fires(moment(), nothing));
  registers_.rax = 0x1234'5678'ffff'fffe;  // an int, -2
  EXPECT_TRUE(binding.filter->fires(moment(), nothing));
  EXPECT_EQ(binding.plan->value(0, moment()).value(), 2u);
}

TEST_F(StableProviders, EnablingTwiceBindsOnce) {
  const Probe start = named("start");
  EXPECT_FALSE(provider_.is_enabled(start.id));
  ASSERT_TRUE(provider_.enable(start));
  ASSERT_TRUE(provider_.enable(start));
  EXPECT_TRUE(provider_.is_enabled(start.id));
  EXPECT_EQ(points_.bound.size(), 1u);
  EXPECT_EQ(points_.bound[0].binding.filter, nullptr) << "it fires always";
  provider_.note_disabled(start.id);
  EXPECT_FALSE(provider_.is_enabled(start.id));
}

TEST_F(StableProviders, APlaceIsExaminedOnceForListingAndEnabling) {
  const Probe create = named("create");
  EXPECT_TRUE(refused(provider_, {"proc", "", "", "create"}).empty());
  EXPECT_TRUE(provider_.by_id(create.id).value());
  ASSERT_TRUE(provider_.enable(create));

  EXPECT_EQ(points_.examined, (std::map<std::uint64_t, unsigned>{{fork_.raw() + kNopSize, 1}}));
}

TEST_F(StableProviders, APlaceIsExaminedAgainOnceTheGuestMayHaveProbesThere) {
  const Probe create = named("create");
  ++points_.now;
  ASSERT_TRUE(provider_.enable(create));

  EXPECT_EQ(points_.examined[fork_.raw() + kNopSize], 2u);
}

/// Mistakes in the tables would end the program when somebody asks for the probe.
TEST(StableTables, NameNativesThatAreThere) {
  std::vector<StableTable> all;
  for (const auto tables :
       {process_tables(), network_tables(), block_tables(), counter_tables(), lock_tables()}) {
    all.insert(all.end(), tables.begin(), tables.end());
  }
  for (const StableTable& table : all) {
    for (const StableProbe& probe : table.probes) {
      for (const StableArgument& argument : probe.arguments) {
        EXPECT_LT(argument.native, probe.natives.size()) << table.provider << probe.name;
      }
      EXPECT_LE(probe.natives.size(), dif::kMaxProbeArguments) << table.provider << probe.name;
      EXPECT_FALSE(probe.place.empty()) << table.provider << probe.name;
      if (probe.start == nullptr) continue;
      EXPECT_EQ(probe.start->place.empty(), probe.start->of == StartPlace::Of::Call)
          << table.provider << probe.name;
    }
  }
}

}  // namespace
}  // namespace ringside::providers
