// Folders and files that are the user's own: what others may do with them is refused before
// anything in them is believed. A folder is opened once and looked into by its descriptor, so that
// what was checked is what is read.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside {

/// Of this type (S_IFREG, S_IFDIR), the user's, and nobody else may do anything with it that is in
/// `refused` (mode bits).
bool is_ours(const struct stat& file, mode_t type, mode_t refused);

/// The user's own, for what is to be gone when the host starts anew: $XDG_RUNTIME_DIR/ringside, or
/// without that variable a folder of the user's in /tmp. It need not exist.
std::string runtime_folder();

/// A link at its end is not followed. NotFound or Io with the system's word for what is in the way;
/// Invalid when it is not ours.
Result<UniqueFd> open_own_folder(const std::string& folder, mode_t refused);

/// The names in an open folder, "." and ".." too; none when it cannot be read.
std::vector<std::string> list_names(int folder);

}  // namespace ringside
