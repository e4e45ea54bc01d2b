#include "vmm/linux/shim_facts.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "vmm/inert_machine_for_tests.h"
#include "vmm/linux/inert_kernel_for_tests.h"

namespace ringside::guest_linux {
namespace {

class MachineWithoutRam final : public vmm::InertMachine {
 public:
  vmm::GuestMemory& memory() override { return memory_; }

 private:
  vmm::GuestMemory memory_;
};

/// With what every kernel has, and some per-cpu variables.
class PercpuKernel final : public InertKernel {
 public:
  using Variables = std::vector<std::pair<std::string_view, std::uint64_t>>;

  explicit PercpuKernel(const Variables& variables, std::uint32_t start_time = 0x30) {
    std::vector<Symbol> all;
    std::uint64_t at = 0xffff'ffff'8100'0000;
    for (const auto name : {"_end", "idt_table", "asm_exc_int3", "boot_cpu_data", "init_top_pgt"}) {
      all.push_back(symbol(name, at += 0x1000));
    }
    all.push_back(symbol("this_cpu_off", 0x1fb88));
    for (const auto& [name, address] : variables) all.push_back(symbol(name, address));
    symbols_.add_module({.name = "vmlinux", .text_base = GuestVirt(at), .text_size = 0x1000}, all);
    symbols_.seal();
    layout_.task_comm = 0x10;
    layout_.task_pid = 0x20;
    layout_.task_tgid = 0x24;
    layout_.task_start_time = start_time;
  }
  /// Its struct, with these members by offset in bytes.
  void describe_pcpu_hot(const std::vector<std::pair<const char*, std::uint32_t>>& members) {
    const TypeId word = *types_.find("unsigned int");
    std::vector<Member> made;
    for (const auto& [name, offset] : members) made.push_back({name, word, 8 * offset, 0});
    types_.index(types_.add_struct(TypeKind::Struct, "pcpu_hot", 64, made));
  }
  KernelLayout& layout_to_change() { return layout_; }

 private:
  static Symbol symbol(std::string_view name, std::uint64_t address) {
    return {.address = GuestVirt(address), .size = 8, .name = name, .type = 'D', .module = 0};
  }
};

vmm::ShimKernelFacts facts_of(PercpuKernel& kernel) {
  MachineWithoutRam machine;
  const auto facts = find_shim_facts(machine, kernel);
  EXPECT_TRUE(facts) << facts.error().message;
  return facts.value_or(vmm::ShimKernelFacts{});
}

TEST(ShimFacts, TheCpusNumberIsAVariableOfItsOwn) {
  PercpuKernel kernel({{"cpu_number", 0x1fb40}, {"current_task", 0x1fb80}});

  const vmm::ShimKernelFacts facts = facts_of(kernel);

  EXPECT_EQ(facts.cpu_number, 0x1fb40);
  ASSERT_TRUE(facts.task);
  EXPECT_EQ(facts.task->current, 0x1fb80);
  EXPECT_EQ(facts.task->start_time, 0x30u);
}

TEST(ShimFacts, ProcessesHaveNoShadowStacksWithoutTheKernelsCodeForThem) {
  MachineWithoutRam machine;
  PercpuKernel without({}), with({{"reset_thread_features", 0xffff'ffff'8100'9000}});

  const auto none = has_user_shadow_stacks(machine.memory(), without);
  const auto unknown = has_user_shadow_stacks(machine.memory(), with);

  ASSERT_TRUE(none && unknown);
  EXPECT_FALSE(*none);
  EXPECT_TRUE(*unknown) << "its types do not tell what the processor has";
}

TEST(ShimFacts, OrAMemberOfPcpuHot) {
  PercpuKernel kernel({{"pcpu_hot", 0x20000}, {"cpu_number", 0x1234}});
  kernel.describe_pcpu_hot({{"current_task", 0}, {"preempt_count", 8}, {"cpu_number", 12}});

  const vmm::ShimKernelFacts facts = facts_of(kernel);

  EXPECT_EQ(facts.cpu_number, 0x2000c);
  ASSERT_TRUE(facts.task);
  EXPECT_EQ(facts.task->current, 0x20000);
}

TEST(ShimFacts, IsUnknownWhereTheTypesDoNotTellOfPcpuHot) {
  PercpuKernel kernel({{"pcpu_hot", 0x20000}});

  EXPECT_EQ(facts_of(kernel).cpu_number, 0) << "no trap point records then";
}

TEST(ShimFacts, IsUnknownWhereAnInstructionCannotReachIt) {
  for (const auto& [address, offset] :
       {std::pair{std::uint64_t{0x8000'0000}, std::int32_t{0}},
        std::pair{std::uint64_t{0xffff'ffff'8234'5678}, std::int32_t(0x8234'5678)}}) {
    PercpuKernel kernel({{"cpu_number", address}});

    EXPECT_EQ(facts_of(kernel).cpu_number, offset);
  }
}

TEST(ShimFacts, ATaskIsTheShimsOnlyWithItsStartTime) {
  const PercpuKernel::Variables variables{{"current_task", 0x1fb80}};
  PercpuKernel unknown(variables), far(variables, 1 << 20);
  unknown.layout_to_change().task_start_time.reset();

  EXPECT_FALSE(facts_of(unknown).task);
  EXPECT_FALSE(facts_of(far).task);
}

}  // namespace
}  // namespace ringside::guest_linux
