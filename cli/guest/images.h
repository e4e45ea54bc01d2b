// Finds the guests that images/build made, by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vmm/base/result.h"

namespace ringside::cli {

struct Image {
  std::string kernel;
  std::string initrd;  // empty: the image has none
};

/// The folders that are searched: $RINGSIDE_IMAGES when set, then `images` beside the executable.
std::vector<std::string> image_folders();

/// NAME/vmlinuz or NAME/vmlinux, and NAME/initrd where there is one, in the first of `folders` that
/// has them. NotFound names the images that there are and the command that builds them.
Result<Image> find_image(std::string_view name, const std::vector<std::string>& folders);

}  // namespace ringside::cli
