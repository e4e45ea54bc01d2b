#include "vmm/kvm/devices/virtio_mmio.h"

#include <utility>

#include "vmm/kvm/devices/device.h"

namespace ringside::vmm::kvm {
namespace {

// Section 4.2.2, table 4.1.
enum Register : std::uint64_t {
  kMagic = 0x000,
  kVersion = 0x004,
  kDeviceId = 0x008,
  kVendorId = 0x00c,
  kDeviceFeatures = 0x010,
  kDeviceFeaturesSelect = 0x014,
  kDriverFeatures = 0x020,
  kDriverFeaturesSelect = 0x024,
  kQueueSelect = 0x030,
  kQueueSizeMax = 0x034,
  kQueueSize = 0x038,
  kQueueReady = 0x044,
  kInterruptStatus = 0x060,
  kInterruptAck = 0x064,
  kStatus = 0x070,
  kQueueDescriptorsLow = 0x080,
  kQueueDescriptorsHigh = 0x084,
  kQueueDriverLow = 0x090,
  kQueueDriverHigh = 0x094,
  kQueueDeviceLow = 0x0a0,
  kQueueDeviceHigh = 0x0a4,
  kConfigGeneration = 0x0fc,
  kConfig = 0x100,
};
constexpr std::uint32_t kMagicValue = 0x7472'6976;   // "virt"
constexpr std::uint32_t kVendorValue = 0x4453'4752;  // "RGSD"

// Section 2.1.
enum DeviceStatus : std::uint32_t {
  kFeaturesOk = 8,
  kDriverOk = 4,
  kDriversBits = 1 | 2 | kDriverOk | kFeaturesOk | 128,
};

constexpr std::uint32_t kNeedsReset = 64;  // the device's bit

// Section 4.2.2: InterruptStatus.
enum Cause : std::uint32_t { kUsedBuffers = 1, kConfigChanged = 2 };

// Section 6.
constexpr std::uint64_t kIndirectDescriptors = std::uint64_t{1} << 28;
constexpr std::uint64_t kEventIndex = std::uint64_t{1} << 29;
constexpr std::uint64_t kVersion1 = std::uint64_t{1} << 32;

/// The half of 64 bits that a select register chooses; other selections have no bits.
std::uint32_t half(std::uint64_t bits, std::uint32_t select) {
  return select < 2 ? static_cast<std::uint32_t>(bits >> (32 * select)) : 0;
}
void set_half(std::uint64_t& bits, std::uint32_t select, std::uint32_t value) {
  if (select >= 2) return;
  const unsigned shift = 32 * select;
  bits = (bits & ~(std::uint64_t{UINT32_MAX} << shift)) | (std::uint64_t{value} << shift);
}
void set_half(GuestPhys& address, std::uint32_t select, std::uint32_t value) {
  std::uint64_t raw = address.raw();
  set_half(raw, select, value);
  address = GuestPhys(raw);
}

}  // namespace

VirtioMmio::VirtioMmio(InterruptLine& line, GuestMemory& memory, VirtioDevice& device,
                       std::function<void(unsigned)> kick,
                       std::function<void(std::string_view)> complain)
    : line_(line),
      memory_(memory),
      device_(device),
      kick_(std::move(kick)),
      complain_(std::move(complain)),
      queues_(device.queue_sizes().size()) {}

VirtioMmio::~VirtioMmio() {
  device_.stop();
}

void VirtioMmio::read(std::uint64_t offset, std::span<std::byte> data) {
  put_all_ones(data);
  if (offset >= kConfig) {
    const auto config = device_.config();
    for (std::size_t at = offset - kConfig; std::byte & byte : data) {
      if (at < config.size()) byte = config[at];
      ++at;
    }
  } else if (data.size() == 4 && offset % 4 == 0) {
    const std::scoped_lock lock(mutex_);
    put_value(data, read_register(offset));
  }
}

void VirtioMmio::write(std::uint64_t offset, std::span<const std::byte> data) {
  if (offset >= kConfig || data.size() != 4 || offset % 4 != 0) return;
  const auto value = static_cast<std::uint32_t>(value_of(data));
  if (offset == kQueueNotify) return notify(value);
  const std::scoped_lock lock(mutex_);
  write_register(offset, value);
}

std::uint64_t VirtioMmio::offered() const {
  return device_.features() | kVersion1 | kIndirectDescriptors | kEventIndex;
}

VirtioMmio::QueueSetUp* VirtioMmio::selected() {
  return queue_select_ < queues_.size() ? &queues_[queue_select_] : nullptr;
}

std::uint32_t VirtioMmio::read_register(std::uint64_t offset) {
  const QueueSetUp* queue = selected();
  switch (offset) {
    case kMagic: return kMagicValue;
    case kVersion: return 2;
    case kDeviceId: return device_.id();
    case kVendorId: return kVendorValue;
    case kDeviceFeatures: return half(offered(), device_features_select_);
    case kQueueSizeMax: return queue != nullptr ? device_.queue_sizes()[queue_select_] : 0;
    case kQueueReady: return queue != nullptr && queue->ready ? 1 : 0;
    case kInterruptStatus: {
      const std::scoped_lock lock(signal_mutex_);
      return interrupt_status_;
    }
    case kStatus: {
      const std::scoped_lock lock(signal_mutex_);
      return status_ | (needs_reset_ ? kNeedsReset : 0);
    }
    case kConfigGeneration: return 0;
    default: return UINT32_MAX;  // write-only, or without meaning
  }
}

void VirtioMmio::write_register(std::uint64_t offset, std::uint32_t value) {
  switch (offset) {
    case kDeviceFeaturesSelect: device_features_select_ = value; break;
    case kDriverFeaturesSelect: driver_features_select_ = value; break;
    case kDriverFeatures:
      if ((status_ & kFeaturesOk) == 0) {
        set_half(driver_features_, driver_features_select_, value);
      }
      break;
    case kQueueSelect: queue_select_ = value; break;
    case kInterruptAck: {
      const std::scoped_lock lock(signal_mutex_);
      interrupt_status_ &= ~value;
      line_.set(interrupt_status_ != 0);
      break;
    }
    case kStatus: write_status(value); break;
    default: write_queue_register(offset, value); break;
  }
}

/// A queue is set up before DRIVER_OK and, once ready, fixed (section 4.2.3.2).
void VirtioMmio::write_queue_register(std::uint64_t offset, std::uint32_t value) {
  QueueSetUp* const queue = selected();
  if (queue == nullptr || (status_ & kDriverOk) != 0) return;
  Virtqueue::Rings& rings = queue->rings;
  if (offset == kQueueReady) {
    queue->ready = value == 1;
    return;
  }
  if (queue->ready) return;
  switch (offset) {
    case kQueueSize:
      // 0, which no queue can have, stands for a size that was too large.
      rings.size = value <= device_.queue_sizes()[queue_select_] ? std::uint16_t(value) : 0;
      break;
    case kQueueDescriptorsLow: set_half(rings.descriptors, 0, value); break;
    case kQueueDescriptorsHigh: set_half(rings.descriptors, 1, value); break;
    case kQueueDriverLow: set_half(rings.driver, 0, value); break;
    case kQueueDriverHigh: set_half(rings.driver, 1, value); break;
    case kQueueDeviceLow: set_half(rings.device, 0, value); break;
    case kQueueDeviceHigh: set_half(rings.device, 1, value); break;
    default: break;
  }
}

void VirtioMmio::write_status(std::uint32_t value) {
  if (value == 0) return reset();
  const bool had_features = (status_ & kFeaturesOk) != 0, had_driver = (status_ & kDriverOk) != 0;
  std::uint32_t added = value & kDriversBits;  // a driver never clears a bit (section 2.1.1)
  const bool acceptable =
      (driver_features_ & ~offered()) == 0 && (driver_features_ & kVersion1) != 0;
  if (!had_features && !acceptable) added &= ~std::uint32_t{kFeaturesOk};
  if (((status_ | added) & kFeaturesOk) == 0) added &= ~std::uint32_t{kDriverOk};
  status_ |= added;
  if (!had_driver && (status_ & kDriverOk) != 0) start();
}

void VirtioMmio::start() {
  std::vector<std::optional<Virtqueue>> queues(queues_.size());
  bool bad = false;
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    if (!queues_[i].ready) continue;
    queues[i] = Virtqueue::create(memory_, queues_[i].rings, (driver_features_ & kEventIndex) != 0);
    bad = bad || !queues[i];
  }
  device_.start(std::move(queues), *this);
  if (bad) needs_reset("a ring that is misaligned, of a wrong size, or outside the guest's memory");
}

void VirtioMmio::reset() {
  device_.stop();
  device_features_select_ = driver_features_select_ = queue_select_ = 0;
  driver_features_ = 0;
  status_ = 0;
  queues_.assign(queues_.size(), {});
  const std::scoped_lock lock(signal_mutex_);
  interrupt_status_ = 0;
  needs_reset_ = false;
  line_.set(false);
}

void VirtioMmio::notify(std::uint32_t queue) {
  if (kick_) {
    kick_(queue);
  } else {
    device_.notify(queue);
  }
}

void VirtioMmio::used() {
  raise(kUsedBuffers);
}

void VirtioMmio::needs_reset(std::string_view broken_rule) {
  bool first;
  {
    const std::scoped_lock lock(signal_mutex_);
    if (std::exchange(needs_reset_, true)) return;
    first = !std::exchange(complained_, true);
  }
  raise(kConfigChanged);
  if (first && complain_) complain_(broken_rule);
}

void VirtioMmio::more(unsigned queue) {
  if (kick_) kick_(queue);
}

void VirtioMmio::raise(std::uint32_t cause) {
  const std::scoped_lock lock(signal_mutex_);
  if (std::exchange(interrupt_status_, interrupt_status_ | cause) == 0) line_.set(true);
}

}  // namespace ringside::vmm::kvm
