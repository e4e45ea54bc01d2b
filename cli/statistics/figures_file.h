// The files in which running traces leave their figures for `ringside stats`: one for each process,
// in a folder that is its user's alone. The process holds a lock on its file as long as it lives,
// so a killed one's file is told apart, and is removed at the next look. Files are only read, so
// no trace is asked, and one that hangs can still be looked at.
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

/// Those of all processes of this user that trace now, in the order of their numbers; none where
/// there is no such folder.
Result<std::vector<ProcessFigures>> read_figures(const std::string& folder);

}  // namespace ringside::cli
