// In this file, top to bottom: one file, a process's descriptors, the lists.
#include "vmm/linux/listing/file_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "vmm/linux/listing/paths.h"
#include "vmm/linux/listing/task_list.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kMostDescriptors = 1 << 20;  // of a process: fs.nr_open unless raised
constexpr std::uint64_t kMostFiles = 1 << 22;        // of all together
constexpr std::size_t kMostRows = 1 << 20;
constexpr std::size_t kMostFsType = 64;
constexpr std::uint64_t kRead = 1, kWrite = 2;  // FMODE_...
constexpr std::uint64_t kSocketMode = 0xc000, kTypeMask = 0xf000;

std::string_view type_of_mode(std::uint64_t mode) {
  switch (mode & kTypeMask) {
    case 0x1000: return "FIFO";
    case 0x2000: return "CHR";
    case 0x4000: return "DIR";
    case 0x6000: return "BLK";
    case 0x8000: return "REG";
    case 0xa000: return "LINK";
    case kSocketMode: return "SOCK";
    default: return "ANON";
  }
}

class FileReader {
 public:
  FileReader(const KernelView& view, Wanted& wanted);

  void add_process(const TaskRow& task);
  void find_sockets(const TaskRow& task, SocketHolders& holders);
  Listing<FileRow> take();

 private:
  /// Calls `each` with the number of each open descriptor and its struct file.
  void visit_descriptors(const TaskRow& task,
                         const std::function<void(std::uint32_t, GuestVirt)>& each);
  void add_place(const TaskRow& task, std::string_view role, const Field& mount,
                 const Field& dentry);
  void add_file(FileRow row, GuestVirt file);
  void add_row(FileRow row, const FilePlace& place, GuestVirt inode);
  std::string name(const FilePlace& place, const StructCopy& inode) const;
  std::optional<GuestVirt> socket_of(const StructCopy& file) const;
  static FileRow row_of(const TaskRow& task);

  const KernelView& view_;
  Paths paths_;
  SocketReader sockets_;
  Shape file_, inode_, super_;
  Field table_, most_, array_, mount_, dentry_, inode_at_, mode_, position_, private_, inode_mode_,
      inode_number_, device_, size_, super_at_, super_device_, super_type_, type_name_, sock_,
      dentry_inode_;
  Field root_mount_, root_dentry_, folder_mount_, folder_dentry_;
  std::optional<Field> program_;
  std::uint64_t files_left_ = kMostFiles;
  bool is_cut_ = false, is_torn_ = false;
  TextBudget texts_;
  Listing<FileRow> found_;
};

FileReader::FileReader(const KernelView& view, Wanted& wanted)
    : view_(view),
      paths_(wanted),
      sockets_(view, wanted),
      file_(wanted, "file"),
      inode_(wanted, "inode"),
      super_(wanted, "super_block") {
  Shape files(wanted, "files_struct"), table(wanted, "fdtable"), fs(wanted, "fs_struct"),
      type(wanted, "file_system_type"), socket(wanted, "socket"), dentry(wanted, "dentry");
  table_ = files.need(wanted, "fdt");
  most_ = table.need(wanted, "max_fds");
  array_ = table.need(wanted, "fd");
  mount_ = file_.need(wanted, "f_path.mnt");
  dentry_ = file_.need(wanted, "f_path.dentry");
  inode_at_ = file_.need(wanted, "f_inode");
  mode_ = file_.need(wanted, "f_mode");
  position_ = file_.need(wanted, "f_pos");
  private_ = file_.need(wanted, "private_data");
  inode_mode_ = inode_.need(wanted, "i_mode");
  inode_number_ = inode_.need(wanted, "i_ino");
  device_ = inode_.need(wanted, "i_rdev");
  size_ = inode_.need(wanted, "i_size");
  super_at_ = inode_.need(wanted, "i_sb");
  super_device_ = super_.need(wanted, "s_dev");
  super_type_ = super_.need(wanted, "s_type");
  type_name_ = type.need(wanted, "name");
  sock_ = socket.need(wanted, "sk");
  dentry_inode_ = dentry.need(wanted, "d_inode");
  root_mount_ = fs.need(wanted, "root.mnt");
  root_dentry_ = fs.need(wanted, "root.dentry");
  folder_mount_ = fs.need(wanted, "pwd.mnt");
  folder_dentry_ = fs.need(wanted, "pwd.dentry");
  program_ = view.field("mm_struct", "exe_file");
}

/// The text of d_dname() where a file has no place in a tree, else its path.
std::string FileReader::name(const FilePlace& place, const StructCopy& inode) const {
  if (paths_.is_loose(place)) {
    const auto super = inode.pointer(super_at_);
    const auto type = super ? view_.pointer(*super, super_type_) : std::nullopt;
    const auto type_name = type ? view_.pointer(*type, type_name_) : std::nullopt;
    const std::string kind = type_name ? view_.raw_text(*type_name, kMostFsType) : std::string();
    const std::uint64_t number = inode.number(inode_number_);
    if (kind == "sockfs") return fmt::format("socket:[{}]", number);
    if (kind == "pipefs") return fmt::format("pipe:[{}]", number);
    if (kind == "anon_inodefs") return "anon_inode:" + paths_.name(place.dentry).value_or("?");
    if (kind == "nsfs" || kind == "pidfs") return fmt::format("{}:[{}]", kind, number);
  }
  return paths_.path(place).value_or("?");
}

std::optional<GuestVirt> FileReader::socket_of(const StructCopy& file) const {
  const auto inode = file.pointer(inode_at_);
  const auto mode = inode ? view_.value(*inode, inode_mode_) : std::nullopt;
  const auto socket = file.pointer(private_);
  if (!mode || (*mode & kTypeMask) != kSocketMode || !socket) return std::nullopt;
  return view_.pointer(*socket, sock_);
}

void FileReader::add_row(FileRow row, const FilePlace& place, GuestVirt inode_at) {
  const auto inode = inode_.copy(inode_at);
  if (!inode) {
    is_torn_ = true;
    return;
  }
  const std::uint64_t mode = inode->number(inode_mode_);
  row.type = type_of_mode(mode);
  row.inode = inode->number(inode_number_);
  const bool is_device = row.type == "CHR" || row.type == "BLK";
  const auto super = inode->pointer(super_at_);
  const std::uint64_t device = is_device
                                   ? inode->number(device_)
                                   : (super ? view_.value(*super, super_device_).value_or(0) : 0);
  row.major = static_cast<std::uint32_t>(device >> 20 & 0xfff);  // MINORBITS
  row.minor = static_cast<std::uint32_t>(device & 0xf'ffff);
  if (row.type == "REG" || row.type == "DIR") row.size = inode->number(size_);
  row.path = name(place, *inode);
  if (found_.rows.size() == kMostRows || !texts_.take(row.path.size())) {
    is_cut_ = true;
    return;
  }
  found_.rows.push_back(std::move(row));
}

void FileReader::add_file(FileRow row, GuestVirt at) {
  const auto file = file_.copy(at);
  const auto mount = file ? file->pointer(mount_) : std::nullopt;
  const auto dentry = file ? file->pointer(dentry_) : std::nullopt;
  const auto inode = file ? file->pointer(inode_at_) : std::nullopt;
  if (!mount || !dentry || !inode) {
    is_torn_ = true;
    return;
  }
  const std::uint64_t mode = file->number(mode_) & (kRead | kWrite);
  row.access = mode == (kRead | kWrite) ? 'u' : mode == kWrite ? 'w' : mode == kRead ? 'r' : ' ';
  row.position = file->number(position_);
  if (const auto sock = socket_of(*file)) row.socket = sockets_.read(*sock);
  add_row(std::move(row), {*mount, *dentry}, *inode);
}

void FileReader::visit_descriptors(const TaskRow& task,
                                   const std::function<void(std::uint32_t, GuestVirt)>& each) {
  constexpr std::uint64_t kAtOnce = 512;
  if (!task.files) return;
  const auto table = view_.pointer(*task.files, table_);
  const auto most = view_.value(table, most_);
  const auto array = table ? view_.pointer(*table, array_) : std::nullopt;
  if (!most || !array) {
    is_torn_ = true;
    return;
  }
  const std::uint64_t count = std::min(*most, kMostDescriptors);
  is_cut_ = is_cut_ || count != *most;
  for (std::uint64_t done = 0; done < count; done += kAtOnce) {
    std::vector<std::uint64_t> files(std::min(kAtOnce, count - done));
    if (files.size() > files_left_) {
      is_cut_ = true;
      return;
    }
    files_left_ -= files.size();
    if (!view_.reader().read(array->wrapping_add(done * 8),
                             std::as_writable_bytes(std::span(files)))) {
      is_torn_ = true;
      return;
    }
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (files[i] != 0) each(static_cast<std::uint32_t>(done + i), GuestVirt(files[i]));
    }
  }
}

FileRow FileReader::row_of(const TaskRow& task) {
  FileRow row;
  row.process = task.process;
  row.command = task.name;
  row.uid = task.uid;
  return row;
}

void FileReader::add_place(const TaskRow& task, std::string_view role, const Field& mount_field,
                           const Field& dentry_field) {
  const auto mount = view_.pointer(*task.paths, mount_field);
  const auto dentry = view_.pointer(*task.paths, dentry_field);
  const auto inode = dentry ? view_.pointer(*dentry, dentry_inode_) : std::nullopt;
  if (!mount || !inode) {
    is_torn_ = true;
    return;
  }
  FileRow row = row_of(task);
  row.role = role;
  add_row(std::move(row), {*mount, *dentry}, *inode);
}

void FileReader::add_process(const TaskRow& task) {
  if (task.paths) {
    add_place(task, "cwd", folder_mount_, folder_dentry_);
    add_place(task, "root", root_mount_, root_dentry_);
  }
  const auto program = task.memory ? view_.pointer(*task.memory, program_) : std::nullopt;
  if (program) {
    FileRow row = row_of(task);
    row.role = "exe";
    add_file(std::move(row), *program);
  }
  visit_descriptors(task, [&](std::uint32_t descriptor, GuestVirt file) {
    FileRow row = row_of(task);
    row.descriptor = descriptor;
    add_file(std::move(row), file);
  });
}

void FileReader::find_sockets(const TaskRow& task, SocketHolders& holders) {
  visit_descriptors(task, [&](std::uint32_t descriptor, GuestVirt at) {
    const auto file = file_.copy(at);
    const auto sock = file ? socket_of(*file) : std::nullopt;
    if (sock) holders.by_socket[sock->raw()].push_back({task.process, task.name, descriptor});
  });
}

Listing<FileRow> FileReader::take() {
  if (is_torn_) {
    found_.notes.emplace_back(
        "some files are left out: what a process has open changed meanwhile, or cannot be read");
  }
  if (paths_.was_cut()) found_.notes.emplace_back("some paths are left out: they are too long");
  if (is_cut_) found_.notes.emplace_back("some files are left out: there are too many");
  return std::move(found_);
}

}  // namespace

Result<Listing<FileRow>> list_files(const ListedGuest& guest, std::optional<std::int64_t> process) {
  return read_until_whole<FileRow>(guest, [&]() -> Result<Listing<FileRow>> {
    Wanted wanted(guest.view);
    FileReader reader(guest.view, wanted);
    TRY(wanted.check("files"));
    const auto tasks = TRY(list_tasks(guest, TaskDetail::ProcessesBrief));
    bool is_there = !process;
    for (const TaskRow& task : tasks.rows) {
      if (process ? task.process != *process : task.is_kernel_thread) continue;
      is_there = true;
      reader.add_process(task);
    }
    if (!is_there)
      return fail(ErrorCode::NotFound, fmt::format("there is no process {}", *process));
    Listing<FileRow> found = reader.take();
    found.notes.insert(found.notes.begin(), tasks.notes.begin(), tasks.notes.end());
    return found;
  });
}

Result<SocketHolders> find_socket_holders(const ListedGuest& guest) {
  Wanted wanted(guest.view);
  FileReader reader(guest.view, wanted);
  TRY(wanted.check("processes of sockets"));
  const auto tasks = TRY(list_tasks(guest, TaskDetail::ProcessesBrief));
  SocketHolders holders;
  for (const TaskRow& task : tasks.rows) reader.find_sockets(task, holders);
  holders.notes = reader.take().notes;
  holders.notes.insert(holders.notes.end(), tasks.notes.begin(), tasks.notes.end());
  return holders;
}

}  // namespace ringside::guest_linux
