// Processes that nobody can look at. Those that run guests are in process_machine_live_test.cc and
// tests/vm.
#include "vmm/attach/process/observed_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace ringside::vmm {
namespace {

TEST(ObservedProcess, OneThatRunsNoGuestIsRefused) {
  const auto refused = ObservedProcess::look_at(getpid());

  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::Unsupported);
  EXPECT_NE(refused.error().message.find("runs no virtual machine"), std::string::npos);
}

TEST(ObservedProcess, OneThatIsNotThereIsSaidToBe) {
  const auto refused = ObservedProcess::look_at(0x7fff'fff0);

  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace ringside::vmm
