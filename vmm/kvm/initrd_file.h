// The initrd, mapped while it is loaded. Refuses a file that ends too early (initrd_parts.h).
// Used by kvm_machine.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "vmm/base/result.h"

namespace ringside::vmm::kvm {

class InitrdFile {
 public:
  /// No bytes for an empty path. NotFound, Io, or Invalid for a file that is empty or cut off, with
  /// the way out.
  static Result<InitrdFile> open(const std::string& path);
  InitrdFile(InitrdFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  InitrdFile& operator=(InitrdFile&&) = delete;
  ~InitrdFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit InitrdFile(std::span<std::byte> bytes) : bytes_(bytes) {}

  std::span<std::byte> bytes_;
};

}  // namespace ringside::vmm::kvm
