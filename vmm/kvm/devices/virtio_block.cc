#include "vmm/kvm/devices/virtio_block.h"

#include <algorithm>
#include <cstring>

#include "vmm/kvm/devices/device.h"

namespace ringside::vmm::kvm {
namespace {

// Section 5.2.3.
constexpr std::uint64_t kSizeMax = 1 << 1, kSegMax = 1 << 2, kReadOnly = 1 << 5;
constexpr std::uint64_t kBlockSize = 1 << 6, kFlush = 1 << 9;

// Section 5.2.6: struct virtio_blk_req's head, types and status.
struct RequestHead {
  std::uint32_t type, reserved;
  std::uint64_t sector;
};
static_assert(sizeof(RequestHead) == 16);
enum Type : std::uint32_t { kIn = 0, kOut = 1, kFlushNow = 4, kGetId = 8 };
enum RequestStatus : std::uint8_t { kOk = 0, kIoError = 1, kUnsupported = 2 };
constexpr std::size_t kIdSize = 20;

}  // namespace

struct VirtioBlock::Outcome {
  RequestStatus status = kIoError;
  std::size_t data_written = 0;  // to guest memory; the status follows it
};

VirtioBlock::VirtioBlock(DiskFile file, std::string serial)
    : file_(std::move(file)), serial_(std::move(serial)) {
  const std::span config(config_);  // section 5.2.4
  put_value(config.subspan(0, 8), file_.size() / DiskFile::kSector);
  put_value(config.subspan(8, 4), kLargestPiece);
  put_value(config.subspan(12, 4), kMostPieces);
  put_value(config.subspan(20, 4), DiskFile::kSector);
}

std::uint64_t VirtioBlock::features() const {
  return kSizeMax | kSegMax | kBlockSize | kFlush | (file_.read_only() ? kReadOnly : 0);
}

std::optional<std::uint32_t> VirtioBlock::answer(unsigned, const DescriptorChain& chain) {
  if (chain.writable_size == 0) return 0;  // nowhere to say even that
  const auto [status, data_written] = perform(chain);
  const auto byte = std::byte{status};
  copy_to(chain.writable, chain.writable_size - 1, {&byte, 1});
  // The count is of bytes written from the start on; after an error there may be a gap.
  const bool gap = data_written != chain.writable_size - 1;
  return gap ? 0 : static_cast<std::uint32_t>(chain.writable_size);
}

/// Whether a request's data is within the disk and as large as we said that it may be.
bool VirtioBlock::in_range(std::uint64_t sector, std::size_t size, std::size_t pieces) const {
  const std::uint64_t sectors = file_.size() / DiskFile::kSector;
  return size % DiskFile::kSector == 0 && sector <= sectors &&
         size / DiskFile::kSector <= sectors - sector &&
         size <= std::size_t{kMostPieces} * kLargestPiece && pieces <= kQueueSize;
}

VirtioBlock::Outcome VirtioBlock::perform(const DescriptorChain& chain) {
  RequestHead head{};
  if (copy_from(chain.readable, 0, std::as_writable_bytes(std::span(&head, 1))) != sizeof head) {
    return {};
  }
  const std::size_t in = chain.writable_size - 1, out = chain.readable_size - sizeof head;
  switch (head.type) {
    case kIn: {
      if (!in_range(head.sector, in, chain.writable.size())) return {};
      const auto pieces = slice(chain.writable, 0, in);
      if (!file_.read(head.sector * DiskFile::kSector, pieces)) return {};
      return {kOk, in};
    }
    case kOut: {
      if (file_.read_only() || !in_range(head.sector, out, chain.readable.size())) return {};
      const auto pieces = slice(chain.readable, sizeof head, out);
      return {file_.write(head.sector * DiskFile::kSector, pieces) ? kOk : kIoError};
    }
    case kFlushNow: return {file_.flush() ? kOk : kIoError};
    case kGetId: {
      std::array<std::byte, kIdSize> id{};  // padded with zeroes
      std::memcpy(id.data(), serial_.data(), std::min(serial_.size(), id.size()));
      return {kOk, copy_to(chain.writable, 0, std::span(id).first(std::min(in, id.size())))};
    }
    default: return {kUnsupported};
  }
}

}  // namespace ringside::vmm::kvm
