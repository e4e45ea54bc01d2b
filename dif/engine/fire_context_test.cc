// Fire context. parallel_test.cc tests firings beside each other.
#include "dif/engine/fire_context.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace ringside::dif {
namespace {

TEST(FireContext, IsMarkedOnItsThreadOnly) {
  std::atomic<bool> look = false, elsewhere = true;
  std::thread other([&] {
    look.wait(false);
    elsewhere = in_fire_context();
  });
  EXPECT_FALSE(in_fire_context());
  bool here = false;
  {
    const FireScope scope;
    here = in_fire_context();
    look = true;
    look.notify_one();
    other.join();
  }

  EXPECT_TRUE(here);
  EXPECT_FALSE(elsewhere);
  EXPECT_FALSE(in_fire_context());
}

TEST(FireContextDeathTest, AnAllocationDuringAFiringAborts) {
  EXPECT_DEATH(
      {
        const FireScope scope;
        ::operator delete(::operator new(100));  // not a string's, which clang leaves out
      },
      "in_fire_context");
}

}  // namespace
}  // namespace ringside::dif
