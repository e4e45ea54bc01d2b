// The files in which running traces leave their figures for `ringside stats`. Each process has one
// file, in a folder that only its user can open. The process holds a lock on its file for as long
// as it lives. The file of a killed process has no lock, and `stats` removes it. `stats` only reads
// files and asks no trace, so it also shows a trace that hangs.
// Threads: one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/statistics/figures.h"
#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::cli {

class FiguresFile {
 public:
  /// The folder is made where it is missing. Io where it is somebody else's, or open to others.
  static Result<FiguresFile> create(const std::string& folder);
  /// Takes the file away.
  ~FiguresFile();
  FiguresFile(FiguresFile&& other) noexcept = default;
  FiguresFile& operator=(FiguresFile&&) = delete;

  /// In the place of what it held before.
  void write(std::span<const Figures> machines);

 private:
  FiguresFile(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  UniqueFd fd_;  // -1 once moved from
  std::string path_;
};

/// The figures that one process has left.
struct ProcessFigures {
  std::int64_t pid = 0;
  double age = 0;  // seconds since they were written
  std::vector<Figures> machines;
};

/// The figures of all processes of this user that trace now, in the order of their process ids;
/// none if there is no such folder.
Result<std::vector<ProcessFigures>> read_figures(const std::string& folder);

}  // namespace ringside::cli
