// The kernel's circular lists (struct list_head, include/linux/types.h), walked.
// Hostile input, and the guest may change it meanwhile: every walk is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "vmm/base/guest_reader.h"

namespace ringside::guest_linux {

/// How a walk ended.
enum class ListEnd : std::uint8_t {
  Whole,       // back where it began
  Stopped,     // the visitor wanted no more
  Unreadable,  // a link leads nowhere
  Endless,     // more than `most` were there
};

/// Says whether to go on.
using ListVisitor = std::function<bool(GuestVirt)>;

/// Every node of a circular list (struct list_head) but its head.
ListEnd walk_list(const GuestReader& kernel, GuestVirt head, std::size_t most,
                  const ListVisitor& visit);

}  // namespace ringside::guest_linux
