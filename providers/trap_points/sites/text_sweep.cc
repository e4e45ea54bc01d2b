#include "providers/trap_points/sites/text_sweep.h"

#include <fmt/format.h>

#include <algorithm>

#include "vmm/arch/arch.h"

namespace ringside::providers {
namespace {

using disasm::Flow;

constexpr std::uint64_t kFunctionAlignment = 16;

}  // namespace

bool TextSweep::is_padding() const {
  switch (before_) {
    case Flow::Next:
    case Flow::ConditionalJump: return false;
    case Flow::Call:
    case Flow::IndirectCall: {
      // Behind a call that never returns: up to the function's end, or to whatever is aligned next.
      const auto rest = bytes_.subspan(at_);
      const auto end = std::find_if(rest.begin(), rest.end(),
                                    [](std::byte b) { return b != arch::kBreakpoint; });
      if (end == rest.end()) return reach_ == Reach::ToTheEnd;
      const auto size = static_cast<std::uint64_t>(end - rest.begin());
      return size > 1 && here().wrapping_add(size).raw() % kFunctionAlignment == 0;
    }
    case Flow::Jump:
    case Flow::IndirectJump:
    case Flow::TableJump:
    case Flow::Return:
    case Flow::Stop:
    case Flow::Other: return true;
  }
  return false;
}

Result<disasm::Instruction> TextSweep::next() {
  if (bytes_[at_] == arch::kBreakpoint && !is_padding()) {
    return fail(ErrorCode::Unsupported,
                fmt::format("an int3 stands at {:#x}, and what it may have replaced is not known",
                            here().raw()));
  }
  const auto in = disasm::decode(bytes_.subspan(at_), here());
  if (!in) {
    return fail(ErrorCode::Unsupported,
                fmt::format("the text at {:#x} does not decode", here().raw()));
  }
  at_ += in->length;
  before_ = in->flow;
  return *in;
}

}  // namespace ringside::providers
