// Unwind tables of the guest's files whose pages its kernel has not in memory, from the host's
// copies of these files (host_files.h). A firing cannot open files: it says what it lacks, and goes
// on without. The session's thread reads that a moment later (serve()), for all firings that come.
// Used by UserUnwinder. Does not: change or drop what it has read; there is room for 64 files, and
// for 256 MiB of tables.
// Hostile input: which files are asked for, and when, is the guest's choice; the tables are checked
// by who reads them.
// Threads: serve() on the session's, the others on any, at the same time. Fire context: serve() no,
// the others yes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vmm/base/address.h"
#include "vmm/linux/processes/page_cache.h"
#include "vmm/linux/processes/processes.h"

namespace ringside::guest_linux {

class HostFiles;

class HostUnwindTables {
 public:
  /// Sections .eh_frame and .eh_frame_hdr of a file.
  class Tables {
   public:
    /// Copies bytes by their offset in the guest's file; returns how many were there.
    std::size_t read(std::uint64_t offset, std::span<std::byte> out) const;

   private:
    friend HostUnwindTables;
    struct Section {
      std::uint64_t offset = 0;
      std::vector<std::byte> bytes{};
    };
    std::vector<Section> sections_;
  };

  /// Empty: nobody has asked for the file; want() does. Null: the host has none, or serve() has not
  /// looked yet.
  std::optional<const Tables*> tables_of(const FileIdentity& file) const;
  /// `path`: serve() looks when the process may have ended, and its struct file is gone.
  void want(const FileIdentity& file, const FilePathPlace& path);

  /// Whether serve() has something to look for.
  bool is_asked() const;

  /// A file that is asked for, as the guest has it now.
  struct Opened {
    FilePages pages;
    std::string path;  // in the guest; empty: it cannot be read
  };
  /// Looks for the files that were asked for since the last call. `open`: empty where the guest's
  /// kernel has forgotten the file.
  using Open = std::function<std::optional<Opened>(const FileIdentity&, const FilePathPlace&)>;
  void serve(HostFiles& host, const Open& open);

 private:
  enum class State : std::uint8_t { Free, Taken, Wanted, Missing, Found };
  struct Place {
    std::atomic<State> state{State::Free};
    // Written before Wanted.
    FileIdentity file;
    FilePathPlace path{};
    // Written before Found.
    Tables tables;
  };
  Tables read_tables(HostFiles& host, const Opened& file);

  std::array<Place, 64> places_;  // those in use come first
  std::size_t bytes_ = 0;
};

}  // namespace ringside::guest_linux
