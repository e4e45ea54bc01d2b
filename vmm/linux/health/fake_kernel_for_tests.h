// A guest for the tests of health reports: sparse kernel memory and a kernel whose types, symbols
// and CPUs the test makes. Structures are declared as they are used, with the members that a real
// kernel has; those that several tests need at the end, at offsets of our own. Not linked into the
// product.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/health/kernel_view.h"
#include "vmm/linux/inert_kernel_for_tests.h"

namespace ringside::guest_linux::fakes {

class HealthKernel final : public InertKernel {
 public:
  struct Member {
    std::string_view name;
    std::string_view type;    // "unsigned long", or the name of a structure that is declared
    std::uint32_t offset;     // bytes
    std::uint32_t count = 0;  // of an array
  };

  TypeId structure(std::string_view name, std::uint64_t size,
                   std::initializer_list<Member> members) {
    std::vector<ringside::Member> all;
    for (const Member& member : members) {
      const auto named = types_.find(TypeKind::Struct, member.type);
      TypeId type = named ? *named : types_.find(member.type).value_or(TypeId());
      if (member.count != 0) type = types_.array_of(type, member.count);
      all.push_back({types_.intern(member.name), type, member.offset * 8, 0});
    }
    const TypeId id = types_.add_struct(TypeKind::Struct, types_.intern(name), size, all);
    types_.index(id);
    return id;
  }
  void enumeration(std::string_view name, std::initializer_list<Enumerator> enumerators) {
    types_.index(types_.add_enum(types_.intern(name), 4, false, std::vector(enumerators)));
  }
  void symbol(std::string_view name, std::uint64_t address, char type = 'd') {
    Symbol symbol;
    symbol.address = GuestVirt(address);
    symbol.name = kept_.emplace_back(name);
    symbol.type = type;
    wanted_.push_back(symbol);
  }
  /// After the last symbol.
  void seal() {
    symbols_.add_module({.name = "vmlinux", .text_base = GuestVirt(kText), .text_size = 1 << 20},
                        wanted_);
    symbols_.seal();
  }
  std::span<const std::uint64_t> percpu_bases() const override { return bases; }
  void end_set_up() override { types_ = TypeGraph(); }

  static constexpr std::uint64_t kText = 0xffff'ffff'8100'0000;
  std::vector<std::uint64_t> bases{0xffff'8880'1000'0000, 0xffff'8880'2000'0000};

 private:
  std::deque<std::string> kept_;
  std::vector<Symbol> wanted_;
};

/// Where variables of the kernel lie.
inline constexpr std::uint64_t kData = 0xffff'ffff'8200'0000;

/// Tasks, their run queues, and the mutexes that they wait for.
inline void add_tasks(HealthKernel& kernel) {
  kernel.structure("list_head", 16, {{"next", "unsigned long", 0}, {"prev", "unsigned long", 8}});
  kernel.structure("sched_info", 16,
                   {{"last_arrival", "unsigned long", 0}, {"last_queued", "unsigned long", 8}});
  kernel.structure("sched_entity", 8, {{"exec_start", "unsigned long", 0}});
  kernel.structure("thread_struct", 8, {{"sp", "unsigned long", 0}});
  kernel.structure("task_struct", 256,
                   {{"__state", "unsigned int", 0},
                    {"pid", "int", 4},
                    {"tgid", "int", 8},
                    {"on_cpu", "int", 12},
                    {"comm", "char", 16, 16},
                    {"stack", "unsigned long", 32},
                    {"tasks", "list_head", 40},
                    {"signal", "unsigned long", 56},
                    {"thread_node", "list_head", 64},
                    {"se", "sched_entity", 80},
                    {"sched_info", "sched_info", 88},
                    {"thread", "thread_struct", 104},
                    {"policy", "unsigned int", 112},
                    {"rt_priority", "unsigned int", 116},
                    {"pi_blocked_on", "unsigned long", 120}});
  kernel.structure("signal_struct", 16, {{"thread_head", "list_head", 0}});
  kernel.structure("rq", 64, {{"clock", "unsigned long", 0}});
  kernel.structure("atomic_long_t", 8, {{"counter", "long", 0}});
  kernel.structure("mutex", 40, {{"owner", "atomic_long_t", 0}, {"wait_list", "list_head", 16}});
  kernel.structure("mutex_waiter", 32, {{"list", "list_head", 0}, {"task", "unsigned long", 16}});
  kernel.symbol("runqueues", 0, 'A');
  kernel.symbol("init_task", kData);
  kernel.symbol("jiffies_64", kData + 0x1000);
}

/// After add_tasks().
inline void add_log(HealthKernel& kernel) {
  kernel.structure("prb_data_blk_lpos", 16,
                   {{"begin", "unsigned long", 0}, {"next", "unsigned long", 8}});
  kernel.structure("prb_desc", 24,
                   {{"state_var", "atomic_long_t", 0}, {"text_blk_lpos", "prb_data_blk_lpos", 8}});
  kernel.structure("printk_info", 24,
                   {{"ts_nsec", "unsigned long", 0}, {"text_len", "unsigned short", 8}});
  kernel.structure("prb_desc_ring", 40,
                   {{"count_bits", "unsigned int", 0},
                    {"descs", "unsigned long", 8},
                    {"infos", "unsigned long", 16},
                    {"head_id", "atomic_long_t", 24},
                    {"tail_id", "atomic_long_t", 32}});
  kernel.structure("prb_data_ring", 16,
                   {{"size_bits", "unsigned int", 0}, {"data", "unsigned long", 8}});
  kernel.structure("printk_ringbuffer", 56,
                   {{"desc_ring", "prb_desc_ring", 0}, {"text_data_ring", "prb_data_ring", 40}});
  kernel.symbol("prb", kData + 0x2000);
}

inline void add_rcu(HealthKernel& kernel) {
  kernel.structure("rcu_node", 48,
                   {{"qsmask", "unsigned long", 0},
                    {"grplo", "int", 8},
                    {"grphi", "int", 12},
                    {"level", "unsigned char", 16},
                    {"gp_tasks", "unsigned long", 24}});
  kernel.structure("rcu_state", 256,
                   {{"node", "rcu_node", 0, 2},
                    {"gp_seq", "unsigned long", 200},
                    {"gp_start", "unsigned long", 208}});
  kernel.symbol("rcu_state", kData + 0x5000);
}

}  // namespace ringside::guest_linux::fakes
