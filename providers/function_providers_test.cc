// fbt and syscall over a fake guest's text.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

#include "providers/fake_guest.h"
#include "providers/fbt.h"
#include "providers/syscall_provider.h"
#include "vmm/page_walk.h"

namespace ringside::providers {
namespace {

constexpr std::uint64_t kText = 0x100000;  // guest-physical; each function gets 64 bytes
constexpr std::uint64_t kCallTable = 0x180000;
constexpr std::uint64_t kNopSize = 5;

class RecordingPoints final : public ProbePoints {
 public:
  Result<ProbeSite> examine(GuestVirt at, SitePolicy policy) override {
    ++examined[at.raw()];
    if (refused.contains(at.raw())) return fail(ErrorCode::Unsupported, "the test says no");
    return proven(at, kInstruction, policy);
  }
  std::uint64_t generation() const override { return now; }
  Result<void> bind(const ProbeSite& site, const Binding& binding) override {
    bound.push_back({site.address(), site.policy(), binding});
    return {};
  }
  struct Bound {
    GuestVirt at;
    SitePolicy policy;
    Binding binding;
  };
  std::set<std::uint64_t> refused;
  std::map<std::uint64_t, unsigned> examined;
  std::uint64_t now = 0;
  std::vector<Bound> bound;

 private:
  static constexpr std::array kInstruction{std::byte{0x90}};
};

class FunctionProviders : public ::testing::Test {
 protected:
  /// Adds a function that starts with an ftrace nop; returns its address.
  GuestVirt function(std::string_view name, std::vector<std::uint8_t> body) {
    const std::uint64_t at = kText + functions_.size() * 64;
    std::vector<std::uint8_t> code = {0x0f, 0x1f, 0x44, 0x00, 0x00};
    code.insert(code.end(), body.begin(), body.end());
    code.resize(64, 0xcc);
    memory_.put(at, code.data(), code.size());
    functions_.push_back(
        {kernel_address(at), 64, kernel_.symbols_to_fill().intern(std::string(name)), 't', 0});
    return kernel_address(at);
  }
  void data(std::string_view name, std::uint64_t at) {
    functions_.push_back(
        {kernel_address(at), 0, kernel_.symbols_to_fill().intern(std::string(name)), 'D', 0});
  }
  void seal() {
    auto& table = kernel_.symbols_to_fill();
    table.add_module({"vmlinux", kernel_address(kText), 0x80000, 0}, functions_);
    table.seal();
  }
  static std::vector<std::string> listed(Provider& provider, const dif::ProbeDescription& pattern) {
    std::vector<std::string> names;
    EXPECT_TRUE(provider.provide(pattern, [&](const Probe& probe) {
      names.push_back(probe.name.function + ":" + probe.name.name);
    }));
    return names;
  }
  static std::vector<std::string> refused(Provider& provider,
                                          const dif::ProbeDescription& pattern) {
    std::vector<std::string> names;
    EXPECT_TRUE(provider.refusals(pattern, [&](const Refusal& refusal) {
      names.push_back(refusal.name.function + ":" + refusal.name.name + ": " + refusal.reason);
    }));
    return names;
  }
  static Probe find(Provider& provider, const std::string& function, const std::string& name) {
    Probe found;
    EXPECT_TRUE(provider.provide({"", "", function, name}, [&](const Probe& p) { found = p; }));
    EXPECT_EQ(found.name.function, function) << "not published";
    return found;
  }

  FakeMemory memory_;
  FakeKernel kernel_;
  RecordingPoints points_;
  vmm::PageTableReader text_{memory_.memory(), kernel_.table()};
  std::vector<guest_linux::Symbol> functions_;
};

const std::vector<std::uint8_t> kReturnsOne = {0xb8, 1, 0, 0, 0, 0xc3};  // mov eax, 1; ret
const std::vector<std::uint8_t> kNeverReturns = {0x0f, 0x0b};            // ud2
using Names = std::vector<std::string>;

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

TEST_F(FunctionProviders, FbtPublishesEveryFunctionOfOneName) {
  function("twin", kReturnsOne);
  function("other", kReturnsOne);
  function("twin", kReturnsOne);
  seal();
  FbtProvider fbt(text_, kernel_, points_);

  EXPECT_EQ(listed(fbt, {"fbt", "", "twin", "entry"}).size(), 2u);
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
                   "bare:entry: bare has no ftrace site", "bare:return: bare has no ftrace site"}));
  EXPECT_EQ(refused(fbt, {"fbt", "", "bare", "entry"}),
            (Names{"bare:entry: bare has no ftrace site"}));
  EXPECT_TRUE(refused(fbt, {"fbt", "", "nothing", ""}).empty());
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
    data("sys_call_table", kCallTable);
    data("after_table", kCallTable + 4 * 8);
    memory_.put64(kCallTable, read_.raw());
    memory_.put64(kCallTable + 8, write_.raw());
    memory_.put64(kCallTable + 16, exit_.raw());
    memory_.put64(kCallTable + 24, execveat.raw());
    seal();
  }
  GuestVirt read_, write_, exit_, path_;
};

TEST_F(SystemCalls, AreThoseOfTheTableWithReturnsWhereTheyReturn) {
  SyscallProvider syscall(text_, kernel_, points_);

  EXPECT_EQ(listed(syscall, {"syscall", "", "", ""}),
            (Names{"read:entry", "read:return", "write:entry", "write:return", "exit:entry",
                   "execveat:entry"}))
      << "execveat comes back under execve's number";
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
  EXPECT_EQ(*points_.bound[0].binding.plan, kSystemCallReturnArguments);
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
  EXPECT_FALSE(points_.bound[0].binding.at_function_edge);
}

TEST_F(SystemCalls, ReturnsOnTheCommonPathNeedToUnderstandIt) {
  const std::uint8_t other[] = {0x90, 0x90, 0x90, 0x90};
  memory_.put(kText + (path_.raw() - read_.raw()) + kNopSize + 2, other, sizeof other);
  SyscallProvider syscall(text_, kernel_, points_);

  EXPECT_EQ(listed(syscall, {"syscall", "", "write", ""}), (Names{"write:entry"}));
}

}  // namespace
}  // namespace ringside::providers
