// A virtio driver for tests: RAM of a few pages with one queue's rings in it, by the book (VIRTIO
// Version 1.2, section 2.7), and the registers' dance that brings a device up (section 3.1.1).
// Writes RAM directly, as a vCPU does, so that a test can also break any rule.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "vmm/kvm/devices/testing/fakes.h"
#include "vmm/kvm/devices/virtqueue.h"

namespace ringside::vmm::kvm {

class FakeDriver {
 public:
  static constexpr std::uint64_t kRam = 0x10000;  // guest-physical: nothing lies at 0
  static constexpr std::size_t kRamSize = 0x40'0000;
  static constexpr std::uint64_t kData = kRam + 0x10000;  // for buffers
  enum DescriptorFlag : std::uint16_t { kNext = 1, kWrite = 2, kIndirect = 4 };

  explicit FakeDriver(std::uint16_t size = 8) : ram_(kRamSize), size_(size) {}

  GuestMemory& memory() { return memory_; }
  std::uint16_t size() const { return size_; }
  Virtqueue::Rings rings(unsigned queue = 0) const {
    const std::uint64_t base = kRam + queue * 0x4000;
    return {size_, GuestPhys(base), GuestPhys(base + 0x2000), GuestPhys(base + 0x3000)};
  }
  /// Which queue the functions below are about.
  void select(unsigned queue) { queue_ = queue; }

  template <class T>
  T get(std::uint64_t at) const {
    T value;
    std::memcpy(&value, &ram_.at(at - kRam), sizeof value);
    return value;
  }
  template <class T>
  void put(std::uint64_t at, T value) {
    std::memcpy(&ram_.at(at - kRam), &value, sizeof value);
  }
  std::string text(std::uint64_t at, std::size_t size) const {
    std::string result(size, '\0');
    std::memcpy(result.data(), &ram_.at(at - kRam), size);
    return result;
  }
  void put_text(std::uint64_t at, std::string_view text) {
    std::memcpy(&ram_.at(at - kRam), text.data(), text.size());
  }

  void descriptor_at(std::uint64_t at, std::uint64_t address, std::uint32_t length,
                     std::uint16_t flags, std::uint16_t next) {
    put(at, address);
    put(at + 8, length);
    put(at + 12, flags);
    put(at + 14, next);
  }
  void descriptor(std::uint16_t index, std::uint64_t address, std::uint32_t length,
                  std::uint16_t flags = 0, std::uint16_t next = 0) {
    descriptor_at(rings(queue_).descriptors.raw() + index * std::uint64_t{16}, address, length,
                  flags, next);
  }
  /// Makes the chain that begins at `head` available.
  void offer(std::uint16_t head) {
    const std::uint64_t ring = rings(queue_).driver.raw();
    const auto index = get<std::uint16_t>(ring + 2);
    put(ring + 4 + index % size_ * std::uint64_t{2}, head);
    put(ring + 2, static_cast<std::uint16_t>(index + 1));
  }
  struct Piece {
    std::uint64_t address;
    std::uint32_t length;
    std::uint16_t flags = 0;
  };
  /// A chain of descriptors `first`, first + 1..., made available.
  void offer(std::uint16_t first, std::initializer_list<Piece> pieces) {
    auto index = first;
    for (const Piece& piece : pieces) {
      const bool last = index + 1u == first + pieces.size();
      const auto next = static_cast<std::uint16_t>(index + 1);
      descriptor(index, piece.address, piece.length,
                 static_cast<std::uint16_t>(piece.flags | (last ? 0 : kNext)), next);
      index = next;
    }
    offer(first);
  }
  std::uint16_t used_index() const { return get<std::uint16_t>(rings(queue_).device.raw() + 2); }
  /// The used ring's entry number `index` from the beginning: {head, written}.
  std::pair<std::uint32_t, std::uint32_t> used(std::uint16_t index) const {
    const std::uint64_t at = rings(queue_).device.raw() + 4 + index % size_ * std::uint64_t{8};
    return {get<std::uint32_t>(at), get<std::uint32_t>(at + 4)};
  }
  void suppress_interrupts() { put(rings(queue_).driver.raw(), std::uint16_t{1}); }
  void set_used_event(std::uint16_t index) {
    put(rings(queue_).driver.raw() + 4 + size_ * std::uint64_t{2}, index);
  }
  std::uint16_t avail_event() const {
    return get<std::uint16_t>(rings(queue_).device.raw() + 4 + size_ * std::uint64_t{8});
  }
  bool notifications_suppressed() const {
    return get<std::uint16_t>(rings(queue_).device.raw()) != 0;
  }

  /// Reset, negotiation, queues, DRIVER_OK. The status that the device ends up with.
  std::uint64_t bring_up(Device& transport, unsigned queues = 1,
                         std::uint64_t features = std::uint64_t{1} << 32) {
    const auto out = [&](std::uint64_t offset, std::uint64_t value) {
      write_to(transport, offset, value, 4);
    };
    out(0x070, 0);
    out(0x070, 1);
    out(0x070, 3);
    for (std::uint64_t half = 0; half < 2; ++half) {
      out(0x024, half);
      out(0x020, features >> (32 * half));
    }
    out(0x070, 11);
    for (unsigned queue = 0; queue < queues; ++queue) {
      const Virtqueue::Rings where = rings(queue);
      out(0x030, queue);
      out(0x038, where.size);
      const std::uint64_t rings[] = {where.descriptors.raw(), where.driver.raw(),
                                     where.device.raw()};
      for (std::uint64_t i = 0; i < 3; ++i) {
        out(0x080 + i * 0x10, rings[i]);
        out(0x084 + i * 0x10, rings[i] >> 32);
      }
      out(0x044, 1);
    }
    out(0x070, 15);
    return read_from(transport, 0x070, 4);
  }

 private:
  std::vector<std::byte> ram_;
  GuestMemory memory_{{{GuestPhys(kRam), ram_}}};
  std::uint16_t size_;
  unsigned queue_ = 0;
};

// These two are named by nearly every line of such a test.
inline constexpr std::uint64_t kData = FakeDriver::kData;
inline constexpr std::uint16_t kWrite = FakeDriver::kWrite;

}  // namespace ringside::vmm::kvm
