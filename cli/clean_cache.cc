#include "cli/clean_cache.h"

#include <fmt/format.h>

#include <string>

#include "cli/messages.h"
#include "cli/session/session.h"
#include "vmm/linux/cache/kernel_cache.h"

namespace ringside::cli {

int clean_cache() {
  using guest_linux::KernelCache;
  const std::string folder = KernelCache::folder_of_user();
  if (folder.empty()) {
    say("clean: neither XDG_CACHE_HOME nor HOME says where the cache is");
    return kExitFailure;
  }
  const auto removed = KernelCache::remove(folder);
  if (!removed) {
    say("clean: " + removed.error().message);
    return kExitFailure;
  }
  say(fmt::format("{} {} removed from {}", *removed, *removed == 1 ? "entry" : "entries", folder));
  return kExitOk;
}

}  // namespace ringside::cli
