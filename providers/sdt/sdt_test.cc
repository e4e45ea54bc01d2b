// The provider `sdt` over a fake guest's text: one function with one tracepoint.
#include "providers/sdt/sdt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "disasm/code_for_tests.h"
#include "providers/testing/fake_guest.h"
#include "providers/testing/recording_points.h"
#include "vmm/page_walk.h"

namespace ringside::providers {
namespace {

using disasm::code;
using guest_linux::Kernel;
using Names = std::vector<std::string>;

// Guest-physical.
constexpr std::uint64_t kSdtText = 0x100000, kTable = 0x110000, kTracepoint = 0x111000,
                        kName = 0x112000, kObject = 0x113000, kTheStack = 0x114000;
// Of the text: the instruction before the site, the site, the one after it, the block.
constexpr std::uint64_t kBefore = 0x05, kSite = 0x08, kAfter = 0x0a, kTarget = 0x10, kCall = 0x18;

class TracedKernel final : public guest_linux::InertKernel {
 public:
  TracedKernel() : InertKernel(GuestPhys(kRoot)) {}
  std::span<const PatchedSite> patched_sites() const override { return sites; }
  TypeGraph& own_types() { return types_; }
  guest_linux::SymbolTable& symbols_to_fill() { return symbols_; }
  std::vector<PatchedSite> sites;
};

/// f: ftrace nop; mov rbx, rdi; the site; mov rax, rbx; ret.
/// Its block: mov esi, [rbx + 4]; mov edx, -7; call; jmp after.
class Sdt : public testing::Test {
 protected:
  Sdt() {
    const std::vector<std::byte> padding(0x80, std::byte{0xcc});
    memory_.put(kSdtText, padding.data(), padding.size());
    put(0x00, code({0x0f, 0x1f, 0x44, 0, 0, 0x48, 0x89, 0xfb, 0x66, 0x90, 0x48, 0x89, 0xd8, 0xc3}));
    put(kTarget,
        code({0x8b, 0x73, 0x04, 0xba, 0xf9, 0xff, 0xff, 0xff, 0xe8, 0, 0, 0, 0, 0xeb, 0xeb}));
    kernel_.sites = {{text(kSite), 2, "jump label", text(kTarget), kernel_address(kTracepoint + 8)},
                     {text(kCall), 5, "static call", {}, GuestVirt(0x1000)}};
    kernel_.symbols_to_fill().add_module(
        {"vmlinux", text(0), 0x1000, 0},
        {{text(0), 0, "f", 't'},
         {text(0x40), 0, "g", 't'},
         {text(0x50), 0, "f.cold", 't'},
         {text(0x60), 0, "end", 't'},
         {kernel_address(kTable), 0, "__start___tracepoints_ptrs", 'd'},
         {kernel_address(kTable + 4), 0, "__stop___tracepoints_ptrs", 'd'}});
    kernel_.symbols_to_fill().seal();
    memory_.put32(kTable, kTracepoint - kTable);
    memory_.put64(kTracepoint, kernel_address(kName).raw());
    memory_.put64(kTracepoint + 16, 0x1000);
    memory_.put(kName, "f_called", 9);
    memory_.put32(kObject + 4, 0xfffffff0);
    add_types();
  }

  void add_types() {
    auto& types = kernel_.own_types();
    const TypeId word = *types.find("unsigned long"), number = *types.find("unsigned int"),
                 sign = *types.find("int");
    const std::vector<Member> members{{"name", word, 0},
                                      {"key", word, 64},
                                      {"static_call_key", word, 128},
                                      {"regfunc", word, 192},
                                      {"funcs", word, 256}};
    types.index(types.add_struct(TypeKind::Struct, "tracepoint", 64, members));
    const std::vector<Parameter> parameters{
        {"__data", types.pointer_to({})}, {"size", number}, {"change", sign}};
    const TypeId pointer = types.pointer_to(types.add_function({}, parameters, false));
    types.index(
        types.add({.kind = TypeKind::Typedef, .name = "btf_trace_f_called", .target = pointer}));
  }
  void put(std::uint64_t offset, const std::vector<std::byte>& bytes) {
    memory_.put(kSdtText + offset, bytes.data(), bytes.size());
  }
  static GuestVirt text(std::uint64_t offset) { return kernel_address(kSdtText + offset); }

  SdtProvider& provider() {
    if (!provider_) {
      provider_.emplace(text_, kernel_, points_);
      provider_->set_first_id(1000);
    }
    return *provider_;
  }
  Names listed(const dif::ProbeDescription& pattern) {
    Names names;
    EXPECT_TRUE(provider().provide(
        pattern, [&](const Probe& probe) { names.push_back(probe.name.to_string()); }));
    return names;
  }
  std::string refusal() {
    std::string why;
    EXPECT_TRUE(provider().refusals({"sdt", "", "", ""},
                                    [&](const Refusal& refusal) { why = refusal.reason; }));
    return why;
  }
  /// The tracepoint takes a pointer, and is called made.
  void take_a_pointer() {
    auto& types = kernel_.own_types();
    const std::vector<Parameter> parameters{{"__data", types.pointer_to({})},
                                            {"made", types.pointer_to(*types.find("int"))}};
    const TypeId pointer = types.pointer_to(types.add_function({}, parameters, false));
    types.index(
        types.add({.kind = TypeKind::Typedef, .name = "btf_trace_made", .target = pointer}));
    memory_.put(kName, "made", 5);
  }
  /// g: ftrace nop; another site of the tracepoint; ret. Its block: jmp to the ret.
  void add_asking_site() {
    put(0x40, code({0x0f, 0x1f, 0x44, 0, 0, 0x66, 0x90, 0xc3, 0xeb, 0xfd}));
    kernel_.sites.push_back(
        {text(0x45), 2, "jump label", text(0x48), kernel_address(kTracepoint + 8)});
  }
  Probe the_probe() { return {{1000}, {"sdt", "vmlinux", "f", "f_called"}}; }
  void enable() { ASSERT_TRUE(provider().enable(the_probe())); }

  /// Null: nothing stands there.
  const Binding* bound_at(GuestVirt address) const {
    const auto found = std::ranges::find(points_.bound, address, &RecordingPoints::Bound::at);
    return found != points_.bound.end() ? &found->binding : nullptr;
  }

  struct Arrived {
    bool fires = false;
    FilterValues out;
  };
  /// A vCPU comes to the place with `rbx` and, before the site, `rdi` leading to the object.
  Arrived arrive(std::uint64_t offset, std::uint64_t stack = kTheStack) {
    const Binding* const binding = bound_at(text(offset));
    EXPECT_NE(binding, nullptr);
    if (binding == nullptr) return {};
    Registers registers;
    registers.rbx = offset == kBefore ? 0 : kernel_address(kObject).raw();
    registers.rdi = kernel_address(kObject).raw();
    registers.rsp = kernel_address(stack).raw();
    Arrived arrived;
    arrived.fires = binding->filter->fires({registers, text_}, arrived.out);
    return arrived;
  }
  void switch_on() { put(kSite, code({0xeb, 0x06})); }
  void switch_off() { put(kSite, code({0x66, 0x90})); }
  void be_switching() { put(kSite, code({0xcc})); }

  FakeMemory memory_;
  TracedKernel kernel_;
  RecordingPoints points_;
  vmm::PageTableReader text_{memory_.memory(), kernel_.table()};
  std::optional<SdtProvider> provider_;
};

TEST_F(Sdt, ARecordHasTheSiteAndWhatTheBlockLooksAt) {
  using Base = dif::RecordAddress::Base;
  take_a_pointer();
  put(kTarget, code({0x48, 0x8b, 0x73, 0x08, 0x48, 0x83, 0xc6, 0x10, 0xe8, 0, 0, 0, 0, 0xeb,
                     0xeb}));  // mov rsi, [rbx + 8]; add rsi, 16; call; jmp after
  ASSERT_TRUE(provider().enable({{1000}, {"sdt", "vmlinux", "f", "made"}}));

  const RecordedFilter recorded = bound_at(text(kAfter))->filter->recorded();

  ASSERT_EQ(recorded.codes.size(), 1u);
  const RecordedCode& all = recorded.codes[0];
  EXPECT_EQ(all.plan.arguments[0], ArgumentSource::in(&Registers::rbx));
  const std::vector<dif::RecordLoad> loads{
      {{Base::Constant, 0, static_cast<std::int64_t>(text(kSite).raw())}, 1, false},
      {{Base::Argument, 0, 8}, 8, false}};
  EXPECT_EQ(all.needs.loads, loads);
  EXPECT_FALSE(all.needs.obstacle);
  EXPECT_EQ(recorded.words[0].address, (dif::RecordAddress{Base::Load, 1, 16}));
  EXPECT_FALSE(recorded.words[1].address);
  EXPECT_EQ(bound_at(text(kTarget))->filter->recorded().codes[0].needs.loads.size(), 1u)
      << "there it is on";
}

TEST_F(Sdt, PublishesForWhoNamesIt) {
  EXPECT_EQ(listed({"sdt", "", "", "f_*"}), (Names{"sdt:vmlinux:f:f_called"}));
  EXPECT_TRUE(listed({"", "", "", ""}).empty());
  EXPECT_TRUE(listed({"sdt", "", "", "h"}).empty());
  EXPECT_EQ(provider().detail(the_probe()), "vmlinux`f+0x8: after");
}

TEST_F(Sdt, ANameInThePlaceOfTheFunctionIsToldWhereItBelongs) {
  const auto reason = [this](const dif::ProbeDescription& pattern) {
    std::string why;
    EXPECT_TRUE(provider().refusals(pattern, [&](const Refusal& one) { why = one.reason; }));
    return why;
  };

  EXPECT_NE(reason({"sdt", "vmlinux", "f_called", ""}).find("fourth field"), std::string::npos);
  EXPECT_NE(reason({"sdt", "vmlinux", "f_called", ""}).find("sdt:vmlinux::f_called"),
            std::string::npos);
  EXPECT_EQ(reason({"sdt", "ext4", "f_called", ""}), "");
  EXPECT_EQ(reason({"sdt", "vmlinux", "f_called", "f_called"}), "");
}

TEST_F(Sdt, ASiteThatOnlyAsksWhetherTheTracepointIsOnNeedsNoProbe) {
  add_asking_site();

  EXPECT_EQ(listed({"sdt", "", "", ""}), (Names{"sdt:vmlinux::f_called"}));
  EXPECT_EQ(provider().detail(the_probe()),
            "vmlinux`f+0x8: after; vmlinux`g+0x5: only asks whether the tracepoint is on");
  ASSERT_TRUE(provider().enable(the_probe()));
  EXPECT_EQ(bound_at(text(0x47)), nullptr);
  EXPECT_EQ(provider().bound_sites("f_called")->size(), 2u);
}

TEST_F(Sdt, ASiteMayBeAnEventWhereTheTracersAreAlsoCalledOtherwise) {
  add_asking_site();
  put(kBefore, code({0xeb, 0x09, 0x90}));  // jmp to the block, whether the tracepoint is on or not

  EXPECT_TRUE(listed({"sdt", "", "", ""}).empty());
  EXPECT_EQ(provider().detail(the_probe()).find("only asks"), std::string::npos);
}

TEST_F(Sdt, ASiteThatCannotBeProbedIsAGapOfTheOthers) {
  Names gaps;
  const auto add = [&](const Refusal& gap) {
    gaps.push_back(gap.name.to_string() + " " + gap.reason);
  };
  provider().gaps({"sdt", "", "", ""}, add);
  EXPECT_TRUE(gaps.empty());

  // g: ftrace nop; another site; ret. Its block: rdtsc, whose value the host does not have; call.
  put(0x40, code({0x0f, 0x1f, 0x44, 0, 0, 0x66, 0x90, 0xc3, 0x0f, 0x31, 0xe8, 0, 0, 0, 0}));
  kernel_.sites.push_back(
      {text(0x45), 2, "jump label", text(0x48), kernel_address(kTracepoint + 8)});
  kernel_.sites.push_back({text(0x4a), 5, "static call", {}, GuestVirt(0x1000)});
  provider_.reset();
  provider().gaps({"sdt", "", "", "f_called"}, add);
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps[0].find("sdt:vmlinux::f_called in vmlinux`g+0x5: its arguments need"), 0u)
      << gaps[0];
  EXPECT_EQ(listed({"sdt", "", "", ""}), (Names{"sdt:vmlinux::f_called"}));

  EXPECT_FALSE(provider().bound_sites("f_called")) << "others need all of them";
  EXPECT_EQ(provider().bound_sites("f_called", std::array<std::string, 2>{"h", "g"})->size(), 2u)
      << "or know what they do not";

  kernel_.symbols_to_fill().add_module(
      {"vmlinux", text(0), 0x1000, 0},
      {{text(0x60), 0, "down_read", 'T'}, {text(0x70), 0, "next", 'T'}});
  kernel_.symbols_to_fill().seal();
  put(0x60, code({0xe8, 0xdb, 0xff, 0xff, 0xff, 0xc3}));  // call g; ret
  const std::array<std::string, 1> callers = {"down_"};
  ASSERT_TRUE(provider().bound_sites("f_called", {}, callers)) << "g is of no interest";
  EXPECT_EQ(provider().bound_sites("f_called", {}, callers)->size(), 2u);
}

TEST_F(Sdt, ArgumentsHaveTheTypesOfTheTracepoint) {
  listed({"sdt", "", "", ""});

  const ProbeArguments arguments = provider().arguments(the_probe());

  EXPECT_TRUE(arguments.known);
  EXPECT_EQ(arguments.names, (Names{"size", "change"}));
}

TEST_F(Sdt, BehindANopTheBlockIsEvaluated) {
  enable();

  const Arrived arrived = arrive(kAfter);

  EXPECT_TRUE(arrived.fires);
  EXPECT_FALSE(arrived.out.fault);
  EXPECT_EQ(arrived.out.words[0], 0xfffffff0u) << "unsigned, of 32 bits";
  EXPECT_EQ(arrived.out.words[1], static_cast<std::uint64_t>(-7)) << "signed";
}

TEST_F(Sdt, BehindAJumpTheTargetHasFired) {
  enable();
  switch_on();

  EXPECT_TRUE(arrive(kTarget).fires);
  EXPECT_FALSE(arrive(kAfter).fires);
}

TEST_F(Sdt, WhileItIsSwitchedWhoCameByTheTargetFiresOnce) {
  enable();
  be_switching();

  EXPECT_TRUE(arrive(kTarget, 0x1000).fires);
  EXPECT_TRUE(arrive(kAfter, 0x2000).fires) << "another one, who passed the nop";
  EXPECT_FALSE(arrive(kAfter, 0x1000).fires);
  EXPECT_TRUE(arrive(kAfter, 0x1000).fires) << "it came again, past the nop";
}

TEST_F(Sdt, StandsBeforeTheSiteWhereAColdPartThatOnlyAFaultLeadsToComesBehindIt) {
  put(0x50, code({0x74, 0x02, 0xeb, 0xb6, 0xc3}));  // je over: jmp after; ret
  kernel_.sites.push_back({.address = text(kTarget), .length = 1, .what = "exception table"});
  kernel_.sites.back().fixup = text(0x50);
  std::ranges::sort(kernel_.sites, {}, &Kernel::PatchedSite::address);

  enable();

  EXPECT_EQ(bound_at(text(kAfter)), nullptr);
  EXPECT_NE(bound_at(text(kBefore)), nullptr);
}

TEST_F(Sdt, StandsBeforeTheSiteWhereOtherCodeComesBehindIt) {
  put(0x0d, code({0x74, 0xfb, 0xc3}));  // je after

  enable();

  ASSERT_EQ(bound_at(text(kAfter)), nullptr);
  const Arrived arrived = arrive(kBefore);
  EXPECT_TRUE(arrived.fires);
  EXPECT_EQ(arrived.out.words[0], 0xfffffff0u) << "mov rbx, rdi is evaluated, too";
  EXPECT_FALSE(arrive(kTarget).fires) << "it was switched on since, and has fired";
  EXPECT_TRUE(arrive(kTarget).fires);
  switch_on();
  EXPECT_FALSE(arrive(kBefore).fires);
  EXPECT_TRUE(arrive(kTarget).fires);
}

TEST_F(Sdt, WhoComesByAnotherJumpDoesNotFire) {
  put(0x0d, code({0x74, 0xfb, 0xc3}));  // je after
  points_.refused = {text(kBefore).raw()};

  enable();

  const Binding* const edge = bound_at(text(0x0d));
  ASSERT_NE(edge, nullptr);
  EXPECT_EQ(edge->condition, 4) << "only when it is taken";
  EXPECT_FALSE(arrive(0x0d, 0x1000).fires);
  EXPECT_FALSE(arrive(kAfter, 0x1000).fires);
  EXPECT_TRUE(arrive(kAfter, 0x1000).fires);
}

TEST_F(Sdt, ABlockThatIsLeftByACondition) {
  put(kTarget, code({0x39, 0xc0, 0x74, 0xf6, 0x66, 0x66, 0x66, 0x90}));  // cmp eax, eax; je after
  enable();

  EXPECT_FALSE(arrive(kAfter).fires);
  EXPECT_FALSE(arrive(kTarget).fires);
}

TEST_F(Sdt, ArgumentsThatCannotBeReadAreAFault) {
  enable();
  put(kTarget, code({0x8b, 0x73, 0x04}));
  const Binding* const binding = bound_at(text(kAfter));
  Registers registers;
  registers.rbx = 0x1234'0000'0000'0000;
  FilterValues out;

  EXPECT_TRUE(binding->filter->fires({registers, text_}, out)) << "it is a firing all the same";

  EXPECT_TRUE(out.fault);
  EXPECT_FALSE(binding->plan->value(0, {registers, text_, 0, {}, &out}));
}

TEST_F(Sdt, APointerToWhatTheBlockHasWrittenIsAFault) {
  take_a_pointer();
  put(kTarget, code({0x50, 0x48, 0x89, 0xe6, 0x90, 0x90, 0x90, 0x90}));  // push rax; mov rsi, rsp
  enable();

  const Arrived arrived = arrive(kAfter);

  EXPECT_TRUE(arrived.fires);
  ASSERT_TRUE(arrived.out.fault);
  EXPECT_EQ(arrived.out.fault->address, kernel_address(kTheStack - 8).raw());
}

/// Before the site: mov [rdi], rax, which is 4 KiB below the stack pointer. The block passes rdi.
class SdtWrites : public Sdt {
 protected:
  SdtWrites() {
    take_a_pointer();
    put(kBefore, code({0x48, 0x89, 0x07}));
    put(0x0d, code({0x74, 0xfb, 0xc3}));  // je after
    put(kTarget, code({0x48, 0x89, 0xfe, 0x90, 0x90, 0x90, 0x90, 0x90}));
  }
};

TEST_F(SdtWrites, BesideItsStackIsWhatTheVcpuWritesToo) {
  enable();

  const Arrived arrived = arrive(kBefore);

  EXPECT_FALSE(arrived.out.fault);
  EXPECT_EQ(arrived.out.words[0], kernel_address(kObject).raw());
}

TEST_F(SdtWrites, OnItsStackIsAFaultHoweverLargeStacksAre) {
  kernel_.symbols_to_fill().add_module({"vmlinux", kernel_address(0x200000), 0x10000, 0},
                                       {{kernel_address(0x200000), 0, "__start_init_stack", 'D'},
                                        {kernel_address(0x208000), 0, "__end_init_stack", 'D'}});
  kernel_.symbols_to_fill().seal();
  enable();

  EXPECT_TRUE(arrive(kBefore).out.fault);
}

TEST_F(Sdt, WhatCannotBeEvaluatedIsRefusedWithTheInstruction) {
  put(kTarget, code({0x0f, 0x31, 0x90}));  // rdtsc

  EXPECT_TRUE(listed({"sdt", "", "", ""}).empty());
  EXPECT_EQ(refusal(), "its arguments need \"rdtsc\" at vmlinux`f+0x10");
}

TEST_F(Sdt, ASmallFunctionThatTheBlockCallsIsEvaluated) {
  put(kTarget, code({0xe8, 0x2b, 0, 0, 0, 0x89, 0xc6, 0x90}));  // call g; mov esi, eax
  put(0x40, code({0x8b, 0x43, 0x04, 0xc3}));                    // mov eax, [rbx + 4]; ret
  enable();

  const Arrived arrived = arrive(kAfter);

  EXPECT_TRUE(arrived.fires);
  EXPECT_FALSE(arrived.out.fault);
  EXPECT_EQ(arrived.out.words[0], 0xfffffff0u);
}

TEST_F(Sdt, ACallOfWhatCannotBeEvaluatedIsRefused) {
  put(kTarget, code({0xe8, 0x2b, 0, 0, 0, 0x90, 0x90, 0x90}));
  put(0x40, code({0x0f, 0x31, 0xc3}));

  EXPECT_EQ(refusal(), "its arguments need \"rdtsc\" at vmlinux`g");
}

/// A kernel that preempts itself comes by one of these calls wherever a tracepoint has no tracers;
/// older ones tell RCU by the other where an idle CPU may come by.
TEST_F(Sdt, ACallThatOnlyTakesTimeIsPassed) {
  for (const char* const name : {"preempt_schedule_notrace_thunk", "ct_irq_enter_irqson"}) {
    kernel_.symbols_to_fill().add_module({"vmlinux", text(0), 0x1000, 0},
                                         {{text(0x40), 0, name, 'T'}});
    kernel_.symbols_to_fill().seal();
    put(kTarget, code({0xe8, 0x2b, 0, 0, 0, 0x8b, 0x73, 0x04}));  // call it; mov esi, [rbx + 4]
    put(0x40, code({0x9c, 0x0f, 0x31, 0xc3}));                    // pushfq; rdtsc; ret
    provider_.reset();
    points_.bound.clear();
    enable();

    const Arrived arrived = arrive(kAfter);

    EXPECT_TRUE(arrived.fires) << name;
    EXPECT_FALSE(arrived.out.fault) << name;
    EXPECT_EQ(arrived.out.words[0], 0xfffffff0u) << name;
  }
}

TEST_F(Sdt, AFunctionThatCallsItselfForEverIsAFault) {
  put(kTarget, code({0xe8, 0x2b, 0, 0, 0, 0x90, 0x90, 0x90}));
  put(0x40, code({0xe8, 0xfb, 0xff, 0xff, 0xff, 0xc3}));
  enable();

  EXPECT_TRUE(arrive(kAfter).out.fault);
}

TEST_F(Sdt, WhereASecondLabelOfItsOwnLiesInTheBlockThatOnesTargetFires) {
  // The first label leads to 0x0e, where there is a second one, which leads to the block.
  put(0x0d, code({0xc3, 0x66, 0x90}));
  kernel_.sites[0].target = text(0x0e);
  auto inner = kernel_.sites[0];
  inner.address = text(0x0e);
  inner.target = text(kTarget);
  kernel_.sites.insert(kernel_.sites.begin() + 1, inner);
  put(0x10, code({0x8b, 0x73, 0x04}));

  EXPECT_EQ(listed({"sdt", "", "", ""}).size(), 1u);
  enable();

  EXPECT_TRUE(arrive(kAfter).fires);
  switch_on();
  EXPECT_FALSE(arrive(kAfter).fires);
  EXPECT_TRUE(arrive(kTarget).fires);
  EXPECT_EQ(points_.bound.size(), 2u);
}

TEST_F(Sdt, ABlockThatNeverCallsIsRefused) {
  put(kTarget, code({0xeb, 0xf8, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90}));  // jmp after

  EXPECT_EQ(refusal(), "the code after it does not call the tracepoint's functions");
}

TEST_F(Sdt, ABlockThatOthersEnterIsRefused) {
  put(0x0d, code({0x74, 0x01, 0xc3}));  // je target

  EXPECT_EQ(refusal(), "other code comes to the code after it, too");
}

TEST_F(Sdt, WherePlacesAreRefusedTheReasonIsTheirs) {
  points_.refused = {text(kAfter).raw(), text(kBefore).raw()};

  EXPECT_EQ(refusal(), "the test says no");
}

TEST_F(Sdt, OneThatHasToBeRegisteredIsRefused) {
  memory_.put64(kTracepoint + 24, text(0).raw());

  EXPECT_NE(refusal().find("registered in the guest"), std::string::npos);
}

TEST_F(Sdt, OneWithoutSitesIsRefused) {
  kernel_.sites.clear();

  EXPECT_EQ(refusal(), "the kernel has no code that comes by it");
}

TEST_F(Sdt, WithoutTypesArgumentsAreWords) {
  memory_.put(kName, "unknown", 8);

  EXPECT_EQ(listed({"sdt", "", "", ""}).size(), 1u);
  EXPECT_FALSE(provider().arguments(the_probe()).known);
  EXPECT_EQ(provider().arguments(the_probe()).why_unknown,
            "this kernel's BTF has no btf_trace_unknown");
}

TEST_F(Sdt, AFunctionThatDoesNotDecodeIsRefused) {
  put(0x05, code({0x06}));

  EXPECT_NE(refusal().find("does not decode"), std::string::npos);
}

TEST(StackPointerSet, ForgetTheOldestOfTooMany) {
  StackPointerSet marks;
  for (std::uint64_t stack = 1; stack <= 40; ++stack) marks.put(stack);

  EXPECT_TRUE(marks.take(40));
  EXPECT_FALSE(marks.take(40));
  EXPECT_TRUE(marks.take(20));
  EXPECT_FALSE(marks.take(1));
}

}  // namespace
}  // namespace ringside::providers
