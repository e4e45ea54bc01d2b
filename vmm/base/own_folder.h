// Folders and files that only the user can change: a folder or file that others may write is
// refused before anything in it is read. A folder is opened once, and its files are opened by its
// descriptor, so that the folder that was checked is the one that is read.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside {

/// Whether the file has this type (S_IFREG, S_IFDIR), belongs to the user, and has none of the mode
/// bits `refused`.
bool is_ours(const struct stat& file, mode_t type, mode_t refused);

/// The user's own folder for files that need not survive a reboot of the host:
/// $XDG_RUNTIME_DIR/ringside, or without that variable a folder of the user's in /tmp. It need not
/// exist.
std::string runtime_folder();

/// A link at its end is not followed. NotFound or Io with the system's word for what is in the way;
/// Invalid when it is not ours.
Result<UniqueFd> open_own_folder(const std::string& folder, mode_t refused);

/// The names in an open folder, "." and ".." too; none when it cannot be read.
std::vector<std::string> list_names(int folder);

}  // namespace ringside
