// RAM that may be plugged into and out of a QEMU's guest while we are attached. It covers the part
// of guest-physical memory that the machine reserves for that, and copies from the QEMU process
// what is plugged in now. A read where nothing is known fails, and event_fd() then asks for a new
// look. Used by MonitoredRam. Threads: read(), write() any; set() one at a time.
// Fire context: as CopiedBytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vmm/base/unique_fd.h"
#include "vmm/copied_bytes.h"

namespace ringside::vmm {

class PluggedMemory final : public CopiedBytes {
 public:
  /// [base, base + size) of guest-physical memory is what the process has from `host` on.
  struct Block {
    std::uint64_t base = 0, size = 0, host = 0;
    bool operator==(const Block&) const = default;
  };

  explicit PluggedMemory(std::shared_ptr<CopiedBytes> process);

  /// Sets the memory that is plugged in now: blocks that do not overlap, in order. False once it
  /// has changed more often than any machine's owner would change it; then nothing is plugged in
  /// any more.
  [[nodiscard]] bool set(std::vector<Block> blocks);
  /// Readable when somebody looked where nothing is known to be, or asked; set() clears it.
  int event_fd() const { return missed_event_.get(); }
  void ask_for_look() const;

  /// Offsets are guest-physical addresses.
  [[nodiscard]] bool read(std::span<const CopyPart> parts) const override;
  [[nodiscard]] bool write(std::uint64_t offset, std::span<const std::byte> bytes) override;
  std::vector<ByteExtent> extents(ByteExtent of) const override;

 private:
  using Table = std::vector<Block>;
  std::uint64_t host_address(std::uint64_t offset, std::size_t size) const;

  std::shared_ptr<CopiedBytes> process_;
  UniqueFd missed_event_;
  mutable std::atomic<bool> missed_{false};
  // Readers take no lock, so tables stay until the end.
  std::vector<std::unique_ptr<const Table>> tables_;
  std::atomic<const Table*> current_;
};

}  // namespace ringside::vmm
