#include "vmm/linux/kernel_list.h"

namespace ringside::guest_linux {

ListEnd walk_list(const GuestReader& kernel, GuestVirt head, std::size_t most,
                  const ListVisitor& visit) {
  auto node = load<std::uint64_t>(kernel, head);
  for (std::size_t seen = 0; node && *node != 0; ++seen) {
    if (*node == head.raw()) return ListEnd::Whole;
    if (seen == most) return ListEnd::Endless;
    if (!visit(GuestVirt(*node))) return ListEnd::Stopped;
    node = load<std::uint64_t>(kernel, GuestVirt(*node));
  }
  return ListEnd::Unreadable;
}

}  // namespace ringside::guest_linux
