// Where the guests that images/build made are found by name.
// Fire context: no.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vmm/base/result.h"

namespace ringside::cli {

struct Image {
  std::string kernel, initrd;
};

/// The folders that are searched: $RINGSIDE_IMAGES when set, then `images` beside the executable.
std::vector<std::string> image_folders();

/// NAME/vmlinuz and NAME/initrd in the first of `folders` that has them. NotFound names the images
/// that there are and the command that builds them.
Result<Image> find_image(std::string_view name, const std::vector<std::string>& folders);

}  // namespace ringside::cli
