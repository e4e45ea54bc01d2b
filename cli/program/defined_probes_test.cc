// Probes that D libraries define, over a fake guest's text: which there are, where they stand, when
// they fire, with which arguments.
#include "cli/program/defined_probes.h"

#include <gtest/gtest.h>

#include "providers/stable/stable_provider.h"
#include "providers/testing/functions_for_tests.h"

namespace ringside::cli {
namespace {

using namespace ringside::providers;

constexpr char kLibrary[] = R"(typedef struct psinfo { int pr_pid; } psinfo_t;
provider proc {
	probe create(struct task_struct *task, int twice) : (psinfo_t *task, int twice)
	    = fbt::old_name:entry | fbt::fork:entry /task->pid == task->tgid/ {
		task = args[0];
		twice = task->pid * 2;
	    };
	probe failure(int error) = fbt::fork:return /error > 0/ { error = -arg1; };
	probe start() = fbt::start:entry;
	probe gone() = fbt::absent:entry;
	probe coloured(int colour) = fbt::fork:entry { colour = curthread->colour; };
	probe exit() = sdt:::sched_process_exit;
	probe either(struct task_struct *task, int number) = fbt::fork:entry {
		task = args[0];
		number = task->colour;
		number = task->pid;
		number = task->tgid;
	    };
	probe either() = fbt::absent:entry;
	probe whole() = fbt::fork:entry { } unless_inlined "start";
	probe part() = fbt::fork:entry { } unless_inlined "unlock";
	probe lock() = fbt::fork:entry { } never_on "PREEMPT_RT";
	probe lock() absent "no" only_on "PREEMPT_RT";
	probe call(struct task_struct *task, int before)
	    = fbt::fork:entry { self->task = arg0; self->pid = ((struct task_struct *)arg0)->pid; }
	    -> fbt::fork:return /(int)arg1 == 7/ { task = self->task; before = self->pid; };
	probe word() = fbt::fork:entry /probefunc == "fork"/;
	probe slow(uint64_t ns)
	    = fbt::fork:entry { self->from = timestamp; }
	    -> fbt::fork:return /ns > 100/ { ns = timestamp - self->from; };
	probe large(struct task_struct task) = fbt::fork:entry { task = arg0; };
	probe when(long now) = fbt::fork:entry { now = walltimestamp; };
	probe wide(long sum) = fbt::fork:entry {
		this->a = arg0 + arg0 + arg0 + arg0 + arg0 + arg0 + arg0 + arg0;
		this->b = this->a + this->a + this->a + this->a + this->a + this->a + this->a;
		this->c = this->b + this->b + this->b + this->b + this->b + this->b + this->b;
		this->d = this->c + this->c + this->c + this->c + this->c + this->c + this->c;
		this->e = this->d + this->d + this->d + this->d + this->d + this->d + this->d;
		sum = this->e + this->e + this->e + this->e + this->e + this->e + this->e;
	    };
};
)";

class DefinedProbesTest : public FunctionProviders {
 protected:
  DefinedProbesTest() {
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
    EXPECT_TRUE(provider().provide({"proc", "", "", std::string(name)},
                                   [&](const Probe& probe) { found = probe; }));
    return found;
  }
  ArgumentMoment moment() const {
    return {registers_, text_, 0, {}, nullptr, kernel_address(kPercpu0)};
  }

  TypeId task_, task_pointer_;
  GuestVirt fork_;
  Registers registers_;
  std::shared_ptr<const DefinedProbes> defined() {
    const auto libraries = std::make_shared<const std::vector<d::LibrarySource>>(
        std::vector<d::LibrarySource>{{"lib/proc.d", kLibrary}});
    auto read = read_defined_probes(libraries, kernel_, false);
    EXPECT_TRUE(read) << read.error().message;
    return read ? *read : std::make_shared<const DefinedProbes>();
  }
  std::shared_ptr<StableProvider::Shared> shared() {
    return std::make_shared<StableProvider::Shared>(defined(), text_, kernel_, points_);
  }
  StableProvider& provider() {
    if (!provider_) provider_.emplace("proc", shared(), kernel_, points_);
    return *provider_;
  }
  std::optional<StableProvider> provider_;
};

TEST_F(DefinedProbesTest, AreAtTheFunctionsThatThisKernelHas) {
  EXPECT_EQ(listed(provider(), {"proc", "", "", ""}),
            (Names{"fork:create", "fork:failure", "start.isra.0:start", "fork:either", "fork:whole",
                   "fork:lock", "fork:call", "fork:slow"}));
  EXPECT_EQ(listed(provider(), {"", "vmlinux", "st*", ""}), (Names{"start.isra.0:start"}));
  EXPECT_TRUE(listed(provider(), {"sched", "", "", ""}).empty());
}

TEST_F(DefinedProbesTest, IllumosModulesStandForThisKernelWhateverTheFunction) {
  const Names start{"start.isra.0:start"};
  EXPECT_EQ(listed(provider(), {"proc", "genunix", "", "start"}), start);
  EXPECT_EQ(listed(provider(), {"proc", "unix", "lwp_create", "start"}), start);
  EXPECT_TRUE(listed(provider(), {"proc", "sd", "", "start"}).empty());
  EXPECT_TRUE(listed(provider(), {"proc", "", "lwp_create", "start"}).empty());
}

TEST_F(DefinedProbesTest, TellWhatThisKernelLacks) {
  EXPECT_EQ(refused(provider(), {"proc", "", "", ""}),
            (Names{"absent:gone: this kernel has no function absent",
                   "fork:coloured: colour is not a member of struct task_struct; it has pid, tgid "
                   "(proc.d, line 11)",
                   "sched_process_exit:exit: the guest's kernel has no static tracepoints "
                   "(CONFIG_TRACEPOINTS)",
                   "absent:either: this kernel has no function absent",
                   "fork:part: this kernel has unlock inlined in its callers, where it would be "
                   "missed",
                   "fork:word: a probe's condition and arguments are numbers and addresses, made "
                   "without strings and without variables",
                   "fork:large: a struct task_struct has 64 bytes, and an argument at most 8: pass "
                   "a pointer to it",
                   "fork:when: walltimestamp, id and epid are a program's: a probe's condition and "
                   "arguments cannot have them",
                   "fork:wide: with the values that it names, the expression of line 38 is longer "
                   "than 65536 characters"}));
}

TEST_F(DefinedProbesTest, ARowIsForItsFormOfKernelsAlone) {
  const dif::ProbeDescription lock{"proc", "", "", "lock"};
  EXPECT_EQ(listed(provider(), lock), Names{"fork:lock"});
  EXPECT_EQ(refused(provider(), lock), Names{});

  function("rt_spin_lock", kReturnsOne);
  seal();
  StableProvider real_time("proc", shared(), kernel_, points_);
  EXPECT_EQ(listed(real_time, lock), Names{});
  EXPECT_EQ(refused(real_time, lock), Names{":lock: no"});
}

TEST_F(DefinedProbesTest, APlaceThatThisKernelLacksIsAGapOfTheOthersOfItsName) {
  Names gaps;
  provider().gaps({"proc", "", "", ""}, [&](const Refusal& gap) {
    gaps.push_back(gap.name.to_string() + ": " + gap.reason);
  });
  EXPECT_EQ(gaps, (Names{"proc:vmlinux:absent:either: this kernel has no function absent"}));
}

TEST_F(DefinedProbesTest, AFunctionThatTakesSomethingElseIsRefused) {
  TypeGraph& types = kernel_.own_types();
  const Parameter number[] = {{"flags", types.pointer_to(*types.find("int"))}};
  kernel_.prototypes = {{"fork", types.add_function({}, number, false)}};
  EXPECT_EQ(
      refused(provider(), {"proc", "", "", "create"}),
      (Names{"fork:create: fork of this kernel takes no struct task_struct * as parameter 1"}));

  const Parameter task[] = {{"task", task_pointer_}};
  kernel_.prototypes = {{"fork", types.add_function({}, task, false)}};
  EXPECT_EQ(listed(provider(), {"proc", "", "", "create"}), (Names{"fork:create"}));
}

TEST_F(DefinedProbesTest, ArgumentsAreTypedAndTranslated) {
  const ProbeArguments arguments = provider().arguments(named("create"));
  EXPECT_TRUE(arguments.known);
  EXPECT_EQ(arguments.types, (std::vector<TypeId>{task_pointer_, *kernel_.types().find("int")}));
  EXPECT_EQ(arguments.names, (Names{"task", "twice"}));
  ASSERT_EQ(arguments.translated.size(), 2u);
  EXPECT_EQ(arguments.translated[0].type, "psinfo_t *");
  EXPECT_EQ(arguments.translated[1].native, 1u);
}

TEST_F(DefinedProbesTest, FireWhereTheirConditionHolds) {
  ASSERT_TRUE(provider().enable(named("create")));
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

TEST_F(DefinedProbesTest, AValueIsTheFirstThatThisKernelHas) {
  ASSERT_TRUE(provider().enable(named("either")));
  ASSERT_EQ(points_.bound.size(), 1u);

  registers_.rdi = kernel_address(kTask).raw();
  EXPECT_EQ(points_.bound[0].binding.plan->value(1, moment()).value(), 101u) << "the pid";
}

TEST_F(DefinedProbesTest, AReturnHasItsResult) {
  ASSERT_TRUE(provider().enable(named("failure")));
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

TEST_F(DefinedProbesTest, EnablingTwiceBindsOnce) {
  const Probe start = named("start");
  EXPECT_FALSE(provider().is_enabled(start.id));
  ASSERT_TRUE(provider().enable(start));
  ASSERT_TRUE(provider().enable(start));
  EXPECT_TRUE(provider().is_enabled(start.id));
  EXPECT_EQ(points_.bound.size(), 1u);
  EXPECT_EQ(points_.bound[0].binding.filter, nullptr) << "it fires always";
  provider().note_disabled(start.id);
  EXPECT_FALSE(provider().is_enabled(start.id));
}

TEST_F(DefinedProbesTest, APlaceIsExaminedOnceForListingAndEnabling) {
  const Probe create = named("create");
  EXPECT_TRUE(refused(provider(), {"proc", "", "", "create"}).empty());
  EXPECT_TRUE(provider().by_id(create.id).value());
  ASSERT_TRUE(provider().enable(create));

  EXPECT_EQ(points_.examined, (std::map<std::uint64_t, unsigned>{{fork_.raw() + kNopSize, 1}}));
}

TEST_F(DefinedProbesTest, APlaceIsExaminedAgainOnceTheGuestMayHaveProbesThere) {
  const Probe create = named("create");
  ++points_.now;
  ASSERT_TRUE(provider().enable(create));

  EXPECT_EQ(points_.examined[fork_.raw() + kNopSize], 2u);
}

TEST_F(DefinedProbesTest, ACallThatWasSeenFromItsBeginningFiresAtItsEnd) {
  ASSERT_TRUE(provider().enable(named("call")));
  ASSERT_EQ(points_.bound.size(), 2u);
  const Binding &entry = points_.bound[0].binding, &end = points_.bound[1].binding;
  FilterValues values;
  registers_.rsp = 0xffff'8880'0000'0800;
  registers_.rdi = kernel_address(kTask).raw();
  registers_.rax = 7;

  EXPECT_FALSE(end.filter->fires(moment(), values)) << "nothing has begun";
  EXPECT_FALSE(entry.filter->fires(moment(), values)) << "a beginning is no firing";
  registers_.rsp += 64;
  EXPECT_FALSE(end.filter->fires(moment(), values)) << "another call";
  registers_.rsp -= 64;
  registers_.rdi = 0;
  ASSERT_TRUE(end.filter->fires(moment(), values));
  ArgumentMoment fired = moment();
  fired.filter_values = &values;
  EXPECT_EQ(end.plan->value(0, fired).value(), kernel_address(kTask).raw());
  EXPECT_EQ(end.plan->value(1, fired).value(), 101u);
  EXPECT_FALSE(end.filter->fires(moment(), values)) << "it has ended";
}

TEST_F(DefinedProbesTest, TimesAreThoseOfTheFiringsWhateverTheHostNeeds) {
  ASSERT_TRUE(provider().enable(named("slow")));
  ASSERT_EQ(points_.bound.size(), 2u);
  const Binding &entry = points_.bound[0].binding, &end = points_.bound[1].binding;
  FilterValues values;
  registers_.rsp = 0xffff'8880'0000'0800;
  ArgumentMoment at = moment();
  at.filter_values = &values;

  at.time = 1000;
  EXPECT_FALSE(entry.filter->fires(at, values));
  at.time = 1100;
  EXPECT_FALSE(end.filter->fires(at, values));
  at.time = 2000;
  EXPECT_FALSE(entry.filter->fires(at, values));
  at.time = 2101;
  ASSERT_TRUE(end.filter->fires(at, values));
  EXPECT_EQ(end.plan->value(0, at).value(), 101u);
}

TEST_F(DefinedProbesTest, ADefinitionThatIsNoneIsAnErrorWithItsPlace) {
  const auto libraries = std::make_shared<const std::vector<d::LibrarySource>>(
      std::vector<d::LibrarySource>{{"lib/bad.d", "provider p {\n\tprobe a() = nowhere;\n};\n"}});

  const auto read = read_defined_probes(libraries, kernel_, true);

  ASSERT_FALSE(read);
  EXPECT_TRUE(
      read.error().message.starts_with("failed to read probes of D's libraries: [D_PROV_PLACE] "
                                       "\"lib/bad.d\", line 2: a probe cannot "
                                       "stand on nowhere"))
      << read.error().message;
}

}  // namespace
}  // namespace ringside::cli
