// A disk's file for the time of a test, and what opening one says.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "vmm/kvm/devices/disk_file.h"

namespace ringside::vmm::kvm {

class TemporaryDisk {
 public:
  explicit TemporaryDisk(std::string_view content)
      : path_(testing::TempDir() + "disk-" + std::to_string(::getpid()) + "-" +
              std::to_string(next_number())) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryDisk() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }
  std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  static int next_number() {
    static int last = 0;
    return ++last;
  }

  std::string path_;
};

/// The error, or nothing.
inline std::string message_of(const DiskConfig& config) {
  auto file = DiskFile::open(config);
  return file ? "" : file.error().message;
}

}  // namespace ringside::vmm::kvm
