// A folder with the form of /proc, for tests of its readers: processes with files and links that
// a test writes. Not linked into the product.
#pragma once

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace ringside::vmm {

class FakeProc {
 public:
  FakeProc() {
    std::string pattern = std::filesystem::temp_directory_path() / "ringside-proc-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~FakeProc() { std::filesystem::remove_all(root_); }
  FakeProc(const FakeProc&) = delete;
  FakeProc& operator=(const FakeProc&) = delete;

  const std::string& root() const { return root_; }
  void file(pid_t pid, const std::string& name, const std::string& text) const {
    const std::filesystem::path path = where(pid, name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void link(pid_t pid, const std::string& name, const std::string& target) const {
    const std::filesystem::path path = where(pid, name);
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::remove(path);
    std::filesystem::create_symlink(target, path);
  }
  /// A thread that waits in a system call, or whatever else `syscall` says.
  void thread(pid_t pid, pid_t thread, const std::string& syscall) const {
    file(pid, fmt::format("task/{}/syscall", thread), syscall + "\n");
    file(pid, fmt::format("task/{}/status", thread), "Name:\tx\nState:\tS (sleeping)\n");
  }

  void remove(pid_t pid, const std::string& name) const {
    std::filesystem::remove_all(where(pid, name));
  }

 private:
  std::filesystem::path where(pid_t pid, const std::string& name) const {
    return std::filesystem::path(root_) / std::to_string(pid) / name;
  }
  std::string root_;
};

}  // namespace ringside::vmm
