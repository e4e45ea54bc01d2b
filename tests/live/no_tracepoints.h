// Kernel text in which nothing of ours stands: for OriginalText where no tracepoint table is.
#pragma once

#include <cstddef>
#include <span>

#include "providers/tracepoint/sites/original_text.h"

namespace ringside::live {

class NoTracepoints final : public providers::OriginalText::ReplacedText {
 public:
  bool are_there() const override { return false; }
  std::span<const std::byte> below(GuestVirt) const override { return {}; }
};

}  // namespace ringside::live
