// A console of one port, the guest's hvc0: the virtio console device (VIRTIO Version 1.2, section
// 5.3) without its multiport feature. Queue 0 carries input, queue 1 output.
// Output that the sink does not take stays on the queue; input that the guest has no buffers for
// waits in a bounded queue. The sink and `room` are those of uart16550.h.
// Threads: any. The sink and `room` are called with the device locked: they must not call it back.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>

#include "vmm/kvm/devices/virtio_device.h"

namespace ringside::vmm::kvm {

class VirtioConsole final : public VirtioDevice {
 public:
  static constexpr std::size_t kQueue = 4096;
  /// Bytes of one chain's output; more is dropped. Linux sends 32 KiB at most.
  static constexpr std::size_t kMostOutput = 1 << 20;

  using Output = std::function<std::size_t(std::span<const std::byte>)>;

  explicit VirtioConsole(Output output, std::function<void()> room = {});

  /// Input for the guest; returns how many bytes were taken.
  std::size_t receive(std::span<const std::byte> bytes);
  /// The sink may take bytes again.
  void output_ready();

  std::uint32_t id() const override { return 3; }
  std::uint64_t features() const override { return 0; }
  std::span<const std::uint16_t> queue_sizes() const override { return kQueueSizes; }
  std::span<const std::byte> config() const override { return config_; }

 private:
  static constexpr std::array<std::uint16_t, 2> kQueueSizes{64, 64};
  enum QueueIndex : unsigned { kReceive, kTransmit };

  std::optional<std::uint32_t> answer(unsigned queue, const DescriptorChain& chain) override;
  bool wants(unsigned queue) const override;
  void stopped() override;
  std::uint32_t give_input(const DescriptorChain& chain);
  bool send(const DescriptorChain& chain);

  const Output output_;
  const std::function<void()> room_;
  std::array<std::byte, 12> config_{};  // struct virtio_console_config: nothing that we offer

  std::deque<std::byte> input_;  // at most kQueue
  bool wanted_room_ = false;     // receive() left something behind
  std::optional<DescriptorChain> unsent_;
  std::size_t sent_ = 0;  // of the chain under way
};

}  // namespace ringside::vmm::kvm
