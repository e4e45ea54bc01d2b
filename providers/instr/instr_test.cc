// The provider `instr` over a fake guest's text.
#include "providers/instr/instr.h"

#include <gtest/gtest.h>

#include <map>

#include "disasm/code_for_tests.h"
#include "providers/testing/fake_guest.h"
#include "providers/testing/recording_points.h"
#include "vmm/page_walk.h"

namespace ringside::providers {
namespace {

using disasm::code;
using Names = std::vector<std::string>;

constexpr std::uint64_t kInstrText = 0x100000;  // guest-physical

/// f: ftrace nop, push rbp, call g, cmp [rdi], eax, jnz, pop rbp, ret; also called alias.
/// g: ftrace nop, xor eax, eax, ret. bare: no ftrace site.
class Instr : public testing::Test {
 protected:
  Instr() {
    put(0x00, code({0x0f, 0x1f, 0x44, 0, 0, 0x55, 0xe8, 0x35, 0, 0, 0, 0x39, 0x07, 0x75, 0xf7, 0x5d,
                    0xc3}));
    put(0x40, code({0x0f, 0x1f, 0x44, 0, 0, 0x31, 0xc0, 0xc3}));
    put(0x80, code({0x31, 0xc0, 0xc3}));
    add({{0x00, "f", 't'},
         {0x00, "alias", 't'},
         {0x40, "g", 't'},
         {0x80, "bare", 't'},
         {0xc0, "end", 't'},
         {0x1000, "numbers", 'd'}});
  }
  struct Name {
    std::uint64_t offset;
    const char* name;
    char type;
  };
  void put(std::uint64_t offset, const std::vector<std::byte>& bytes) {
    const std::vector<std::byte> padding(0x40, std::byte{0xcc});
    memory_.put(kInstrText + offset, padding.data(), padding.size());
    memory_.put(kInstrText + offset, bytes.data(), bytes.size());
  }
  void add(std::initializer_list<Name> names) {
    auto& table = kernel_.symbols_to_fill();
    std::vector<guest_linux::Symbol> symbols;
    for (const Name& one : names) {
      symbols.push_back({at(one.offset), 0, one.name, one.type, 0});
    }
    table.add_module({"vmlinux", at(0), 0x1000, 0}, symbols);
    table.seal();
  }
  static GuestVirt at(std::uint64_t offset) { return kernel_address(kInstrText + offset); }

  InstrProvider& provider() {
    if (!provider_) {
      provider_.emplace(text_, kernel_, points_);
      provider_->set_first_id(1000);
    }
    return *provider_;
  }
  Names listed(const dif::ProbeDescription& pattern) {
    Names names;
    EXPECT_TRUE(provider().provide(pattern, [&](const Probe& probe) {
      names.push_back(probe.name.function + ":" + probe.name.name);
    }));
    return names;
  }
  Names refused(const dif::ProbeDescription& pattern) {
    Names names;
    EXPECT_TRUE(provider().refusals(pattern, [&](const Refusal& refusal) {
      names.push_back(refusal.name.function + ":" + refusal.name.name + ": " + refusal.reason);
    }));
    return names;
  }
  Probe find(const std::string& function, const std::string& name) {
    Probe found;
    EXPECT_TRUE(provider().provide({"instr", "", function, name},
                                   [&](const Probe& probe) { found = probe; }));
    EXPECT_EQ(found.name.name, name) << "not published";
    return found;
  }

  FakeMemory memory_;
  FakeKernel kernel_;
  RecordingPoints points_;
  vmm::PageTableReader text_{memory_.memory(), kernel_.table()};
  std::optional<InstrProvider> provider_;
};

TEST_F(Instr, PublishesWhatADescriptionOfItsOwnAsksFor) {
  EXPECT_EQ(
      listed({"instr", "vmlinux", "f", ""}),
      (Names{"f:other-0", "f:store-5", "f:call-6", "f:load-b", "f:jcc-d", "f:load-f", "f:ret-10"}));
  EXPECT_EQ(listed({"instr", "", "", "ret-*"}), (Names{"f:ret-10", "g:ret-7"}));
  EXPECT_EQ(listed({"instr", "", "[fg]", "call-6"}), (Names{"f:call-6"}));
  EXPECT_TRUE(listed({"instr", "loop", "f", ""}).empty());
  EXPECT_TRUE(listed({"instr", "", "f", "jmp-6"}).empty());
}

TEST_F(Instr, IsSilentForWhoAsksForAllProviders) {
  EXPECT_TRUE(listed({"", "", "f", ""}).empty());
  EXPECT_TRUE(listed({"*", "", "f", ""}).empty());
  EXPECT_TRUE(refused({"", "", "bare", ""}).empty());
  EXPECT_TRUE(points_.examined.empty());
}

TEST_F(Instr, ExaminesOnlyWhatIsAskedForAndThatOnce) {
  listed({"instr", "", "f", "call-6"});
  refused({"instr", "", "f", "call-6"});
  ASSERT_TRUE(provider().enable(find("f", "call-6")));

  EXPECT_EQ(points_.examined, (std::map<std::uint64_t, unsigned>{{at(6).raw(), 1}}));

  ++points_.now;
  listed({"instr", "", "f", "call-6"});
  EXPECT_EQ(points_.examined[at(6).raw()], 2u) << "the guest's kprobes may be others now";
}

TEST_F(Instr, KnowsAFunctionByEachOfItsNames) {
  EXPECT_EQ(listed({"instr", "", "alias", "call-6"}), (Names{"alias:call-6"}));
  EXPECT_EQ(find("alias", "call-6").id, find("f", "call-6").id) << "it is one probe";
}

TEST_F(Instr, IdsFollowTheAddressAndLeadBack) {
  const Probe probe = find("g", "ret-7");

  EXPECT_EQ(probe.id.value, 1000u + 0x47);
  const auto again = provider().by_id(probe.id);
  ASSERT_TRUE(again && *again);
  EXPECT_EQ((*again)->name, probe.name);
  EXPECT_FALSE(provider().by_id({1000 + 0x46})->has_value()) << "inside an instruction";
  EXPECT_FALSE(provider().by_id({999})->has_value());
  EXPECT_FALSE(provider().by_id({1000 + 0x1000})->has_value());
}

TEST_F(Instr, BindsTheInstructionWithItsArguments) {
  ASSERT_TRUE(provider().enable(find("f", "call-6")));
  ASSERT_TRUE(provider().enable(find("f", "call-6")));

  ASSERT_EQ(points_.bound.size(), 1u) << "enabling twice binds once";
  const auto& [where, policy, binding] = points_.bound.front();
  EXPECT_EQ(where, at(6));
  Registers registers;
  registers.rip = at(6).raw();
  const ArgumentMoment moment{registers, text_, binding.site};
  EXPECT_EQ(binding.plan->value(0, moment), at(6).raw());
  EXPECT_EQ(binding.plan->value(1, moment), at(0x40).raw());
}

TEST_F(Instr, TheFtraceSitesProbeStandsBehindIt) {
  ASSERT_TRUE(provider().enable(find("f", "other-0")));

  const auto& [where, policy, binding] = points_.bound.front();
  EXPECT_EQ(where, at(5));
  Registers registers;
  registers.rip = at(5).raw();
  EXPECT_EQ(binding.plan->value(0, {registers, text_, binding.site}), at(0).raw());
}

TEST_F(Instr, TheFtraceSiteHasNoProbeWhereALoopComesBackBehindIt) {
  put(0x40, code({0x0f, 0x1f, 0x44, 0, 0, 0x31, 0xc0, 0x75, 0xfc, 0xc3}));

  EXPECT_EQ(listed({"instr", "", "g", "other-*"}), (Names{"g:other-5"}));
  const auto why = refused({"instr", "", "g", "other-0"});
  ASSERT_EQ(why.size(), 1u);
  EXPECT_NE(why.front().find("begins with a loop"), std::string::npos) << why.front();
}

TEST_F(Instr, SaysWhyAPlaceHasNoProbe) {
  points_.refused.insert(at(6).raw());

  EXPECT_EQ(refused({"instr", "", "f", "call-6"}), (Names{"f:call-6: the test says no"}));
  EXPECT_EQ(refused({"instr", "", "f", "call-7"}),
            (Names{"f:call-7: it lies inside the instruction call-6"}));
  EXPECT_EQ(refused({"instr", "", "f", "jmp-b"}),
            (Names{"f:jmp-b: the instruction there is load-b"}));
  EXPECT_EQ(refused({"instr", "", "f", "ret-100"}),
            (Names{"f:ret-100: f has no instruction at 0x100"}));
  EXPECT_EQ(refused({"instr", "", "f", "ret-20"}),
            (Names{"f:ret-20: f has no instruction at 0x20"}))
      << "padding";
  EXPECT_EQ(refused({"instr", "", "numbers", "load-0"}),
            (Names{"numbers:load-0: numbers is data"}));
  EXPECT_EQ(refused({"instr", "", "bare", "ret-2"}), (Names{"bare:: bare has no ftrace site"}));
  EXPECT_TRUE(refused({"instr", "", "nothing", "ret-2"}).empty());
  for (const char* name :
       {"entry", "mov-0", "call-", "call-xyz", "call-6 ", "call-fffffffffffffffff"}) {
    const auto why = refused({"instr", "", "f", name});
    ASSERT_EQ(why.size(), 1u) << name;
    EXPECT_NE(why.front().find("CLASS-OFFSET"), std::string::npos) << why.front();
  }
}

TEST_F(Instr, ShowsTheInstructionAndWhereItLeads) {
  EXPECT_EQ(provider().detail(find("f", "store-5")), "push rbp");
  EXPECT_EQ(provider().detail(find("f", "call-6")), "call 0xffffffff80100040 <vmlinux`g>");
}

TEST_F(Instr, NamesTheArgumentsOfEachClass) {
  EXPECT_EQ(provider().arguments(find("f", "call-6")).names, (Names{"address", "target"}));
  EXPECT_EQ(provider().arguments(find("f", "load-b")).names, (Names{"address", "operand", "size"}));
  EXPECT_EQ(provider().arguments(find("f", "jcc-d")).names, (Names{"address", "taken", "target"}));
  EXPECT_EQ(provider().arguments(find("f", "other-0")).types.size(), 1u);
}

/// Modules that the guest loads while it is traced, each of one function like g.
class LateInstr : public Instr {
 protected:
  std::optional<guest_linux::SymbolTable::Late> load(const char* module, const char* function,
                                                     std::uint64_t offset) {
    put(offset, code({0x0f, 0x1f, 0x44, 0, 0, 0x31, 0xc0, 0xc3}));
    return kernel_.symbols_to_fill().put_late({module, at(offset), 0x40, 0},
                                              {{at(offset), 0, function, 't', 0}},
                                              guest_linux::SymbolTable::Accept::Any);
  }
  std::vector<Probe> probes_in(std::uint16_t module, const dif::ProbeDescription& pattern) {
    std::vector<Probe> found;
    EXPECT_TRUE(provider().provide_in(module, pattern,
                                      [&](const Probe& probe) { found.push_back(probe); }));
    return found;
  }
};

TEST_F(LateInstr, HaveProbesOnceTheyAreAdmitted) {
  const dif::ProbeDescription wanted{"instr", "late", "", "ret-*"};
  (void)provider();
  const auto late = load("late", "late_open", 0x2000);
  ASSERT_TRUE(late);
  EXPECT_TRUE(probes_in(late->module, wanted).empty()) << "not admitted";

  ASSERT_TRUE(provider().admit(late->module));

  const auto found = probes_in(late->module, wanted);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name.to_string(), "instr:late:late_open:ret-7");
  EXPECT_TRUE(probes_in(late->module, {"instr", "vmlinux", "", ""}).empty());
  EXPECT_TRUE(probes_in(late->module, {"", "late", "", ""}).empty()) << "of all providers";
  const auto again = provider().by_id(found[0].id);
  ASSERT_TRUE(again && *again);
  EXPECT_EQ((*again)->name.to_string(), "instr:late:late_open:ret-7");
}

TEST_F(LateInstr, ThatComeAgainHaveTheSameProbesSomewhereElse) {
  const dif::ProbeDescription wanted{"instr", "late", "", "ret-*"};
  (void)provider();
  const auto late = load("late", "late_open", 0x2000);
  ASSERT_TRUE(late && provider().admit(late->module));
  const Probe before = probes_in(late->module, wanted).at(0);
  ASSERT_TRUE(provider().enable(before));
  // Another one takes its place.
  const auto other = load("other", "other_open", 0x2000);
  ASSERT_TRUE(other && provider().admit(other->module));
  EXPECT_EQ(points_.forgotten, std::vector{before.id});
  EXPECT_FALSE(provider().is_enabled(before.id));
  EXPECT_FALSE(*provider().by_id(before.id)) << "its text is gone";

  const auto again = load("late", "late_open", 0x2080);

  ASSERT_TRUE(again && provider().admit(again->module));
  EXPECT_EQ(again->module, late->module);
  const auto after = probes_in(again->module, wanted);
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].id, before.id);
  ASSERT_TRUE(provider().enable(after[0]));
  ASSERT_EQ(points_.bound.size(), 2u);
  EXPECT_EQ(points_.bound[1].at, at(0x2087));
  EXPECT_EQ(probes_in(other->module, {"instr", "other", "", "ret-*"}).size(), 1u);
}

TEST_F(LateInstr, MoreThanThereAreIdsForIsRefused) {
  (void)provider();
  const auto late = kernel_.symbols_to_fill().put_late(
      {"large", at(0x2000), InstrProvider::kLateBytes + 1, 0},
      {{at(0x2000), 0, "large_open", 't', 0}}, guest_linux::SymbolTable::Accept::Any);
  ASSERT_TRUE(late);

  const auto admitted = provider().admit(late->module);

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().code, ErrorCode::Limit);
}

/// A function that is longer than the limit has instructions.
class MoreThanTheLimit : public Instr {
 protected:
  static constexpr std::size_t kBytes = InstrProvider::kMostProbes + 100;
  MoreThanTheLimit() {
    std::vector<std::byte> bytes(kBytes, std::byte{0x50});  // push rax
    const auto nop = code({0x0f, 0x1f, 0x44, 0, 0});
    std::ranges::copy(nop, bytes.begin());
    bytes.back() = std::byte{0xc3};
    memory_.put(kLong, bytes.data(), bytes.size());
    auto& table = kernel_.symbols_to_fill();
    table.add_module({"long", kernel_address(kLong), kBytes, 0},
                     {{kernel_address(kLong), 0, "endless", 't', 0}});
    table.seal();
  }
  static constexpr std::uint64_t kLong = 0x200000;
};

TEST_F(MoreThanTheLimit, IsRefusedWithAWordOnHowToNarrowIt) {
  const auto done = provider().provide({"instr", "long", "", ""}, [](const Probe&) { FAIL(); });

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message,
            "instr:long:: matches more than 140000 instructions; name a module, functions or "
            "classes (instr:vmlinux:vfs_*:call-*)");
  const auto why = refused({"instr", "long", "", ""});
  ASSERT_EQ(why.size(), 1u);
  EXPECT_NE(why.front().find(done.error().message), std::string::npos);
  EXPECT_EQ(listed({"instr", "long", "", "ret-*"}).size(), 1u) << "what does not match is free";
}

}  // namespace
}  // namespace ringside::providers
