// Names that the compiler gives to what it makes of functions.
#include "providers/functions/function_names.h"

#include <gtest/gtest.h>

#include "providers/testing/fake_guest.h"

namespace ringside::providers {
namespace {

TEST(FunctionForm, TellsTheSourceAndHowTheCompilerChangedIt) {
  const FunctionForm isra = function_form("finish_task_switch.isra.0");
  EXPECT_EQ(isra.source, "finish_task_switch");
  EXPECT_TRUE(isra.is_isra && !isra.is_constprop && !isra.is_part && !isra.is_cold);

  const FunctionForm both = function_form("NF_HOOK.constprop.0.isra.12.cold");
  EXPECT_EQ(both.source, "NF_HOOK");
  EXPECT_TRUE(both.is_isra && both.is_constprop && both.is_cold && !both.is_part);

  EXPECT_TRUE(function_form("foo.part.0").is_part);
}

TEST(FunctionForm, IsNoneForOtherNames) {
  for (const char* name :
       {"vfs_read", "", ".isra.0", "foo.llvm.123", "foo.0", "foo.isra.x", "foo."}) {
    EXPECT_EQ(function_form(name).source, "") << name;
  }
}

class SourceNamesOf : public ::testing::Test {
 protected:
  void symbol(std::string_view name, char type = 't') {
    auto& table = kernel_.symbols_to_fill();
    all_.push_back({GuestVirt(0xffffffff81000000 + all_.size() * 64), 64,
                    table.intern(std::string(name)), type, 0});
  }
  std::vector<std::string> sources() {
    auto& table = kernel_.symbols_to_fill();
    table.add_module({"vmlinux", GuestVirt(0xffffffff81000000), 0x80000, 0}, all_);
    table.seal();
    std::vector<std::string> out;
    const SourceNames names(table);
    for (const auto& one : names.functions()) {
      out.push_back(one.source + " " + std::string(table.symbols()[one.symbol].name));
    }
    return out;
  }
  FakeKernel kernel_;
  std::vector<guest_linux::Symbol> all_;
};

TEST_F(SourceNamesOf, AreThoseThatAKernelHasInTheCompilersFormsOnly) {
  symbol("only.isra.0");
  symbol("there");
  symbol("there.part.0");
  symbol("twice.constprop.0");
  symbol("twice.isra.0");
  symbol("only.isra.0.cold");
  symbol("lonely.cold");
  symbol("data.isra.0", 'd');

  EXPECT_EQ(sources(), (std::vector<std::string>{"only only.isra.0", "twice twice.constprop.0",
                                                 "twice twice.isra.0"}));
}

}  // namespace
}  // namespace ringside::providers
