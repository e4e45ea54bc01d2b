#include "cli/output/target_view.h"

#include <fmt/format.h>

#include "cli/guest/snapshot.h"

namespace ringside::cli {

Result<std::string> TargetView::snapshot(const std::string& path) const {
  return write_snapshot(*target_, path);
}

std::string TargetView::describe(GuestVirt address) const {
  const guest_linux::Kernel* const kernel = target_->kernel();
  return kernel != nullptr ? kernel->symbols().describe(address)
                           : fmt::format("0x{:x}", address.raw());
}

std::string TargetView::describe_user(std::uint64_t pid, GuestVirt address) const {
  guest_linux::UserNames* const names = target_->user_names();
  return names != nullptr ? names->describe(pid != 0 ? pid : process_, address)
                          : ProgramView::describe_user(pid, address);
}

}  // namespace ringside::cli
