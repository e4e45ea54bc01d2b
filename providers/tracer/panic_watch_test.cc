// PanicWatch on a fake guest's panic_cpu.
#include "providers/tracer/panic_watch.h"

#include <gtest/gtest.h>

#include "providers/testing/fake_guest.h"

namespace ringside::providers {
namespace {

using std::chrono::seconds;

constexpr std::uint64_t kPanicCpu = 0x40000;
constexpr PanicWatch::Clock::time_point kStart{};

class Panics : public ::testing::Test {
 protected:
  Panics() {
    memory_.put32(kPanicCpu, ~std::uint32_t{0});
    guest_linux::SymbolTable& symbols = kernel_.symbols_to_fill();
    symbols.add_module({"vmlinux", GuestVirt(kKernelBase), 0x1000, 0},
                       {{kernel_address(kPanicCpu), 4, symbols.intern("panic_cpu"), 'D', 0}});
    symbols.seal();
  }
  std::optional<std::uint32_t> look(seconds later) {
    return watch_.look(kernel_, reader_, kStart + later);
  }

  FakeMemory memory_;
  FakeKernel kernel_;
  vmm::PageTableReader reader_{memory_.memory(), kernel_.table()};
  PanicWatch watch_;
};

TEST_F(Panics, AreToldOnceTheyHaveLasted) {
  EXPECT_EQ(look(seconds(0)), std::nullopt);
  memory_.put32(kPanicCpu, 3);
  EXPECT_EQ(look(seconds(10)), std::nullopt) << "the machine may be about to end";
  EXPECT_EQ(look(seconds(12)), std::nullopt);
  EXPECT_EQ(look(seconds(13)), 3u);
}

TEST_F(Panics, AnOopsThatLooksForACrashKernelIsNone) {
  memory_.put32(kPanicCpu, 0);
  EXPECT_EQ(look(seconds(0)), std::nullopt);
  memory_.put32(kPanicCpu, ~std::uint32_t{0});
  EXPECT_EQ(look(seconds(5)), std::nullopt);
  memory_.put32(kPanicCpu, 0);
  EXPECT_EQ(look(seconds(10)), std::nullopt);
}

TEST(Panic, AKernelWithoutTheSymbolHasNone) {
  FakeMemory memory;
  FakeKernel kernel;
  kernel.symbols_to_fill().seal();
  const vmm::PageTableReader reader(memory.memory(), kernel.table());
  EXPECT_EQ(PanicWatch().look(kernel, reader, kStart), std::nullopt);
}

}  // namespace
}  // namespace ringside::providers
