#include "providers/tracepoint/sites/fault_search.h"

#include <fmt/format.h>

#include <vector>

#include "providers/tracepoint/sites/function_sites.h"
#include "providers/tracepoint/sites/text_sweep.h"
#include "vmm/linux/layout.h"

namespace ringside::providers {
namespace {

using guest_linux::Symbol;

constexpr const char* kSearch = "search_exception_tables";
constexpr const char* kMender = "fixup_exception";

Result<bool> calls(const GuestReader& text, const Symbol& function, GuestVirt target) {
  if (function.size == 0 || function.size > kMaxFunction) {
    return fail(ErrorCode::Unsupported, fmt::format("{} has no known end", function.name));
  }
  std::vector<std::byte> bytes(function.size);
  if (!text.read(function.address, bytes)) {
    return fail(ErrorCode::Unsupported, fmt::format("{} cannot be read", function.name));
  }
  TextSweep sweep(bytes, function.address, TextSweep::Reach::ToTheEnd);
  while (!sweep.is_done()) {
    const auto in = TRY(sweep.next());
    if (in.flow == disasm::Flow::Call && in.target == target) return true;
  }
  return false;
}

}  // namespace

Result<GuestVirt> find_fault_search(const GuestReader& text, const guest_linux::Kernel& kernel) {
  if (!guest_linux::offset_of(kernel.types(), "exception_table_entry", {"data"})) {
    return fail(ErrorCode::Unsupported, "its entries do not say how a fault is mended");
  }
  const Symbol* const search = kernel.symbols().find(kSearch, "vmlinux");
  const Symbol* const mender = kernel.symbols().find(kMender, "vmlinux");
  if (search == nullptr || mender == nullptr) {
    return fail(ErrorCode::Unsupported,
                fmt::format("the kernel has no function {} or {}", kSearch, kMender));
  }
  // A compiler that works on the whole kernel at once may have put the search into its callers.
  if (!TRY(calls(text, *mender, search->address))) {
    return fail(ErrorCode::Unsupported, fmt::format("{} does not call {}", kMender, kSearch));
  }
  return TRY(entry_site(text, *search, &kernel.symbols()));
}

bool mends_in_slot(const guest_linux::Kernel::PatchedSite& entry,
                   const disasm::Instruction& instruction) {
  // Types of asm/extable_fixup_types.h, in the low byte. Those from 20 on look at the instruction's
  // address or at the code that follows it (EX_TYPE_ZEROPAD), and so does that of BPF's programs;
  // later ones are not known.
  constexpr std::uint32_t kTypeMask = 0xff, kBpf = 7, kLastKnown = 19;
  const std::uint32_t type = entry.data & kTypeMask;
  if (type == 0 || type == kBpf || type > kLastKnown) return false;
  // One instruction in the slot, too, at its beginning. A call cannot fault there: its entry is for
  // what processors with other features have in its place.
  return instruction.flow == disasm::Flow::Next || instruction.flow == disasm::Flow::Call;
}

}  // namespace ringside::providers
