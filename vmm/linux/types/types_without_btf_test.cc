#include "vmm/linux/types/types_without_btf.h"

#include <gtest/gtest.h>

#include <string>

#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/layout.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kIdle = 0xffff'ffff'8220'0000, kInit = 0xffff'8880'0100'0000,
                        kThreads = 0xffff'8880'0101'0000;
constexpr std::uint64_t kTaskBytes = 4096, kPid = 0x100, kFamily = 0x110, kComm = 0x3ec;

/// The idle task and its children init and kthreadd; between tgid and real_parent is a canary.
class Tasks : public ::testing::Test {
 protected:
  Tasks() {
    put(kIdle, 0, "swapper/0");
    put(kInit, 1, "systemd");
    put(kThreads, 2, "kthreadd");
    link(kIdle + kFamily + 16, kInit + kFamily + 32);
    link(kInit + kFamily + 32, kThreads + kFamily + 32);
    link(kThreads + kFamily + 32, kIdle + kFamily + 16);
  }
  void put(std::uint64_t task, std::int32_t pid, std::string_view comm) {
    const std::vector<std::byte> none(kTaskBytes);
    guest_.put_bytes(task, none);
    guest_.put(task + kPid, pid);
    guest_.put(task + kPid + 4, pid);
    guest_.put(task + kPid + 8, std::uint64_t{0x1122'3344'5566'7700} + task);
    guest_.put(task + kFamily, kIdle);
    guest_.put(task + kFamily + 8, kIdle);
    guest_.put(task + kFamily + 48, task);
    guest_.put_text(task + kComm, comm);
  }
  void link(std::uint64_t node, std::uint64_t next) { guest_.put(node, next); }

  fakes::SparseGuest guest_;
};

TEST_F(Tasks, ShowWhereTheyHaveTheirNameAndNumbers) {
  const auto task = find_task_offsets(guest_, GuestVirt(kIdle));

  ASSERT_TRUE(task);
  EXPECT_EQ(task->comm, kComm);
  EXPECT_EQ(task->pid, kPid);
  EXPECT_EQ(task->tgid, kPid + 4);
  EXPECT_EQ(task->real_parent, kFamily);
}

TEST_F(Tasks, AreNotKnownBeforeInitIsThere) {
  link(kIdle + kFamily + 16, kThreads + kFamily + 32);

  EXPECT_FALSE(find_task_offsets(guest_, GuestVirt(kIdle)));
}

TEST_F(Tasks, ThatDoNotAgreeAreNotBelieved) {
  guest_.put(kInit + kPid + 4, std::int32_t{7});
  EXPECT_FALSE(find_task_offsets(guest_, GuestVirt(kIdle))) << "pid and tgid differ";

  put(kInit, 1, "init");
  link(kInit + kFamily + 32, kThreads + kFamily + 32);
  guest_.put_text(kThreads + kComm, "kthread");
  EXPECT_FALSE(find_task_offsets(guest_, GuestVirt(kIdle))) << "another name";
}

TEST_F(Tasks, WhoseListNeverEndsAreLeft) {
  link(kThreads + kFamily + 32, kInit + kFamily + 32);

  EXPECT_TRUE(find_task_offsets(guest_, GuestVirt(kIdle))) << "both were there";
  link(kInit + kFamily + 32, kInit + kFamily + 32);
  EXPECT_FALSE(find_task_offsets(guest_, GuestVirt(kIdle)));
}

TEST_F(Tasks, WithTwoSuchFamiliesAreNotGuessed) {
  guest_.put(kIdle + 0x800, kIdle);
  guest_.put(kIdle + 0x808, kIdle);
  guest_.put(kIdle + 0x830, kIdle);

  EXPECT_FALSE(find_task_offsets(guest_, GuestVirt(kIdle)));
}

const std::string kToldInfo =
    "OSRELEASE=6.1.0\nSYMBOL(init_uts_ns)=ffffffff82000000\nSYMBOL(_stext)=ffffffff81000000\n"
    "SYMBOL(swapper_pg_dir)=ffffffff82100000\nNUMBER(phys_base)=0\nSIZE(page)=64\n"
    "OFFSET(page.flags)=8\nSIZE(printk_info)=88\nOFFSET(printk_info.ts_nsec)=8\n"
    "OFFSET(printk_info.text_len)=16\nOFFSET(printk_info.caller_id)=20\nSIZE(prb_desc)=24\n"
    "OFFSET(prb_desc.state_var)=0\nOFFSET(prb_desc.text_blk_lpos)=8\nSIZE(atomic_long_t)=8\n"
    "OFFSET(atomic_long_t.counter)=0\nSIZE(prb_data_blk_lpos)=16\n"
    "OFFSET(prb_data_blk_lpos.begin)=0\nOFFSET(prb_data_blk_lpos.next)=8\n";

class TypesWithoutBtf : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kPages = 0xffff'ea00'0000'0000, kBase = 0xffff'ffff'8240'0000;
  static constexpr std::uint64_t kTextPages = 4, kNode = std::uint64_t{1} << 54;

  TypesWithoutBtf() {
    add("vmemmap_base", kBase);
    add("_stext", fakes::kText);
    add("_etext", fakes::kText + kTextPages * 4096);
    guest_.put(kBase, kPages);
    for (std::uint64_t n = 0; n < kTextPages; ++n) flags(n, kNode | 1 << 12);
  }
  void add(std::string_view name, std::uint64_t at) {
    all_.push_back({.address = GuestVirt(at), .name = name, .type = 'D'});
  }
  void flags(std::uint64_t page, std::uint64_t value) {
    guest_.put(kPages + (0x1000 + page) * 64 + 8, value);  // the text begins at 16 MiB
  }
  TypeGraph types_of_kernel() {
    SymbolTable symbols;
    symbols.add_module({.name = "vmlinux", .text_base = GuestVirt(fakes::kText)}, all_);
    symbols.seal();
    TypeGraph types;
    add_types_without_btf(*VmcoreInfo::parse(kToldInfo), symbols, guest_, types);
    return types;
  }

  std::vector<Symbol> all_;
  fakes::SparseGuest guest_;
};

TEST_F(TypesWithoutBtf, AreThoseOfVmcoreinfo) {
  const TypeGraph types = types_of_kernel();

  EXPECT_EQ(offset_of(types, "page", {"flags"}), 8u);
  EXPECT_EQ(offset_of(types, "prb_desc", {"text_blk_lpos", "next"}), 16u);
  EXPECT_EQ(types.size_of(*types.find(TypeKind::Struct, "printk_info")), 88u);
  const auto level = types.find_member(*types.find(TypeKind::Struct, "printk_info"), "level");
  ASSERT_TRUE(level);
  EXPECT_EQ(level->bit_offset, 157u);
  EXPECT_EQ(level->bit_width, 3u);
  EXPECT_FALSE(types.find(TypeKind::Struct, "prb_desc_ring")) << "VMCOREINFO does not describe it";
  EXPECT_FALSE(has_kernel_types(types));
}

TEST_F(TypesWithoutBtf, HaveTheFlagThatAllPagesOfTheTextHave) {
  const TypeGraph types = types_of_kernel();

  const auto reserved = types.find_enumerator("PG_reserved");
  ASSERT_TRUE(reserved);
  EXPECT_EQ(reserved->second, 12);
}

TEST_F(TypesWithoutBtf, DoNotGuessTheFlagOfReservedPages) {
  flags(2, kNode | 1 << 12 | 1 << 3);
  EXPECT_FALSE(types_of_kernel().find_enumerator("PG_reserved")) << "one page has more";

  for (std::uint64_t n = 0; n < kTextPages; ++n) flags(n, kNode | 3 << 12);
  EXPECT_FALSE(types_of_kernel().find_enumerator("PG_reserved")) << "two flags";
}

TEST_F(TypesWithoutBtf, KnowTheOwnerOfAMutexButInARealTimeKernel) {
  EXPECT_EQ(offset_of(types_of_kernel(), "mutex", {"owner"}), 0u);

  add("rt_spin_lock", fakes::kText + 0x100);
  EXPECT_FALSE(offset_of(types_of_kernel(), "mutex", {"owner"}));
}

TEST(SystemRunning, FollowTheRelease) {
  EXPECT_EQ(system_running_of("5.15.0-91-generic"), 2u);
  EXPECT_EQ(system_running_of("4.19.0"), 2u);
  EXPECT_EQ(system_running_of("5.16.1"), 3u);
  EXPECT_EQ(system_running_of("6.1.0-56-cloud-amd64"), 3u);
  EXPECT_EQ(system_running_of("next"), 3u);
}

}  // namespace
}  // namespace ringside::guest_linux
