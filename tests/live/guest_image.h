// The parts of a live guest that must be as they were once we have left it: the kernel's text and
// its modules', the interrupt table, the first megabyte, and the page tables of the kernel image's
// region, of the user half too. Read by the host.
// Used by the tests of this folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "vmm/linux/kernel.h"
#include "vmm/machine.h"

namespace ringside::live {

class GuestImage {
 public:
  /// Of a guest that stands still.
  static GuestImage take(vmm::PausedMachine& machine, const guest_linux::Kernel& kernel);

  /// Where it is not the same, in words, at most `most` places.
  std::vector<std::string> differences(const GuestImage& later, std::size_t most = 8) const;
  std::size_t bytes() const;

 private:
  void add(const std::string& what, vmm::GuestMemory& memory, GuestPhys at, std::uint64_t size);
  void add_virtual(const std::string& what, vmm::GuestMemory& memory, const vmm::PageTable& table,
                   GuestVirt at, std::uint64_t size);
  void add_tables(const std::string& what, vmm::GuestMemory& memory, const vmm::PageTable& table);

  std::map<std::string, std::vector<std::uint64_t>> parts_;
};

}  // namespace ringside::live
