// Fakes for tests of devices: an interrupt line that counts, a machine that keeps events, and
// accesses as one call.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/kvm/devices/device.h"

namespace ringside::vmm::kvm {

class FakeLine final : public InterruptLine {
 public:
  void set(bool level) override {
    if (level && !level_) ++rises_;
    level_ = level;
  }
  bool level() const { return level_; }
  unsigned rises() const { return rises_; }

 private:
  std::atomic<bool> level_ = false;
  std::atomic<unsigned> rises_ = 0;
};

class FakeEvents final : public MachineEvents {
 public:
  void guest_ended(MachineState how) override { ends.push_back(how); }
  std::vector<MachineState> ends;
};

/// One read of `size` bytes; all in one number.
inline std::uint64_t read_from(Device& device, std::uint64_t offset, std::size_t size = 1) {
  std::array<std::byte, 8> bytes{};
  device.read(offset, std::span(bytes).first(size));
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), size);
  return value;
}

inline void write_to(Device& device, std::uint64_t offset, std::uint64_t value,
                     std::size_t size = 1) {
  std::array<std::byte, 8> bytes{};
  std::memcpy(bytes.data(), &value, sizeof value);
  device.write(offset, std::span<const std::byte>(bytes).first(size));
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace ringside::vmm::kvm
