#include "vmm/attach/host/attach_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace ringside::vmm {
namespace {

TEST(AttachLock, OnlyOneIsAttachedAndIsNamed) {
  const pid_t other = getppid();
  EXPECT_EQ(AttachLock::holder(other), std::nullopt);

  auto first = AttachLock::take(other);
  const auto second = AttachLock::take(other);

  ASSERT_TRUE(first.has_value()) << first.error().message;
  EXPECT_EQ(AttachLock::holder(other), getpid());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::Limit);
  EXPECT_NE(second.error().message.find("process " + std::to_string(getpid()) + " ("),
            std::string::npos)
      << second.error().message;
}

TEST(AttachLock, ItEndsWithItsHolder) {
  const pid_t other = getppid();
  { const auto lock = AttachLock::take(other); }

  EXPECT_EQ(AttachLock::holder(other), std::nullopt);
  EXPECT_TRUE(AttachLock::take(other).has_value());
}

TEST(AttachLock, ThereMustBeAProcess) {
  const auto lock = AttachLock::take(0x7fff'fff0);

  ASSERT_FALSE(lock.has_value());
  EXPECT_EQ(lock.error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace ringside::vmm
