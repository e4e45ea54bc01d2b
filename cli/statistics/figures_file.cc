// In this file, top to bottom: the folder, writing, reading.
#include "cli/statistics/figures_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>

#include "vmm/base/bounded_json.h"
#include "vmm/base/numbers.h"
#include "vmm/base/own_folder.h"

namespace ringside::cli {
namespace {

constexpr std::string_view kSuffix = ".json";
/// More than any trace writes; what is longer is none of ours.
constexpr std::size_t kMostBytes = 1 << 20;
/// A file is written in one piece but not at one moment: a reader that comes meanwhile
/// reads again.
constexpr unsigned kReads = 5;

std::uint64_t now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
}

/// The folder, which must be ours and nobody else's.
Result<UniqueFd> open_folder(const std::string& folder) {
  auto opened = open_own_folder(folder, S_IRWXG | S_IRWXO);
  if (opened) return opened;
  const Error& why = opened.error();
  if (why.code != ErrorCode::Invalid) {
    return fail(why.code, fmt::format("{}: {}", folder, why.message));
  }
  return fail(ErrorCode::Io, fmt::format("{}: it is not yours alone, so no figures of traces "
                                         "are kept there",
                                         folder));
}

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

/// The process that holds the lock on a file; 0: it has ended.
std::int64_t holder_of(int fd) {
  struct flock lock = whole_file(F_WRLCK);
  if (::fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return 0;
  return lock.l_pid;
}

std::optional<Tree> read_tree(int fd) {
  for (unsigned n = 0; n < kReads; ++n) {
    std::string text(kMostBytes, '\0');
    const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
    if (size < 0) return std::nullopt;
    text.resize(static_cast<std::size_t>(size));
    Tree tree = parse_bounded<Tree>(text);
    if (tree.is_object()) return tree;
    ::usleep(1000);
  }
  return std::nullopt;
}

std::optional<ProcessFigures> process_figures(std::int64_t pid, const Tree& tree) {
  const auto time = tree.find("time_ns");
  const auto machines = tree.find("machines");
  if (time == tree.end() || !time->is_number_unsigned() || machines == tree.end()) return {};
  ProcessFigures process{.pid = pid, .machines = {}};
  const std::uint64_t written = time->get<std::uint64_t>(), now = now_ns();
  process.age = now > written ? static_cast<double>(now - written) / 1e9 : 0;
  for (const Tree& machine : *machines) {
    auto figures = figures_of(machine);
    if (!figures) return std::nullopt;
    const auto name = machine.find("machine");
    if (name != machine.end() && name->is_string()) figures->machine = name->get<std::string>();
    process.machines.push_back(std::move(*figures));
  }
  return process;
}

std::optional<ProcessFigures> read_file(int folder, const char* name) {
  std::string_view suffix(name);
  const auto pid = take_number<std::int64_t>(suffix);
  if (!pid || suffix != kSuffix) return std::nullopt;
  UniqueFd fd(::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return std::nullopt;
  if (*pid != ::getpid() && holder_of(fd.get()) != *pid) {
    ::unlinkat(folder, name, 0);
    return std::nullopt;
  }
  const auto tree = read_tree(fd.get());
  return tree ? process_figures(*pid, *tree) : std::nullopt;
}

}  // namespace

Result<FiguresFile> FiguresFile::create(const std::string& folder) {
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return fail(ErrorCode::Io, fmt::format("{}: {}", folder, std::strerror(errno)));
  }
  const UniqueFd directory = TRY(open_folder(folder));
  const std::string name = std::to_string(::getpid()) + std::string(kSuffix);
  // One of a process that had our number goes first: somebody may have it open.
  ::unlinkat(directory.get(), name.c_str(), 0);
  UniqueFd fd(::openat(directory.get(), name.c_str(),
                       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  struct flock lock = whole_file(F_WRLCK);
  if (!fd || ::fcntl(fd.get(), F_SETLK, &lock) != 0) {
    return fail(ErrorCode::Io, fmt::format("{}/{}: {}", folder, name, std::strerror(errno)));
  }
  return FiguresFile(std::move(fd), folder + '/' + name);
}

FiguresFile::~FiguresFile() {
  if (fd_) ::unlink(path_.c_str());
}

void FiguresFile::write(std::span<const Figures> machines) {
  Tree tree;
  tree["time_ns"] = now_ns();
  tree["machines"] = Tree::array();
  for (const Figures& figures : machines) {
    Tree machine;
    machine["machine"] = figures.machine;
    machine.update(figures_tree(figures));
    tree["machines"].push_back(std::move(machine));
  }
  const std::string text = tree.dump(-1, ' ', false, Tree::error_handler_t::replace);
  const ssize_t written = ::pwrite(fd_.get(), text.data(), text.size(), 0);
  if (written > 0 && ::ftruncate(fd_.get(), written) != 0) return;
}

Result<std::vector<ProcessFigures>> read_figures(const std::string& folder) {
  std::vector<ProcessFigures> all;
  UniqueFd directory;
  if (auto opened = open_folder(folder); opened) {
    directory = std::move(*opened);
  } else if (opened.error().code == ErrorCode::NotFound) {
    return all;
  } else {
    return tl::make_unexpected(std::move(opened).error());
  }
  for (const std::string& name : list_names(directory.get())) {
    if (auto process = read_file(directory.get(), name.c_str())) all.push_back(std::move(*process));
  }
  std::ranges::sort(all, {}, &ProcessFigures::pid);
  return all;
}

}  // namespace ringside::cli
