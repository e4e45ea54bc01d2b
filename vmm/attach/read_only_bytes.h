// A read-only view of CopiedBytes: every write is refused. Used for machines that are only read.
// Fire context: as CopiedBytes.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "vmm/copied_bytes.h"

namespace ringside::vmm {

class ReadOnlyBytes final : public CopiedBytes {
 public:
  explicit ReadOnlyBytes(std::shared_ptr<const CopiedBytes> bytes) : bytes_(std::move(bytes)) {}

  [[nodiscard]] bool read(std::span<const CopyPart> parts) const override {
    return bytes_->read(parts);
  }
  [[nodiscard]] bool write(std::uint64_t, std::span<const std::byte>) override { return false; }
  std::vector<ByteExtent> extents(ByteExtent of) const override { return bytes_->extents(of); }

 private:
  std::shared_ptr<const CopiedBytes> bytes_;
};

}  // namespace ringside::vmm
