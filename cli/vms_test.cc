#include "cli/vms.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringside::cli {
namespace {

std::vector<vmm::HostVm> two() {
  vmm::HostVm good, bad;
  good.name = "web1";
  good.pid = 12;
  good.vmm = "qemu";
  good.accelerator = "kvm";
  good.state = "running";
  good.vcpus = 2;
  good.memory = (std::uint64_t{512} << 20) - (128 << 10);
  good.kernel = "6.1.0";
  good.target = "pid:12";
  bad.name = "db\x1b[2J";
  bad.pid = 1234;
  bad.vmm = "firecracker";
  bad.state = "unknown";
  bad.obstacle = "it is user 7's";
  return {good, bad};
}

TEST(Vms, TextHasALineAMachineWithItsObstacle) {
  EXPECT_EQ(
      vms_as_text(two()),
      "NAME    PID   VMM          ACCEL  STATE    VCPUS  MEMORY  KERNEL  OURS  ATTACH\n"
      "web1    12    qemu         kvm    running  2      512M    6.1.0   -     pid:12\n"
      "db?[2J  1234  firecracker  -      unknown  -      -       -       -     no: it is user "
      "7's\n");
}

TEST(Vms, JsonSaysNullForWhatNobodyKnows) {
  const auto list = nlohmann::json::parse(vms_as_json(two()));

  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["name"], "web1");
  EXPECT_EQ(list[0]["vcpus"], 2);
  EXPECT_EQ(list[0]["memory"], (std::uint64_t{512} << 20) - (128 << 10));
  EXPECT_EQ(list[0]["attach"], "pid:12");
  EXPECT_TRUE(list[0]["obstacle"].is_null());
  EXPECT_TRUE(list[1]["vcpus"].is_null());
  EXPECT_TRUE(list[1]["kernel"].is_null());
  EXPECT_EQ(list[1]["obstacle"], "it is user 7's");
}

}  // namespace
}  // namespace ringside::cli
