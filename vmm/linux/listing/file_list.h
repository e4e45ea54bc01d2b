// The files that processes of a guest have open, as lsof and /proc/PID/fd show them: by descriptor,
// and the root, the current folder and the program of each process.
// Source: task_struct.files->fdt (struct fdtable), struct file, inode, super_block (include/linux/
// fdtable.h, fs.h); fs_struct.root and pwd; mm_struct.exe_file. The text of pipes, sockets and the
// like is that of their d_dname() (fs/pipe.c, net/socket.c, fs/anon_inodes.c).
// Used by `lsof`, and by `netstat` for the processes of sockets. Hostile input: bounded; raw bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vmm/linux/listing/listing.h"
#include "vmm/linux/listing/socket_list.h"

namespace ringside::guest_linux {

struct FileRow {
  std::int64_t process = 0;
  std::string command;  // its name
  std::uint32_t uid = 0;
  std::optional<std::uint32_t> descriptor;  // empty: what `role` says
  std::string_view role;                    // "cwd", "root", "exe"
  char access = ' ';                        // r, w, u (both); blank: opened for neither
  std::string_view type;               // "REG", "DIR", "CHR", "BLK", "FIFO", "SOCK", "LINK", "ANON"
  std::uint32_t major = 0, minor = 0;  // of a device, else of the file system
  std::uint64_t inode = 0;
  std::optional<std::uint64_t> size;  // bytes, of files and folders
  std::uint64_t position = 0;         // bytes
  std::string path;                   // "/etc/passwd", "pipe:[123]"
  std::optional<SocketRow> socket;
};

/// Of one process, or of all but kernel threads, which open nothing. NotFound: there is no such
/// process.
Result<Listing<FileRow>> list_files(const ListedGuest& guest, std::optional<std::int64_t> process);

/// A descriptor that a socket is open by.
struct SocketHolder {
  std::int64_t process = 0;
  std::string command;
  std::uint32_t descriptor = 0;
};
/// By the address of struct sock. Notes tell what is missing.
struct SocketHolders {
  std::unordered_map<std::uint64_t, std::vector<SocketHolder>> by_socket;
  std::vector<std::string> notes;
};
Result<SocketHolders> find_socket_holders(const ListedGuest& guest);

}  // namespace ringside::guest_linux
