// Names of code that a process makes at run time, as its runtime writes them into
// /tmp/perf-PID.map for Linux's perf (tools/perf/Documentation/jit-interface.txt): lines
// "START SIZE name", the first two in hexadecimal. Node (--perf-basic-prof), Java's agents, .NET
// (DOTNET_PerfMapEnabled=1) and Python 3.12 (-X perf) write such files, and add lines as they go.
// Hostile input: the text is the guest's; its size and the number of lines are bounded, and names
// are made printable.
// Used by UserNames.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "vmm/linux/processes/file_bytes.h"

namespace ringside::guest_linux {

class PerfMap {
 public:
  static constexpr std::uint64_t kMostBytes = 64 << 20;  // of the file; what follows is not read
  static constexpr std::size_t kMostNames = 1 << 19;
  static constexpr std::size_t kLongestName = 1024;

  /// Reads the lines that are new. Pages of the file that are not in memory end it.
  void read_more(const FileBytes& file);
  struct Found {
    std::string_view name;     // good until the next read_more()
    std::uint64_t offset = 0;  // from its start
  };
  /// By the last line that has the address.
  std::optional<Found> at(std::uint64_t address) const;
  /// Bytes that it takes, about.
  std::size_t bytes() const { return bytes_; }

 private:
  struct Code {
    std::uint64_t size = 0;
    std::string name;
  };
  void take(std::string_view line);

  std::map<std::uint64_t, Code> code_;  // by address
  std::uint64_t done_ = 0;              // bytes of the file, whole lines
  std::size_t bytes_ = 0;
};

}  // namespace ringside::guest_linux
