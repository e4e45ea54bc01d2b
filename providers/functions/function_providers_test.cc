// fbt and syscall over a fake guest's text.
#include <gtest/gtest.h>

#include "providers/functions/fbt.h"
#include "providers/functions/syscall_provider.h"
#include "providers/testing/functions_for_tests.h"

namespace ringside::providers {
namespace {

constexpr std::uint64_t kCallTable = 0x180000;

TEST_F(FunctionProviders, FbtPublishesEntryAndReturnOfWhatReturns) {
  function("returns", kReturnsOne);
  function("panics", kNeverReturns);
  seal();
  FbtProvider fbt(text_, kernel_, points_);

  EXPECT_EQ(listed(fbt, {"fbt", "", "", ""}),
            (Names{"returns:entry", "returns:return", "panics:entry"}));
  EXPECT_EQ(listed(fbt, {"", "vmlinux", "ret*", "entry"}), (Names{"returns:entry"}));
  EXPECT_TRUE(listed(fbt, {"", "loop", "", ""}).empty());
  EXPECT_TRUE(listed(fbt, {"", "", "nothing", ""}).empty());
}

TEST_F(FunctionProviders, FbtTakesTheKernelsOfOtherSystemsForThisOne) {
  function("returns", kReturnsOne);
  seal();
  FbtProvider fbt(text_, kernel_, points_);

  for (const char* module : {"genunix", "unix", "kernel", "mach_kernel"}) {
    EXPECT_EQ(listed(fbt, {"fbt", module, "returns", "entry"}), (Names{"returns:entry"})) << module;
  }
  EXPECT_TRUE(listed(fbt, {"fbt", "genuni*", "returns", "entry"}).empty());
}

TEST_F(FunctionProviders, FbtPublishesEveryFunctionOfOneName) {
  function("twin", kReturnsOne);
  function("other", kReturnsOne);
  function("twin", kReturnsOne);
  seal();
  FbtProvider fbt(text_, kernel_, points_);

  EXPECT_EQ(listed(fbt, {"fbt", "", "twin", "entry"}).size(), 2u);
}

TEST_F(FunctionProviders, FbtPublishesTheCompilersFormsUnderBothNames) {
  function("kept.isra.0", kReturnsOne);
  function("kept.constprop.0", kReturnsOne);
  function("there", kReturnsOne);
  function("there.part.0", kReturnsOne);
  seal();
  FbtProvider fbt(text_, kernel_, points_);

  EXPECT_EQ(listed(fbt, {"fbt", "", "kept", "entry"}), (Names{"kept:entry", "kept:entry"}));
  EXPECT_EQ(listed(fbt, {"fbt", "", "kept.isra.0", "entry"}), (Names{"kept.isra.0:entry"}));
  EXPECT_EQ(listed(fbt, {"fbt", "", "there", "entry"}), (Names{"there:entry"}));
  EXPECT_EQ(listed(fbt, {"fbt", "", "k*t", "return"}), (Names{"kept:return", "kept:return"}));
  EXPECT_TRUE(listed(fbt, {"fbt", "loop", "kept", ""}).empty());
}

TEST_F(FunctionProviders, FbtHasNoFunctionTwiceForOneDescription) {
  function("kept.isra.0", kReturnsOne);
  seal();
  FbtProvider fbt(text_, kernel_, points_);

  for (const char* pattern : {"", "*", "kept*", "k*0"}) {
    EXPECT_EQ(listed(fbt, {"fbt", "", pattern, "entry"}), (Names{"kept.isra.0:entry"})) << pattern;
  }
}

TEST_F(FunctionProviders, FbtBindsASourcesNameWhereTheCompilersFormStands) {
  const GuestVirt at = function("kept.isra.0", kReturnsOne);
  seal();
  FbtProvider fbt(text_, kernel_, points_);
  fbt.set_first_id(500);
  const Probe probe = find(fbt, "kept", "entry");

  ASSERT_TRUE(fbt.enable(probe));

  ASSERT_EQ(points_.bound.size(), 1u);
  EXPECT_EQ(points_.bound[0].at.raw(), at.raw() + kNopSize);
  const auto again = fbt.by_id(probe.id);
  ASSERT_TRUE(again && *again);
  EXPECT_EQ((*again)->name.function, "kept");
  EXPECT_FALSE(fbt.arguments(probe).known);
  EXPECT_EQ(fbt.arguments(probe).why_unknown,
            "kept.isra.0 is what the compiler made of kept, with other parameters");
  EXPECT_EQ(fbt.detail(probe), fbt.arguments(probe).why_unknown);
}

TEST_F(FunctionProviders, FbtPublishesNoReturnWhenOneWayOutCannotBeTrapped) {
  const GuestVirt at = function("returns", kReturnsOne);
  seal();
  points_.refused.insert(at.raw() + kNopSize + 5);  // the ret
  FbtProvider fbt(text_, kernel_, points_);

  EXPECT_EQ(listed(fbt, {"fbt", "", "", ""}), (Names{"returns:entry"}));
}

TEST_F(FunctionProviders, APlaceIsExaminedOnceForListingAndEnabling) {
  const GuestVirt at = function("returns", kReturnsOne);
  seal();
  FbtProvider fbt(text_, kernel_, points_);

  const Probe entry = find(fbt, "returns", "entry"), leave = find(fbt, "returns", "return");
  EXPECT_TRUE(refused(fbt, {"fbt", "", "", ""}).empty());
  EXPECT_TRUE(fbt.by_id(entry.id).value());
  ASSERT_TRUE(fbt.enable(entry));
  ASSERT_TRUE(fbt.enable(leave));

  EXPECT_EQ(points_.examined, (std::map<std::uint64_t, unsigned>{{at.raw() + kNopSize, 1},
                                                                 {at.raw() + kNopSize + 5, 1}}));
}

TEST_F(FunctionProviders, APlaceIsExaminedAgainOnceTheGuestsKprobesAreOthers) {
  const GuestVirt at = function("returns", kReturnsOne);
  seal();
  FbtProvider fbt(text_, kernel_, points_);
  EXPECT_EQ(listed(fbt, {"fbt", "", "", "entry"}), (Names{"returns:entry"}));

  ++points_.now;
  points_.refused.insert(at.raw() + kNopSize);

  EXPECT_TRUE(listed(fbt, {"fbt", "", "", "entry"}).empty());
}

const std::string kUnknown =
    "bare has no ftrace site, and the kernel's types do not show it to be a function of C";

TEST_F(FunctionProviders, FbtTellsWhyAFunctionIsRefused) {
  const GuestVirt at = function("returns", kReturnsOne);
  function("panics", kNeverReturns);
  const GuestVirt bare = function("bare", kReturnsOne);
  const std::uint8_t no_site[] = {0x90, 0x90, 0x90, 0x90, 0x90};
  memory_.put(kText + (bare.raw() - at.raw()), no_site, sizeof no_site);
  seal();
  points_.refused.insert(at.raw() + kNopSize + 5);  // the ret
  FbtProvider fbt(text_, kernel_, points_);

  EXPECT_EQ(refused(fbt, {"fbt", "", "", ""}),
            (Names{"returns:return: the test says no", "panics:return: it never returns",
                   "bare:entry: " + kUnknown, "bare:return: " + kUnknown}));
  EXPECT_EQ(refused(fbt, {"fbt", "", "bare", "entry"}), (Names{"bare:entry: " + kUnknown}));
  EXPECT_TRUE(refused(fbt, {"fbt", "", "nothing", ""}).empty());
}

/// Functions without an ftrace site, in a kernel that tells which of them bear no kprobe.
class BareFunction : public FunctionProviders {
 protected:
  static constexpr std::uint64_t kHead = 0x180000, kEntry = 0x181000;

  BareFunction() {
    TypeGraph& types = kernel_.own_types();
    const TypeId word = *types.find("unsigned long");
    const Member members[] = {
        {"list", word, 0}, {"start_addr", word, 128}, {"end_addr", word, 192}};
    types.index(types.add_struct(TypeKind::Struct, "kprobe_blacklist_entry", 32, members));
    keep_from_kprobes(GuestVirt(1), GuestVirt(2));
  }
  void keep_from_kprobes(GuestVirt begin, GuestVirt end) {
    memory_.put64(kHead, kernel_address(kEntry).raw());
    memory_.put64(kEntry, kernel_address(kHead).raw());
    memory_.put64(kEntry + 16, begin.raw());
    memory_.put64(kEntry + 24, end.raw());
  }
  /// Without the nop, which the body has to make up for.
  GuestVirt bare(std::string_view name, std::vector<std::uint8_t> body) {
    const GuestVirt at = function(name, {});
    body.resize(64, 0xcc);
    memory_.put(kText + (at.raw() - kernel_address(kText).raw()), body.data(), body.size());
    return at;
  }
  void know(std::string_view name) {
    TypeGraph& types = kernel_.own_types();
    const auto prototype = types.add_function(*types.find("int"), {}, false);
    kernel_.prototypes.emplace_back(name, prototype);
  }
  void seal_all() {
    data("kprobe_blacklist", kHead);
    seal();
  }
};

TEST_F(BareFunction, OfCHasProbesAtItsFirstInstructionAndItsWaysOut) {
  const GuestVirt at = bare("bare", kReturnsOne);
  know("bare");
  seal_all();
  FbtProvider fbt(text_, kernel_, points_);
  const Probe entry = find(fbt, "bare", "entry"), leave = find(fbt, "bare", "return");

  ASSERT_TRUE(fbt.enable(entry));
  ASSERT_TRUE(fbt.enable(leave));

  ASSERT_EQ(points_.bound.size(), 2u);
  EXPECT_EQ(points_.bound[0].at, at);
  EXPECT_EQ(points_.bound[1].at.raw(), at.raw() + 5);
  EXPECT_EQ(fbt.detail(entry), "no ftrace site: at its first instruction");
  EXPECT_EQ(fbt.detail(leave), "no ftrace site: at its ways out");
}

TEST_F(BareFunction, KeepsWhatIndirectCallsLandOn) {
  const GuestVirt at = bare("bare", {0xf3, 0x0f, 0x1e, 0xfa, 0xb8, 1, 0, 0, 0, 0xc3});
  know("bare");
  seal_all();
  FbtProvider fbt(text_, kernel_, points_);

  ASSERT_TRUE(fbt.enable(find(fbt, "bare", "entry")));

  EXPECT_EQ(points_.bound[0].at.raw(), at.raw() + 4);
}

TEST_F(BareFunction, OfAnUnknownKindOrKeptFromKprobesIsRefused) {
  bare("bare", kReturnsOne);
  kernel_.prototypes.emplace_back("bare", kernel_.own_types().add_function({}, {}, false));
  const GuestVirt kept = bare("kept", kReturnsOne);
  bare("parted.cold", kReturnsOne);
  know("kept");
  know("parted.cold");
  keep_from_kprobes(kept, GuestVirt(kept.raw() + 64));
  seal_all();
  FbtProvider fbt(text_, kernel_, points_);

  EXPECT_EQ(refused(fbt, {"fbt", "", "", "entry"}),
            (Names{"bare:entry: " + kUnknown,
                   "kept:entry: kept has no ftrace site, and the kernel keeps its kprobes from it",
                   "parted.cold:entry: parted.cold has no ftrace site, and is no function of its "
                   "own: its function jumps to it"}));
}

TEST_F(BareFunction, ThatTheKernelHasFreedIsRefused) {
  const GuestVirt init = bare("init", kReturnsOne);
  know("init");
  auto& table = kernel_.symbols_to_fill();
  functions_.push_back({kernel_address(kHead), 0, table.intern("kprobe_blacklist"), 'D', 0});
  table.add_module({"vmlinux", kernel_address(kText), init.offset_from(kernel_address(kText)), 0},
                   functions_);
  table.seal();
  FbtProvider fbt(text_, kernel_, points_);

  EXPECT_EQ(refused(fbt, {"fbt", "", "", ""}),
            (Names{"init:entry: init has no ftrace site, and is not in the kernel's text",
                   "init:return: init has no ftrace site, and is not in the kernel's text"}));
}

TEST_F(BareFunction, OfAFormIsKnownByItsSource) {
  bare("changed.isra.0", kReturnsOne);
  know("changed");
  seal_all();
  FbtProvider fbt(text_, kernel_, points_);

  EXPECT_EQ(listed(fbt, {"fbt", "", "changed", "entry"}), (Names{"changed:entry"}));
}

TEST_F(BareFunction, IsRefusedWhereTheKernelDoesNotSayWhichBearNoKprobe) {
  bare("bare", kReturnsOne);
  know("bare");
  seal();
  FbtProvider fbt(text_, kernel_, points_);

  EXPECT_EQ(
      refused(fbt, {"fbt", "", "", "entry"}),
      (Names{"bare:entry: bare has no ftrace site, and the kernel does not say which functions "
             "may have no kprobe (CONFIG_KPROBES)"}));
}

TEST_F(BareFunction, StaysGoodWhenTheKernelsTypesAreGone) {
  bare("bare", kReturnsOne);
  know("bare");
  seal_all();
  FbtProvider fbt(text_, kernel_, points_);
  const Probe entry = find(fbt, "bare", "entry");
  ASSERT_TRUE(fbt.enable(entry));
  fbt.note_disabled(entry.id);

  kernel_.prototypes.clear();

  EXPECT_TRUE(fbt.enable(entry));
}

TEST_F(FunctionProviders, FbtBindsEntryBehindTheNopAndReturnAtTheRet) {
  const GuestVirt at = function("returns", kReturnsOne);
  seal();
  FbtProvider fbt(text_, kernel_, points_);
  const Probe entry = find(fbt, "returns", "entry");
  const Probe leave = find(fbt, "returns", "return");

  ASSERT_TRUE(fbt.enable(entry));
  ASSERT_TRUE(fbt.enable(leave));
  ASSERT_TRUE(fbt.enable(leave));

  ASSERT_EQ(points_.bound.size(), 2u) << "enabling twice binds once";
  EXPECT_EQ(points_.bound[0].at.raw(), at.raw() + kNopSize);
  EXPECT_EQ(*points_.bound[0].binding.plan, kFunctionEntryArguments);
  EXPECT_EQ(points_.bound[1].at.raw(), at.raw() + kNopSize + 5);
  EXPECT_EQ(points_.bound[1].binding.site, kNopSize + 5);
  EXPECT_EQ(*points_.bound[1].binding.plan, kFunctionReturnArguments);
}

TEST_F(FunctionProviders, FbtIdsLeadBackToTheirProbes) {
  function("first", kReturnsOne);
  function("second", kReturnsOne);
  seal();
  FbtProvider fbt(text_, kernel_, points_);
  fbt.set_first_id(500);
  const Probe probe = find(fbt, "second", "return");

  const auto again = fbt.by_id(probe.id);

  EXPECT_EQ(probe.id.value, 503u);
  ASSERT_TRUE(again && *again);
  EXPECT_EQ((*again)->name, probe.name);
  EXPECT_FALSE(fbt.by_id({499})->has_value());
  EXPECT_FALSE(fbt.by_id({504})->has_value());
}

TEST_F(FunctionProviders, FbtTypesComeFromThePrototype) {
  function("typed", kReturnsOne);
  seal();
  TypeGraph& types = kernel_.own_types();
  const TypeId number = *types.find("int"), size = *types.find("long");
  const Parameter parameters[] = {{"count", size}};
  kernel_.prototypes = {{"typed", types.add_function(size, parameters, false)}};
  FbtProvider fbt(text_, kernel_, points_);

  const ProbeArguments entry = fbt.arguments(find(fbt, "typed", "entry"));
  const ProbeArguments leave = fbt.arguments(find(fbt, "typed", "return"));

  EXPECT_TRUE(entry.known);
  EXPECT_EQ(entry.types, (std::vector<TypeId>{size}));
  EXPECT_EQ(entry.names, (Names{"count"}));
  EXPECT_EQ(leave.types, (std::vector<TypeId>{number, size}));
}

/// Enables a probe; the plan that it was bound with.
class TypedFunctions : public FunctionProviders {
 protected:
  const ArgumentPlan& plan_of(Provider& provider, const std::string& function,
                              const std::string& name) {
    EXPECT_TRUE(provider.enable(find(provider, function, name)));
    return *points_.bound.back().binding.plan;
  }
  TypeGraph& types() { return kernel_.own_types(); }
};

TEST_F(TypedFunctions, ArgumentsAreAsWideAsTheirTypes) {
  function("returns", kReturnsOne);
  seal();
  const TypeId number = *types().find("int"), flag = *types().find("unsigned char");
  const TypeId mode = types().add_enum("mode", 4, false, {});
  const Type alias{.kind = TypeKind::Typedef, .name = "pid", .target = number};
  const Parameter parameters[] = {
      {"count", *types().find("long")}, {"pid", types().add(alias)}, {"mode", mode}, {"f", flag}};
  kernel_.prototypes = {{"returns", types().add_function(number, parameters, false)}};
  FbtProvider fbt(text_, kernel_, points_);

  const ArgumentPlan& entry = plan_of(fbt, "returns", "entry");
  const auto whole = kFunctionEntryArguments.arguments;
  EXPECT_EQ(entry.arguments[0], whole[0]);
  EXPECT_EQ(entry.arguments[1], whole[1].narrowed(4, true));
  EXPECT_EQ(entry.arguments[2], whole[2].narrowed(4, false));
  EXPECT_EQ(entry.arguments[3], whole[3].narrowed(1, false));
  EXPECT_EQ(entry.arguments[4], whole[4]) << "nobody knows what type it has";
  const ArgumentPlan& leave = plan_of(fbt, "returns", "return");
  EXPECT_EQ(leave.arguments[1], kFunctionReturnArguments.arguments[1].narrowed(4, true));
}

TEST_F(TypedFunctions, AReturnOfNothingOrOfAWholeWordIsTheRegister) {
  function("whole", kReturnsOne);
  function("nothing", kReturnsOne);
  function("untyped", kReturnsOne);
  seal();
  kernel_.prototypes = {{"whole", types().add_function(*types().find("long"), {}, false)},
                        {"nothing", types().add_function(TypeId(), {}, false)}};
  FbtProvider fbt(text_, kernel_, points_);

  for (const char* name : {"whole", "nothing", "untyped"}) {
    EXPECT_EQ(plan_of(fbt, name, "return").arguments[1], kFunctionReturnArguments.arguments[1])
        << name;
  }
}

TEST_F(TypedFunctions, WhatWasKnownOfAProbeHoldsWhenItIsEnabledAgain) {
  function("returns", kReturnsOne);
  seal();
  kernel_.prototypes = {{"returns", types().add_function(*types().find("int"), {}, false)}};
  FbtProvider fbt(text_, kernel_, points_);
  const Probe leave = find(fbt, "returns", "return");
  ASSERT_TRUE(fbt.enable(leave));
  const ArgumentPlan before = *points_.bound[0].binding.plan;
  fbt.note_disabled(leave.id);

  kernel_.prototypes.clear();  // set-up is over

  ASSERT_TRUE(fbt.enable(leave));
  EXPECT_EQ(*points_.bound[1].binding.plan, before);
  EXPECT_NE(before, kFunctionReturnArguments);
}

/// Functions of 64 bytes each, one after the other, that end in jumps to others.
class TailCalling : public FunctionProviders {
 protected:
  /// A jump from the first instruction of the function that is added next to the one with this
  /// number.
  std::vector<std::uint8_t> jump_to(std::size_t number) const {
    const auto from = static_cast<std::int64_t>(functions_.size() * 64 + kNopSize + 5);
    const auto distance = static_cast<std::uint32_t>(static_cast<std::int64_t>(number * 64) - from);
    std::vector<std::uint8_t> jump = {0xe9};
    for (unsigned shift = 0; shift < 32; shift += 8) {
      jump.push_back(static_cast<std::uint8_t>(distance >> shift));
    }
    return jump;
  }
  struct Lead {
    std::uint64_t at;
    Role role;
    std::uint32_t site;
    bool operator==(const Lead&) const = default;
  };
  /// Of the function's return probe, in the order of binding.
  std::vector<Lead> leads(FbtProvider& fbt, const std::string& function) {
    points_.bound.clear();
    EXPECT_TRUE(fbt.enable(find(fbt, function, "return")));
    std::vector<Lead> all;
    for (const auto& bound : points_.bound) {
      all.push_back(
          {bound.at.raw() - kernel_address(kText).raw(), bound.binding.role, bound.binding.site});
    }
    return all;
  }
  static constexpr std::uint32_t kBody = kNopSize, kRetOffset = kNopSize + 5;
};

TEST_F(TailCalling, AReturnWaitsAtTheJumpAndEndsAtTheReturnsOfItsTarget) {
  function("caller", jump_to(1));
  function("callee", kReturnsOne);
  seal();
  FbtProvider fbt(text_, kernel_, points_);

  EXPECT_EQ(leads(fbt, "caller"), (std::vector<Lead>{{kBody, Role::Waits, kBody},
                                                     {64 + kRetOffset, Role::Ends, kRetOffset}}));
  const Binding& jump = points_.bound[0].binding;
  EXPECT_EQ(*jump.plan, kFunctionReturnArguments);
  ASSERT_NE(jump.tail_call, nullptr);
  EXPECT_EQ(jump.tail_call->from, kernel_address(kText));
  EXPECT_EQ(jump.tail_call->through, (std::vector{kernel_address(kText + 64)}));
  EXPECT_EQ(points_.bound[1].binding.probe, jump.probe);
  EXPECT_EQ(fbt.detail(find(fbt, "caller", "return")),
            "jumps to vmlinux`callee at +0x5, fires where that returns");
}

TEST_F(TailCalling, AChainEndsAtTheReturnsOfItsLast) {
  function("first", jump_to(1));
  function("second", jump_to(2));
  function("third", kReturnsOne);
  seal();
  FbtProvider fbt(text_, kernel_, points_);

  EXPECT_EQ(leads(fbt, "first"), (std::vector<Lead>{{kBody, Role::Waits, kBody},
                                                    {128 + kRetOffset, Role::Ends, kRetOffset}}));
  EXPECT_EQ(points_.bound[0].binding.tail_call->through.size(), 2u);
}

TEST_F(TailCalling, FunctionsThatJumpToEachOtherEndSomewhere) {
  // je to the other one, else ret
  function("ping", {0x0f, 0x84, 0x35, 0, 0, 0, 0xc3});
  function("pong", {0x0f, 0x84, 0xb5, 0xff, 0xff, 0xff, 0xc3});
  seal();
  FbtProvider fbt(text_, kernel_, points_);

  constexpr std::uint32_t kRet = kBody + 6;
  EXPECT_EQ(leads(fbt, "ping"), (std::vector<Lead>{{kBody, Role::Waits, kBody},
                                                   {kRet, Role::Fires, kRet},
                                                   {kRet, Role::Ends, kRet},
                                                   {64 + kRet, Role::Ends, kRet}}));
}

TEST_F(TailCalling, AJumpThatCannotBeFollowedIsTheReturnWithoutAValue) {
  function("indirect", {0xff, 0xe0});  // jmp *%rax
  function("to_no_returns", jump_to(2));
  function("no_returns", kNeverReturns);
  function("to_the_middle", {0xeb, 0x3b});  // to the next one's second instruction
  function("middle", kReturnsOne);
  function("to_refused", jump_to(6));
  const GuestVirt refused = function("refused", kReturnsOne);
  seal();
  points_.refused.insert(refused.raw() + kRetOffset);
  FbtProvider fbt(text_, kernel_, points_);

  for (const char* name : {"indirect", "to_no_returns", "to_the_middle", "to_refused"}) {
    const auto all = leads(fbt, name);
    ASSERT_EQ(all.size(), 1u) << name;
    EXPECT_EQ(all[0].role, Role::Fires) << name;
    EXPECT_EQ(*points_.bound[0].binding.plan, kFunctionExitArguments) << name;
  }
  EXPECT_EQ(fbt.detail(find(fbt, "indirect", "return")),
            "jumps to an address in a register at +0x5, fires there, where arg1 is not known");
}

TEST_F(TailCalling, WhatIsJumpedToAndLeavesBlindlyEndsTheWaitWithoutAValue) {
  function("caller", jump_to(1));
  function("callee", {0xff, 0xe0});
  seal();
  FbtProvider fbt(text_, kernel_, points_);

  EXPECT_EQ(leads(fbt, "caller"), (std::vector<Lead>{{kBody, Role::Waits, kBody},
                                                     {64 + kBody, Role::EndsUnknown, kBody}}));
}

TEST_F(TailCalling, AChainThatIsTooLongIsFollowedAsFarAsItGoes) {
  for (std::size_t n = 0; n < 40; ++n) function("f" + std::to_string(n), jump_to(n + 1));
  function("f40", kReturnsOne);
  seal();
  FbtProvider fbt(text_, kernel_, points_);

  const auto all = leads(fbt, "f0");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].role, Role::EndsUnknown);
  EXPECT_LE(points_.bound[0].binding.tail_call->through.size(), 32u);
}

TEST_F(TailCalling, WhatHalfOfTheKernelCallsIsFollowedForItsValueOnly) {
  function("frees", jump_to(2));
  function("gets", jump_to(2));
  function("shared", kReturnsOne);
  data("__ksymtab_shared", 0x190000);
  seal();
  TypeGraph& types = kernel_.own_types();
  kernel_.prototypes = {{"frees", types.add_function(TypeId(), {}, false)},
                        {"gets", types.add_function(*types.find("long"), {}, false)}};
  FbtProvider fbt(text_, kernel_, points_);

  EXPECT_EQ(leads(fbt, "frees"), (std::vector<Lead>{{kBody, Role::Fires, kBody}}));
  EXPECT_EQ(leads(fbt, "gets").front().role, Role::Waits);
  fbt.note_disabled(find(fbt, "frees", "return").id);
  kernel_.prototypes.clear();  // set-up is over
  EXPECT_EQ(leads(fbt, "frees").front().role, Role::Fires);
}

TEST_F(TailCalling, AListingLooksAtNoFunctionButItsOwn) {
  function("caller", jump_to(1));
  const GuestVirt callee = function("callee", kReturnsOne);
  seal();
  FbtProvider fbt(text_, kernel_, points_);

  EXPECT_EQ(listed(fbt, {"fbt", "", "caller", "return"}), (Names{"caller:return"}));

  EXPECT_FALSE(points_.examined.contains(callee.raw() + kRetOffset));
}

class SystemCalls : public FunctionProviders {
 protected:
  SystemCalls() {
    read_ = function("__x64_sys_read", kReturnsOne);
    // jmp to ksys_write: leaves without a ret
    const std::uint8_t to_ksys = 64 * 2 - (kNopSize + 5);
    write_ = function("__x64_sys_write", {0xe9, to_ksys, 0, 0, 0});
    function("filler", kReturnsOne);
    function("ksys_write", kReturnsOne);
    exit_ = function("__x64_sys_exit", kNeverReturns);
    function("__x64_sys_unlisted", kReturnsOne);
    function("__x64_sys_ni_syscall", kReturnsOne);
    // call rax; mov [rbx + 0x50], rax; call the function before; mov [rbx + 0x50], rax; ret
    const std::uint8_t to_none = static_cast<std::uint8_t>(-64 - static_cast<int>(kNopSize) - 11);
    path_ = function("do_syscall_64", {0xff, 0xd0, 0x48, 0x89, 0x43, 0x50, 0xe8, to_none, 0xff,
                                       0xff, 0xff, 0x48, 0x89, 0x43, 0x50, 0xc3});
    // jmp to ksys_write
    const GuestVirt execveat = function("__x64_sys_execveat", {0xe9, 0xb6, 0xfe, 0xff, 0xff});
    fork_ = function("__x64_sys_fork", kReturnsOne);
    tail_ = function("schedule_tail", kReturnsOne);
    data("sys_call_table", kCallTable);
    data("after_table", kCallTable + 5 * 8);
    memory_.put64(kCallTable, read_.raw());
    memory_.put64(kCallTable + 8, write_.raw());
    memory_.put64(kCallTable + 16, exit_.raw());
    memory_.put64(kCallTable + 24, execveat.raw());
    memory_.put64(kCallTable + 32, fork_.raw());
    seal();
  }
  GuestVirt read_, write_, exit_, path_, fork_, tail_;
};

TEST_F(SystemCalls, AreThoseOfTheTableWithReturnsWhereTheyReturn) {
  SyscallProvider syscall(text_, kernel_, points_);

  EXPECT_EQ(listed(syscall, {"syscall", "", "", ""}),
            (Names{"read:entry", "read:return", "write:entry", "write:return", "exit:entry",
                   "execveat:entry", "fork:entry", "fork:return"}))
      << "execveat comes back under execve's number";
}

TEST_F(SystemCalls, ArgumentsAreAsWideAsTheFunctionThatTakesThemHasThem) {
  TypeGraph& types = kernel_.own_types();
  const Parameter parameters[] = {{"fd", *types.find("unsigned int")}, {"n", *types.find("long")}};
  kernel_.prototypes = {{"ksys_write", types.add_function(*types.find("long"), parameters, false)}};
  SyscallProvider syscall(text_, kernel_, points_);

  ASSERT_TRUE(syscall.enable(find(syscall, "read", "entry")));
  ASSERT_TRUE(syscall.enable(find(syscall, "write", "entry")));

  const ArgumentPlan& read = *points_.bound[0].binding.plan;
  const ArgumentPlan& write = *points_.bound[1].binding.plan;
  EXPECT_EQ(write.arguments[0], read.arguments[0].narrowed(4, false));
  EXPECT_EQ(write.arguments[1], read.arguments[1]);
}

TEST_F(SystemCalls, TellWhyTheyAreRefused) {
  SyscallProvider syscall(text_, kernel_, points_);

  EXPECT_EQ(refused(syscall, {"syscall", "", "exit", ""}),
            (Names{"exit:return: it never returns"}));
}

TEST_F(SystemCalls, ReturnStandsOnTheRetsOfACallThatOnlyReturns) {
  SyscallProvider syscall(text_, kernel_, points_);

  ASSERT_TRUE(syscall.enable(find(syscall, "read", "return")));

  ASSERT_EQ(points_.bound.size(), 1u);
  EXPECT_EQ(points_.bound[0].at.raw(), read_.raw() + kNopSize + 5);
  ArgumentPlan plan = *points_.bound[0].binding.plan;
  constexpr std::size_t kSaved = (16 << 10) - sizeof(arch::SavedRegisters);
  EXPECT_EQ(plan.kept.on_stack[0], kSaved + 112);
  EXPECT_EQ(plan.kept.on_stack[3], kSaved + 56);
  EXPECT_FALSE(plan.kept.until_success);
  plan.kept = {};
  EXPECT_EQ(plan, kSystemCallReturnArguments);
  EXPECT_TRUE(points_.bound[0].binding.at_function_edge);
  EXPECT_EQ(points_.bound[0].binding.number, kNoNumber);
}

TEST_F(SystemCalls, ReturnOfACallThatJumpsOnStandsOnTheCommonPathForItsNumber) {
  SyscallProvider syscall(text_, kernel_, points_);

  ASSERT_TRUE(syscall.enable(find(syscall, "write", "return")));

  ASSERT_EQ(points_.bound.size(), 1u);
  EXPECT_EQ(points_.bound[0].at.raw(), path_.raw() + kNopSize + 2);
  EXPECT_EQ(points_.bound[0].policy, SitePolicy::AllowNoinstr);
  EXPECT_EQ(points_.bound[0].binding.number, 1u);
  EXPECT_EQ(points_.bound[0].binding.plan->system_call_number,
            ArgumentSource::word(&Registers::rbx, 120));
  EXPECT_TRUE(points_.bound[0].binding.plan->kept.any());
  EXPECT_FALSE(points_.bound[0].binding.at_function_edge);
}

TEST(SystemCall, KeepsItsArgumentsUnlessItLoadsOtherRegisters) {
  EXPECT_EQ(keeps_arguments("openat"), KeepsArguments::Yes);
  EXPECT_EQ(keeps_arguments("execve"), KeepsArguments::UntilSuccess);
  EXPECT_EQ(keeps_arguments("execveat"), KeepsArguments::UntilSuccess);
  EXPECT_EQ(keeps_arguments("rt_sigreturn"), KeepsArguments::No);
  EXPECT_EQ(keeps_arguments("clone3"), KeepsArguments::No);
}

TEST_F(SystemCalls, ReturnOfAForkAlsoStandsWhereTheChildBegins) {
  SyscallProvider syscall(text_, kernel_, points_);

  ASSERT_TRUE(syscall.enable(find(syscall, "fork", "return")));

  ASSERT_EQ(points_.bound.size(), 2u);
  EXPECT_EQ(points_.bound[0].at.raw(), fork_.raw() + kNopSize + 5);
  EXPECT_EQ(points_.bound[1].at.raw(), tail_.raw() + kNopSize + 5);
  EXPECT_EQ(points_.bound[1].binding.number, 4u);
  for (const auto& one : points_.bound) EXPECT_FALSE(one.binding.plan->kept.any());
  // By the registers at the top of the stack, whatever the vCPU's own are.
  constexpr std::uint64_t kStack = 0x40000;
  constexpr std::uint64_t kSaved = kStack + (16 << 10) - sizeof(arch::SavedRegisters);
  memory_.put64(kSaved + 80, 0);
  memory_.put64(kSaved + 120, 57);
  Registers registers;
  registers.rax = 99;
  registers.rsp = kernel_address(kStack + 0x3f00).raw();
  const ArgumentMoment moment{.registers = registers, .kernel = text_};
  const ArgumentPlan& plan = *points_.bound[1].binding.plan;
  EXPECT_EQ(plan.value(0, moment), 0u);
  EXPECT_EQ(plan.system_call_result.value(moment), 0u);
  EXPECT_EQ(plan.system_call_number.value(moment), 57u);
}

TEST_F(SystemCalls, ReturnsOnTheCommonPathNeedToUnderstandIt) {
  const std::uint8_t other[] = {0x90, 0x90, 0x90, 0x90};
  memory_.put(kText + (path_.raw() - read_.raw()) + kNopSize + 2, other, sizeof other);
  SyscallProvider syscall(text_, kernel_, points_);

  EXPECT_EQ(listed(syscall, {"syscall", "", "write", ""}), (Names{"write:entry"}));
}

/// openat as the kernel's own tracepoints describe it; its function is part of another one.
class DescribedSystemCall : public FunctionProviders {
 protected:
  static constexpr std::uint64_t kMetadata = 0x180000, kTypes = 0x180100, kArgs = 0x180200,
                                 kTexts = 0x181000;
  DescribedSystemCall() {
    function("__x64_sys_openat", kReturnsOne);
    data("__syscall_meta__openat", kMetadata);
    seal();
    auto& types = kernel_.own_types();
    const TypeId word = *types.find("unsigned long"), number = *types.find("int");
    const std::vector<Member> members{{"name", word, 0},
                                      {"syscall_nr", number, 64},
                                      {"nb_args", number, 96},
                                      {"types", word, 128},
                                      {"args", word, 192}};
    types.index(types.add_struct(TypeKind::Struct, "syscall_metadata", 64, members));
    // As BTF has it: a char of its own, beside D's, which the name finds.
    const TypeId character =
        types.add({.kind = TypeKind::Integer, .is_char = true, .name = "char", .size = 1});
    const_char_ =
        types.pointer_to(types.add({.kind = TypeKind::Const, .name = {}, .target = character}));
    strings_ = types.pointer_to(const_char_);
    stat_ = types.add_struct(TypeKind::Struct, "stat", 64, {});
    types.index(stat_);
    stat_ = types.pointer_to(stat_);
    memory_.put32(kMetadata + 12, 4);
    memory_.put64(kMetadata + 16, kernel_address(kTypes).raw());
    memory_.put64(kMetadata + 24, kernel_address(kArgs).raw());
    describe(0, "int", "dfd");
    describe(1, "const char *", "filename");
    describe(2, "struct stat *", "buf");
    describe(3, "const char *const *", "argv");
  }
  void describe(unsigned n, std::string_view type, std::string_view name) {
    put_text(kTypes + n * 8, kTexts + n * 512, type);
    put_text(kArgs + n * 8, kTexts + n * 512 + 256, name);
  }
  void put_text(std::uint64_t pointer, std::uint64_t at, std::string_view text) {
    memory_.put64(pointer, kernel_address(at).raw());
    memory_.put(at, std::string(text).c_str(), text.size() + 1);
  }
  ProbeArguments arguments() {
    SyscallProvider syscall(text_, kernel_, points_);
    return syscall.arguments(find(syscall, "openat", "entry"));
  }
  TypeId const_char_, stat_, strings_;
};

TEST_F(DescribedSystemCall, HasTheArgumentsThatItsTracepointHas) {
  const ProbeArguments found = arguments();

  ASSERT_TRUE(found.known);
  EXPECT_EQ(found.names, (Names{"dfd", "filename", "buf", "argv"}));
  EXPECT_EQ(found.types,
            (std::vector<TypeId>{*kernel_.types().find("int"), const_char_, stat_, strings_}));
}

TEST_F(DescribedSystemCall, HasNoneWhereTheDescriptionMakesNoSense) {
  const auto is_unknown = [this] { return !arguments().known; };

  describe(1, "const char *", "filename");
  EXPECT_TRUE(is_unknown()) << "no text of a declaration";
  describe(1, std::string(200, 'c'), "filename");
  EXPECT_TRUE(is_unknown()) << "too long";
  describe(1, "struct nobody_knows *", "filename");
  EXPECT_TRUE(is_unknown());
  describe(1, "void", "filename");
  EXPECT_TRUE(is_unknown());
  describe(1, "const char *", "filename");
  memory_.put64(kTypes, 0x1234);
  EXPECT_TRUE(is_unknown()) << "a pointer that leads nowhere";
  memory_.put32(kMetadata + 12, 0xffff'ffff);
  EXPECT_TRUE(is_unknown()) << "more than any call has";
}

/// A module that the guest loads while it is traced: one function, then another one.
class LateModules : public FunctionProviders {
 protected:
  /// Loads it, at the next free place.
  std::optional<guest_linux::SymbolTable::Late> load() {
    const GuestVirt base = function("late_open", kReturnsOne);
    function("late_shut", kReturnsOne);
    const std::vector<guest_linux::Symbol> symbols(functions_.end() - 2, functions_.end());
    return kernel_.symbols_to_fill().put_late({"late", base, 128, 0}, symbols,
                                              guest_linux::SymbolTable::Accept::Any);
  }
  static std::vector<Probe> probes_in(Provider& provider, std::uint16_t module,
                                      const dif::ProbeDescription& pattern) {
    std::vector<Probe> found;
    EXPECT_TRUE(
        provider.provide_in(module, pattern, [&](const Probe& probe) { found.push_back(probe); }));
    return found;
  }
};

TEST_F(LateModules, HaveProbesOfTheirOwnOnceTheyAreAdmitted) {
  function("steady", kReturnsOne);
  seal();
  FbtProvider fbt(text_, kernel_, points_);
  fbt.set_first_id(1);
  const auto late = load();
  ASSERT_TRUE(late);
  EXPECT_TRUE(probes_in(fbt, late->module, {}).empty()) << "not admitted";

  ASSERT_TRUE(fbt.admit(late->module));

  EXPECT_EQ(listed(fbt, {}), (Names{"steady:entry", "steady:return"})) << "nobody asked for more";
  const auto all = probes_in(fbt, late->module, {"fbt", "late", "", ""});
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].name.to_string(), "fbt:late:late_open:entry");
  EXPECT_EQ(all[3].name.to_string(), "fbt:late:late_shut:return");
  EXPECT_EQ(probes_in(fbt, late->module, {"fbt", "", "*_shut", "entry"}).size(), 1u);
  EXPECT_TRUE(probes_in(fbt, late->module, {"fbt", "vmlinux", "", ""}).empty());
  const auto again = fbt.by_id(all[2].id);
  ASSERT_TRUE(again && *again);
  EXPECT_EQ((*again)->name.to_string(), "fbt:late:late_shut:entry");
}

TEST_F(LateModules, ThatComeAgainHaveTheSameProbesSomewhereElse) {
  function("steady", kReturnsOne);
  seal();
  FbtProvider fbt(text_, kernel_, points_);
  fbt.set_first_id(1);
  const auto late = load();
  ASSERT_TRUE(late && fbt.admit(late->module));
  const auto before = probes_in(fbt, late->module, {"fbt", "late", "", "entry"});
  ASSERT_EQ(before.size(), 2u);
  ASSERT_TRUE(fbt.enable(before[1]));

  const auto again = load();

  ASSERT_TRUE(again && again->before);
  ASSERT_TRUE(fbt.admit(again->module));
  EXPECT_EQ(points_.forgotten, std::vector{before[1].id});
  EXPECT_FALSE(fbt.is_enabled(before[1].id));
  const auto after = probes_in(fbt, again->module, {"fbt", "late", "", "entry"});
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[1].id, before[1].id);
  ASSERT_TRUE(fbt.enable(after[1]));
  ASSERT_EQ(points_.bound.size(), 2u);
  EXPECT_EQ(points_.bound[1].at.raw() - points_.bound[0].at.raw(), 128u);
}

}  // namespace
}  // namespace ringside::providers
