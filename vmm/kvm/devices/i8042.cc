#include "vmm/kvm/devices/i8042.h"

#include <utility>

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint64_t kDataPort = 0, kCommandPort = 4;

enum ControllerStatus : std::uint8_t {
  kOutputFull = 0x01,
  kLastWasCommand = 0x08,
  kTimeOut = 0x40
};

enum Command : std::uint8_t {
  kReadCommandByte = 0x20,
  kWriteCommandByte = 0x60,
  kTestAuxiliary = 0xa9,
  kSelfTest = 0xaa,
  kTestKeyboard = 0xab,
  kReadOutputPort = 0xd0,
  kWriteOutputPort = 0xd1,
  kLoopAuxiliary = 0xd3,
  kWriteAuxiliary = 0xd4,
  kPulse = 0xf0,  // to 0xff: a 0 in bits 0 to 3 pulses that line of the output port
};

constexpr std::uint8_t kNotReset = 0x01;        // of the output port and of pulses
constexpr std::uint8_t kClockStuckLow = 0x01;   // an interface test's answer: nothing is connected
constexpr std::uint8_t kDeviceTimedOut = 0xfe;  // the answer for a device that is not there

}  // namespace

std::uint8_t I8042::read_byte(std::uint64_t offset) {
  const std::scoped_lock lock(mutex_);
  if (offset == kCommandPort) return status_;
  if (offset != kDataPort) return 0xff;
  status_ &= static_cast<std::uint8_t>(~(kOutputFull | kTimeOut));
  return output_;
}

void I8042::write_byte(std::uint64_t offset, std::uint8_t value) {
  bool reset = false;
  {
    const std::scoped_lock lock(mutex_);
    if (offset == kCommandPort) reset = command(value);
    if (offset == kDataPort) reset = data(value);
  }
  if (reset) guest_end_.guest_ended(MachineState::Rebooted);
}

void I8042::answer(std::uint8_t value) {
  output_ = value;
  status_ |= kOutputFull;
}

bool I8042::command(std::uint8_t value) {
  status_ |= kLastWasCommand;
  data_is_for_ = 0;
  if (value >= kPulse) return (value & kNotReset) == 0;
  switch (value) {
    case kReadCommandByte: answer(command_byte_); break;
    case kSelfTest: answer(0x55); break;
    case kTestKeyboard:
    case kTestAuxiliary: answer(kClockStuckLow); break;
    case kReadOutputPort: answer(output_port_); break;
    case kWriteCommandByte:
    case kWriteOutputPort:
    case kLoopAuxiliary:
    case kWriteAuxiliary: data_is_for_ = value; break;
    default: break;
  }
  return false;
}

bool I8042::data(std::uint8_t value) {
  status_ &= static_cast<std::uint8_t>(~kLastWasCommand);
  switch (std::exchange(data_is_for_, 0)) {
    case kWriteCommandByte: command_byte_ = value; return false;
    case kWriteOutputPort: output_port_ = value; return (value & kNotReset) == 0;
    // The byte comes back, but not as the auxiliary device's: there is none.
    case kLoopAuxiliary: answer(value); return false;
    default:
      answer(kDeviceTimedOut);
      status_ |= kTimeOut;
      return false;
  }
}

}  // namespace ringside::vmm::kvm
