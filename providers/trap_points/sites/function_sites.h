// Where a function's entry and return trap points stand: entry is the first instruction after the
// ftrace site; return is every ret and every jump that leaves the function, .cold parts included.
// Nothing stands on the ftrace site itself: ftrace compares the bytes before it patches them, and
// turns itself off if they differ. Pure: text in, sites out.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "disasm/decoder.h"
#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

/// One way out of a function.
struct ReturnSite {
  GuestVirt address;
  std::uint32_t offset = 0;  // from the function's start: arg0 of fbt's return
  bool has_value = false;    // a ret: arg1 is the return value (rax)
  arch::Condition condition = arch::kNoCondition;  // a jcc that leaves: fires when it holds
  std::optional<GuestVirt> target{};  // of a jump to other code, where the instruction tells it
};

/// `ret` is a jump to one of these on CPUs whose return predictor needs help: __x86_return_thunk,
/// srso_return_thunk, retbleed_return_thunk, its_return_thunk...
bool is_return_thunk(std::string_view name);

/// "foo" for foo.cold and foo.cold.12; empty for everything else.
std::string_view owner_of_cold_part(std::string_view name);

/// Longer than any function of Linux; symbols without a neighbour may claim more.
inline constexpr std::uint64_t kMaxFunction = 1 << 20;

/// The five bytes that the guest's own ftrace patches: [begin, end).
inline constexpr std::size_t kFtraceBytes = 5;
struct FtraceSite {
  GuestVirt begin, end;
};

/// The function's ftrace site: the 5-byte nop at +0, or at +4 after endbr64 or its sealed forms
/// (6.1, 6.12, 7.2). With `symbols`, also the call that stands there while the guest traces the
/// function itself: its target is ftrace's own, or a trampoline that no symbol covers.
std::optional<FtraceSite> ftrace_site(const GuestReader& text, const guest_linux::Symbol& function,
                                      const guest_linux::SymbolTable* symbols = nullptr);

/// The function's first instruction after what an indirect call may land on (endbr64 or a sealed
/// form), which must stay.
GuestVirt after_landing_pad(const GuestReader& text, const guest_linux::Symbol& function);

/// The first instruction after the ftrace site, which may be the head of a loop.
/// Error (Unsupported): the function has no ftrace site, or does not decode there.
Result<GuestVirt> entry_site(const GuestReader& text, const guest_linux::Symbol& function,
                             const guest_linux::SymbolTable* symbols = nullptr);

/// Refuses (Unsupported) a place that runs more often than the function is entered: a jump of the
/// function itself leads there, so the place is the head of a loop. After the first round the
/// registers hold no arguments.
Result<void> check_entered_once(const GuestReader& text, const guest_linux::SymbolTable& symbols,
                                const guest_linux::Symbol& function, GuestVirt at);

/// All ways out; empty for a function that never returns. `symbols` tells jumps within the
/// function (and to and from its .cold part) from jumps that leave. The .cold part is included;
/// where it lies below the function, offsets wrap.
/// Error (Unsupported): the function has no known size, or does not decode to its end.
Result<std::vector<ReturnSite>> return_sites(const GuestReader& text,
                                             const guest_linux::SymbolTable& symbols,
                                             const guest_linux::Symbol& function);

}  // namespace ringside::providers
