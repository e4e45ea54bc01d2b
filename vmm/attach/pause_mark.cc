#include "vmm/attach/pause_mark.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "vmm/attach/process/host_process.h"
#include "vmm/base/own_folder.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {
namespace {

/// The name and the start of a process, which nobody else ever has on this host.
std::string unique_name(pid_t pid, char between) {
  return fmt::format("{}{}{}", pid, between, HostProcess(pid).start_time().value_or(0));
}

}  // namespace

PauseMark::PauseMark(pid_t machine) : machine_(machine), start_(HostProcess(machine).start_time()) {
  const std::string folder = runtime_folder();
  if (mkdir(folder.c_str(), S_IRWXU) != 0 && !open_own_folder(folder, S_IRWXG | S_IRWXO)) return;
  path_ = fmt::format("{}/pause-{}", folder, unique_name(machine, '-'));
}

PauseMark::~PauseMark() {
  if (HostProcess(machine_).start_time() != start_) remove();
}

void PauseMark::set() const {
  if (path_.empty()) return;
  remove();
  const UniqueFd file(
      open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  const std::string text = unique_name(getpid(), ' ');
  if (file) (void)!write(file.get(), text.data(), text.size());
}

void PauseMark::remove() const {
  if (!path_.empty()) unlink(path_.c_str());
}

std::optional<pid_t> PauseMark::left_by() const {
  if (path_.empty()) return std::nullopt;
  const UniqueFd file(open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found {};
  if (!file || fstat(file.get(), &found) != 0 || !is_ours(found, S_IFREG, S_IWGRP | S_IWOTH)) {
    return std::nullopt;
  }
  std::array<char, 64> text{};
  const ssize_t size = read(file.get(), text.data(), text.size());
  if (size <= 0) return std::nullopt;
  const char* const end = text.data() + size;
  pid_t pid = 0;
  const auto [rest, status] = std::from_chars(text.data(), end, pid);
  if (status != std::errc() || pid <= 0) return std::nullopt;
  const bool lives = std::string_view(text.data(), end) == unique_name(pid, ' ');
  return lives ? std::nullopt : std::optional(pid);
}

}  // namespace ringside::vmm
