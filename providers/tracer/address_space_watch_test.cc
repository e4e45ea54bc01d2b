#include "providers/tracer/address_space_watch.h"

#include <gtest/gtest.h>

#include "providers/trap_points/trap_points_for_tests.h"

namespace ringside::providers {
namespace {

using vmm::FetchList, vmm::FetchLoad;

constexpr std::uint64_t kHead = 5;  // the ftrace nop
constexpr std::uint16_t kRdi = FetchLoad::register_source(SHIM_RDI),
                        kRsi = FetchLoad::register_source(SHIM_RSI);

/// A kernel with some of the functions that it looks for.
class Spaces : public testing::Test {
 protected:
  using Names = std::vector<std::pair<std::uint64_t, const char*>>;

  void begin(Names names) {
    for (const std::uint64_t offset : {0x000, 0x080, 0x100, 0x180}) {
      machine_.put(offset, disasm::code({0x0f, 0x1f, 0x44, 0, 0, 0x55, 0xc3}));
    }
    names.emplace_back(0x200, "end");
    kernel_.name(names);
    add_type("vm_area_struct", "vm_file", 0xa0);
    table_.emplace(machine_, shim_, kernel_);
  }
  void add_type(const char* structure, const char* name, std::uint32_t at) {
    guest_linux::fakes::BtfWriter btf;
    const auto word = btf.integer("unsigned long", 8, false);
    btf.structure(structure, 0x100, {{name, word, at * 8}});
    ASSERT_TRUE(guest_linux::Btf::read(btf.blob(), nullptr, kernel_.types_to_fill()));
  }
  auto prepare() { return AddressSpaceWatch::prepare(*table_, kernel_); }
  static GuestVirt at(std::uint64_t offset) {
    return trap_point_fakes::kText.wrapping_add(offset + kHead);
  }

  trap_point_fakes::FakeMachine machine_;
  trap_point_fakes::FakeShim shim_;
  trap_point_fakes::FakeKernel kernel_;
  std::optional<TrapPointTable> table_;
};

TEST_F(Spaces, AllEndsWaitAndRangesThatBeginWithAFilesMapping) {
  begin({{0x000, "exit_mmap"}, {0x080, "other"}, {0x100, "do_mas_align_munmap"}});
  trap_point_fakes::NoSink sink;
  vmm::TrapHandlers handlers(sink);

  auto watch = prepare();
  ASSERT_TRUE(watch) << watch.error().message;
  watch->add_to(handlers);

  EXPECT_EQ(table_->size(), 2u);
  EXPECT_TRUE(watch->is_place(at(0)) && watch->is_place(at(0x100)));
  EXPECT_FALSE(watch->is_place(at(0x80)));
  EXPECT_EQ(handlers.watches_at(at(0)).size(), 1u);
  EXPECT_EQ(handlers.watches_at(at(0x100)).size(), 1u);
  FetchList list({.registers = true, .ids = false});
  list.add({.source = kRsi, .words = 1, .offset = 0xa0});
  list.wait_unless_zero(list.source_of(0));
  EXPECT_EQ(watch->lists(), (std::map<GuestVirt, FetchList>{{at(0x100), list}}));
}

TEST_F(Spaces, NewerKernelsGatherTheMappings) {
  begin({{0x000, "exit_mmap"}, {0x080, "vms_gather_munmap_vmas"}, {0x100, "do_vmi_align_munmap"}});
  add_type("vma_munmap_struct", "vma", 8);

  const auto watch = prepare();
  ASSERT_TRUE(watch) << watch.error().message;

  EXPECT_TRUE(watch->is_place(at(0x80)));
  EXPECT_FALSE(watch->is_place(at(0x100)));
  FetchList list({.registers = true, .ids = false});
  list.add({.source = kRdi, .words = 1, .offset = 8});
  list.add({.source = list.source_of(0), .words = 1, .offset = 0xa0});
  list.wait_unless_zero(list.source_of(1));
  EXPECT_EQ(watch->lists(), (std::map<GuestVirt, FetchList>{{at(0x80), list}}));
}

TEST_F(Spaces, AKernelWithoutOneOfThemHasNoWatch) {
  begin({{0x000, "exit_mmap"}, {0x080, "other"}});

  const auto watch = prepare();

  ASSERT_FALSE(watch);
  EXPECT_NE(watch.error().message.find("no do_vmi_align_munmap"), std::string::npos);
}

TEST_F(Spaces, OneThatIsNotNeededStandsNowhere) {
  begin({{0x000, "exit_mmap"}, {0x080, "other"}, {0x100, "do_vmi_align_munmap"}});
  auto watch = prepare();
  ASSERT_TRUE(watch);

  watch->give_up();

  EXPECT_FALSE(watch->is_place(at(0)));
  auto paused = vmm::PausedMachine::pause(machine_);
  ASSERT_TRUE(paused);
  ASSERT_TRUE(table_->arm(*paused));
  EXPECT_EQ(table_->armed(), 0u);
}

}  // namespace
}  // namespace ringside::providers
