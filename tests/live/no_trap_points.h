// Kernel text in which nothing of ours stands: for OriginalText where no trap point table is.
#pragma once

#include <cstddef>
#include <span>

#include "providers/trap_points/sites/original_text.h"

namespace ringside::live {

class NoTrapPoints final : public providers::OriginalText::ReplacedText {
 public:
  bool are_there() const override { return false; }
  std::span<const std::byte> below(GuestVirt) const override { return {}; }
};

}  // namespace ringside::live
