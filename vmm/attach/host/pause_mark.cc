#include "vmm/attach/host/pause_mark.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "vmm/attach/host/host_process.h"
#include "vmm/base/numbers.h"
#include "vmm/base/own_folder.h"

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
  const bool has_ended = HostProcess(machine_).start_time() != start_;
  if (has_ended || (has_file() && !is_set_)) remove_file();
}

/// Whether our file is the one that others find; somebody may have removed it.
bool PauseMark::has_file() const {
  struct stat found {};
  return file_ && fstat(file_.get(), &found) == 0 && found.st_nlink != 0;
}

void PauseMark::remove_file() const {
  if (!path_.empty()) unlink(path_.c_str());
}

void PauseMark::make_file() {
  remove_file();
  file_ = UniqueFd(
      open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  setter_ = unique_name(getpid(), ' ');
}

void PauseMark::set() {
  if (path_.empty()) return;
  if (!has_file()) make_file();
  if (file_) (void)!pwrite(file_.get(), setter_.data(), setter_.size(), 0);
  is_set_ = true;
}

void PauseMark::clear() {
  is_set_ = false;
  if (!file_) return remove_file();
  if (has_file() && ftruncate(file_.get(), 0) != 0) remove_file();
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
  const std::string_view name(text.data(), static_cast<std::size_t>(size));
  std::string_view rest = name;
  const auto pid = take_number<pid_t>(rest);
  if (!pid || *pid <= 0) return std::nullopt;
  return name == unique_name(*pid, ' ') ? std::nullopt : pid;
}

}  // namespace ringside::vmm
