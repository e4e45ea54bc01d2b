// linux_banner: the line that names a kernel's release and build (init/version.c).
// Fire context: yes.
#pragma once

#include <string_view>

namespace ringside::guest_linux {

/// The release follows.
inline constexpr std::string_view kBannerStart = "Linux version ";

}  // namespace ringside::guest_linux
