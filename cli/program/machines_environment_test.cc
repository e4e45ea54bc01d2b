#include "cli/program/machines_environment.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "dif/bind/c_types.h"

namespace ringside::cli {
namespace {

/// A kernel with one struct, and the probes that the test gives it.
class Kernel final : public d::Environment {
 public:
  explicit Kernel(std::string_view structure) {
    const Member members[] = {{"x", types_.find("int").value_or(TypeId{}), 0, 0}};
    made = types_.add_struct(TypeKind::Struct, structure, 4, members);
    types_.index(made);
  }
  TypeGraph& types() override { return types_; }
  d::ProbeSignature signature(const dif::ProbeDescription& pattern) override {
    ++lookups;
    d::ProbeSignature result;
    for (const dif::ProbeDescription& probe : probes) {
      if (!dif::matches(pattern, probe)) continue;
      ++result.matched;
      result.has_types = true;
      result.arguments = {types_.pointer_to(made)};
      result.first = probe;
    }
    return result;
  }
  std::optional<dif::ProbeDescription> probe_by_id(dif::ProbeId id) override {
    if (id.value < 1 || id.value > probes.size()) return std::nullopt;
    return probes[id.value - 1];
  }
  std::string why_no_match(const dif::ProbeDescription&) override { return why; }
  std::optional<d::KernelVariable> kernel_variable(std::string_view, std::string_view) override {
    return std::nullopt;
  }

  std::vector<dif::ProbeDescription> probes;
  std::string why;
  int lookups = 0;
  TypeId made;

 private:
  TypeGraph types_;
};

const dif::ProbeDescription kRead{"fbt", "vmlinux", "vfs_read", "entry"};
const dif::ProbeDescription kNew{"fbt", "vmlinux", "brand_new", "entry"};

dif::ProbeDescription on(std::string machine, dif::ProbeDescription pattern) {
  pattern.machine = std::move(machine);
  return pattern;
}

class MachinesEnvironmentTest : public testing::Test {
 protected:
  MachinesEnvironmentTest() {
    old_.probes = {kRead};
    new_.probes = {kRead, kNew};
  }
  Kernel old_{"file"}, new_{"folio"};
  MachinesEnvironment both_{{{"web1", &old_}, {"db", &new_}}};
};

TEST_F(MachinesEnvironmentTest, FourFieldsAreAboutEveryMachine) {
  const d::ProbeSignature found = both_.signature(kRead);

  EXPECT_EQ(found.matched, 2u);
  EXPECT_TRUE(found.is_everywhere);
}

TEST_F(MachinesEnvironmentTest, WhatOneMachineLacksIsNotEverywhere) {
  EXPECT_FALSE(both_.signature(kNew).is_everywhere);
  EXPECT_EQ(both_.signature(kNew).matched, 1u);
  EXPECT_EQ(both_.why_no_match(kNew),
            "web1 has none (NAME:provider:module:function:name is about one machine)");
  old_.why = "it cannot be probed";
  EXPECT_EQ(both_.why_no_match(kNew), "on web1, it cannot be probed");
}

TEST_F(MachinesEnvironmentTest, AMachineFieldChoosesByPattern) {
  EXPECT_TRUE(both_.signature(on("db", kNew)).is_everywhere);
  EXPECT_EQ(both_.signature(on("web*", kRead)).matched, 1u);
  EXPECT_EQ(both_.signature(on("*", kRead)).matched, 2u);
  EXPECT_EQ(both_.signature(on("web[2-9]", kRead)).matched, 0u);
}

TEST_F(MachinesEnvironmentTest, AMachineThatIsNotThereIsNamedWithThoseThatAre) {
  EXPECT_EQ(both_.why_no_match(on("web9", kRead)),
            "there is no machine web9; there are web1 and db");
  EXPECT_EQ(both_.why_no_machine(on("d?", kRead)), "");
  EXPECT_EQ(MachinesEnvironment({{"", &old_}}).why_no_match(on("web9", kRead)),
            "there is no machine web9, and no other; name one with --attach, --image or --kernel");
  EXPECT_EQ(MachinesEnvironment({{"vm", &old_}}).why_no_match(on("web9", kRead)),
            "there is no machine web9; there is vm");
}

TEST_F(MachinesEnvironmentTest, PatternsAreLookedUpOnce) {
  both_.signature(kRead);
  both_.signature(kRead);

  EXPECT_EQ(old_.lookups + new_.lookups, 2);
}

TEST_F(MachinesEnvironmentTest, ANumberIsAProbeOnlyWhereMachinesAgree) {
  EXPECT_EQ(both_.probe_by_id(dif::ProbeId{1}), kRead);
  EXPECT_EQ(both_.probe_by_id(dif::ProbeId{2}), kNew) << "one machine has it";
  EXPECT_EQ(both_.probe_by_id(dif::ProbeId{3}), std::nullopt);
  std::ranges::reverse(new_.probes);
  EXPECT_EQ(both_.probe_by_id(dif::ProbeId{1}), std::nullopt);
}

/// args[0] of brand_new is a struct that the first machine's kernel does not have.
TEST_F(MachinesEnvironmentTest, ArgumentsOfAnotherMachineAreInTheFirstOnesTypes) {
  const d::ProbeSignature found = both_.signature(on("db", kNew));

  ASSERT_EQ(found.arguments.size(), 1u);
  EXPECT_EQ(dif::type_text(both_.types(), found.arguments[0]),
            dif::type_text(new_.types(), new_.types().pointer_to(new_.made)));
  const Type& pointer = both_.types()[found.arguments[0]];
  ASSERT_EQ(pointer.kind, TypeKind::Pointer);
  EXPECT_EQ(both_.types()[pointer.target].kind, TypeKind::Forward) << "it has no members there";
}

TEST(TypeOfOtherGraph, WhatBothHaveIsFoundByName) {
  TypeGraph from, to;
  const Member members[] = {{"x", from.find("int").value_or(TypeId{}), 0, 0}};
  const TypeId theirs = from.add_struct(TypeKind::Struct, "both", 4, members);
  const TypeId ours = to.add_struct(TypeKind::Struct, "both", 16, {});
  to.index(ours);

  const auto made = [&](TypeId id) { return type_of_other_graph(to, from, id); };

  EXPECT_EQ(made(theirs), ours);
  EXPECT_EQ(made(from.pointer_to(theirs)), to.pointer_to(ours));
  EXPECT_EQ(to[made(from.array_of(theirs, 3))].target, ours);
  EXPECT_EQ(to.to_string(made(from.find("size_t").value_or(TypeId{}))), "size_t");
  const Parameter parameters[] = {{"both", from.pointer_to(theirs)}};
  const TypeId function = from.add_function(from.find("int").value_or(TypeId{}), parameters, true);
  EXPECT_EQ(to.to_string(made(from.pointer_to(function))),
            from.to_string(from.pointer_to(function)));
}

TEST(TypeOfOtherGraph, TypesThatLeadInACircleEnd) {
  TypeGraph from, to;
  const TypeId first = from.add({.kind = TypeKind::Typedef, .name = "a"});
  const TypeId second = from.add({.kind = TypeKind::Typedef, .name = "b", .target = first});
  Type changed = from[first];
  changed.target = second;
  from.replace(first, changed);

  EXPECT_EQ(type_of_other_graph(to, from, first), TypeId{});
}

}  // namespace
}  // namespace ringside::cli
