#include <gtest/gtest.h>

#include "vmm/qemu/qmp.h"

namespace ringside::vmm {
namespace {

QmpEvent shutdown(const char* reason) {
  return {"SHUTDOWN", {{"guest", true}, {"reason", reason}}};
}

MachineState after(const QmpEvent& event, std::string_view console) {
  QemuEnd end;
  end.note(event);
  return end.judge(console);
}

constexpr char kPanic[] = "[    3.1] Kernel panic - not syncing: sysrq triggered crash\n";

TEST(QemuEnd, TellsPowerOffRebootAndPanicApart) {
  EXPECT_EQ(after(shutdown("guest-shutdown"), ""), MachineState::PoweredOff);
  EXPECT_EQ(after(shutdown("guest-reset"), "login:"), MachineState::Rebooted);
  EXPECT_EQ(after(shutdown("guest-reset"), kPanic), MachineState::Panicked);
  EXPECT_EQ(after(shutdown("guest-panic"), ""), MachineState::Panicked);
  EXPECT_EQ(after({"GUEST_PANICKED", nlohmann::json::object()}, ""), MachineState::Panicked);
}

TEST(QemuEnd, WithoutAWordFromTheGuestQemuDied) {
  EXPECT_EQ(QemuEnd().judge(kPanic), MachineState::Died);
  EXPECT_EQ(after(shutdown("host-signal"), ""), MachineState::Died);
  EXPECT_EQ(after({"SHUTDOWN", nlohmann::json::array()}, ""), MachineState::Died);
  EXPECT_EQ(after({"RESUME", nlohmann::json::object()}, ""), MachineState::Died);
}

}  // namespace
}  // namespace ringside::vmm
