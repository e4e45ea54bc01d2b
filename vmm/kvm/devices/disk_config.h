// The configuration of a guest's disk.
#pragma once

#include <string>

namespace ringside::vmm {

/// A raw file as a virtio block device.
struct DiskConfig {
  std::string path;
  bool read_only = false;
};

}  // namespace ringside::vmm
