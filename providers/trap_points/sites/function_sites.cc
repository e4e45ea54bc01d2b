// In this file, top to bottom: names, the ftrace site, whose jumps leave a function, the
// sweep over a function and its cold parts, functions that begin with a loop.
#include "providers/trap_points/sites/function_sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "providers/trap_points/sites/text_sweep.h"
#include "vmm/arch/arch.h"
#include "vmm/base/bytes.h"

namespace ringside::providers {

using disasm::Flow;
using guest_linux::Symbol;
using guest_linux::SymbolTable;

bool is_return_thunk(std::string_view name) {
  return name.ends_with("return_thunk");
}

std::string_view owner_of_cold_part(std::string_view name) {
  // Cheap, of names that are none, as nearly all are.
  const char last = name.empty() ? '\0' : name.back();
  if (last != 'd' && (last < '0' || last > '9')) return {};
  constexpr std::string_view kCold = ".cold";
  const auto at = name.rfind(kCold);
  if (at == std::string_view::npos) return {};
  const std::string_view tail = name.substr(at + kCold.size());
  const bool numbered = tail.size() > 1 && tail[0] == '.' &&
                        tail.find_first_not_of("0123456789", 1) == std::string_view::npos;
  return tail.empty() || numbered ? name.substr(0, at) : std::string_view{};
}

namespace {

constexpr std::size_t kLandingPadBytes = 4;

template <std::size_t N>
bool starts_with(std::span<const std::byte> bytes, const std::uint8_t (&what)[N]) {
  return bytes.size() >= N && std::memcmp(bytes.data(), what, N) == 0;
}

/// endbr64, or what the kernel seals it to: a nop of four bytes (since 5.18; another since 7.x).
bool is_landing_pad(std::span<const std::byte> bytes) {
  constexpr std::uint8_t kEndbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
  constexpr std::uint8_t kSealed[] = {0x66, 0x0f, 0x1f, 0x00};
  constexpr std::uint8_t kSealedLater[] = {0x0f, 0x1f, 0x40, 0xd6};
  return starts_with(bytes, kEndbr) || starts_with(bytes, kSealed) ||
         starts_with(bytes, kSealedLater);
}

/// Whether a call in the place of the ftrace nop is ftrace's: to ftrace itself, or to a trampoline
/// that it has made, which no symbol covers.
bool is_ftrace_call(const GuestReader& text, std::span<const std::byte> bytes, GuestVirt at,
                    const SymbolTable& symbols) {
  const auto in = disasm::decode(bytes, at);
  if (!in || in->flow != Flow::Call || in->length != kFtraceBytes) return false;
  const Symbol* target = symbols.at(in->target);
  if (target == nullptr) return ringside::load<std::byte>(text, in->target).has_value();
  // Not everything whose name begins like that: is_ftrace_trampoline() calls ftrace_*() first, and
  // ftrace's own code has such calls.
  constexpr std::string_view kCallees[] = {"ftrace_caller", "ftrace_regs_caller", "__fentry__"};
  return std::ranges::any_of(symbols.all_at(in->target), [&](const Symbol& symbol) {
    return std::ranges::find(kCallees, symbol.name) != std::ranges::end(kCallees);
  });
}

/// The nop of five bytes. Before 5.13 there were two (ideal_nops, arch/x86/kernel/alternative.c):
/// which, the CPU that the kernel booted on decided.
bool is_ftrace_nop(std::span<const std::byte> bytes) {
  constexpr std::uint8_t kNop[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
  constexpr std::uint8_t kNopOfK8[] = {0x66, 0x66, 0x66, 0x66, 0x90};
  return starts_with(bytes, kNop) || starts_with(bytes, kNopOfK8);
}

/// Whether these bytes are an ftrace site, as a nop, as a call, or on the way from one to the
/// other.
bool is_ftrace_site(const GuestReader& text, std::span<const std::byte> bytes, GuestVirt at,
                    const SymbolTable* symbols) {
  if (is_ftrace_nop(bytes)) return true;
  if (symbols == nullptr || bytes.size() < kFtraceBytes) return false;
  if (bytes[0] != arch::kBreakpoint) return is_ftrace_call(text, bytes, at, *symbols);
  // While ftrace rewrites it, an int3 of its own stands on the first byte. Where nothing else
  // stands, start-up text was, which the kernel has overwritten: thousands of functions.
  if (std::ranges::count(bytes.first(kFtraceBytes), arch::kBreakpoint) == kFtraceBytes)
    return false;
  std::array<std::byte, kFtraceBytes> site;
  std::copy_n(bytes.begin(), site.size(), site.begin());
  for (const std::uint8_t first : {0x0f, 0x66}) {
    site[0] = std::byte{first};
    if (is_ftrace_nop(site)) return true;
  }
  site[0] = arch::kNearCall;
  return is_ftrace_call(text, site, at, *symbols);
}

/// True when `part` is a .cold part of the function that starts at `function`, under any alias.
bool is_cold_part_of(const SymbolTable& symbols, const Symbol& part, GuestVirt function) {
  for (const Symbol& cold : symbols.all_at(part.address)) {
    const std::string_view owner = owner_of_cold_part(cold.name);
    if (owner.empty()) continue;
    for (const Symbol& name : symbols.all_at(function)) {
      if (name.name == owner) return true;
    }
  }
  return false;
}

class FunctionSweep {
 public:
  /// Looks for jumps to `watched` as well.
  FunctionSweep(const GuestReader& text, const SymbolTable& symbols, const Symbol& function,
                GuestVirt watched = {})
      : text_(text),
        symbols_(symbols),
        function_(function.address),
        begin_(function.address),
        watched_(watched) {
    parts_.push_back({function.address, function.size});
    // The guest may be rewriting its ftrace site, and no jump of the function's own leaves from it.
    if (const auto ftrace = ftrace_site(text, function, &symbols)) begin_ = ftrace->end;
  }

  Result<std::vector<ReturnSite>> run() {
    // Sweeping a part may find further parts; a function has one or two.
    for (std::size_t i = 0; i < parts_.size(); ++i) TRY(sweep(parts_[i]));
    return std::move(sites_);
  }
  /// Whether a jump of the function leads to `watched`. After run().
  bool found_watched() const { return found_watched_; }

 private:
  struct Part {
    GuestVirt start;
    std::uint64_t size;
  };
  static constexpr std::size_t kMaxParts = 8;
  static constexpr std::size_t kMaxTable = 4096;  // entries; no switch of Linux has as many

  Result<void> sweep(Part part) {
    if (part.size == 0 || part.size > kMaxFunction) {
      return fail(ErrorCode::Unsupported, fmt::format("{:#x} has no known end", part.start.raw()));
    }
    bytes_.resize(part.size);
    const std::size_t size = read_available(text_, part.start, bytes_);
    const auto reach =
        size == part.size ? TextSweep::Reach::ToTheEnd : TextSweep::Reach::NotToTheEnd;
    const GuestVirt begin = part.start == function_ ? begin_ : part.start;
    const std::size_t skipped = std::min<std::uint64_t>(begin.offset_from(part.start), size);
    const auto text = std::span<const std::byte>(bytes_).first(size).subspan(skipped);
    for (TextSweep steps(text, begin, reach); !steps.is_done();) {
      const GuestVirt here = steps.here();
      const disasm::Instruction in = TRY(steps.next());
      note_jump(in);
      note_exit(in, here);
    }
    return {};
  }

  void note_jump(const disasm::Instruction& in) {
    switch (in.flow) {
      case Flow::Jump:
      case Flow::ConditionalJump: found_watched_ |= in.target == watched_; return;
      case Flow::TableJump: found_watched_ |= table_leads_to_watched(in.target); return;
      default: return;
    }
  }

  /// Where a table ends nobody says: at the first entry that is no place of this function.
  bool table_leads_to_watched(GuestVirt table) const {
    for (std::size_t n = 0; n < kMaxTable; ++n) {
      const auto place = ringside::load<std::uint64_t>(text_, table.wrapping_add(8 * n));
      if (!place || !is_inside(GuestVirt(*place))) return false;
      if (*place == watched_.raw()) return true;
    }
    return true;
  }

  bool is_inside(GuestVirt at) const {
    return std::any_of(parts_.begin(), parts_.end(),
                       [at](const Part& part) { return at.is_in(part.start, part.size); });
  }

  void note_exit(const disasm::Instruction& in, GuestVirt here) {
    switch (in.flow) {
      case Flow::Return: add({.address = here, .has_value = true}); return;
      case Flow::IndirectJump: add({.address = here}); return;
      case Flow::Jump:
        if (leaves(in.target)) add_jump(here, in.target, arch::kNoCondition);
        return;
      case Flow::ConditionalJump:
        // jrcxz and loop reach 127 bytes: they do not leave functions.
        if (in.condition != arch::kNoCondition && leaves(in.target)) {
          add_jump(here, in.target, in.condition);
        }
        return;
      case Flow::Next:
      case Flow::Call:
      case Flow::IndirectCall:
      case Flow::TableJump:
      case Flow::Stop:
      case Flow::Other: return;
    }
  }

  bool leaves(GuestVirt target) {
    if (is_inside(target)) return false;
    const Symbol* symbol = symbols_.at(target);
    if (symbol == nullptr || parts_.size() >= kMaxParts ||
        !is_cold_part_of(symbols_, *symbol, function_)) {
      return true;
    }
    parts_.push_back({symbol->address, symbol->size});
    return false;
  }

  bool ends_in_return(GuestVirt target) const {
    const Symbol* symbol = symbols_.at(target);
    return symbol != nullptr && is_return_thunk(symbol->name);
  }

  void add_jump(GuestVirt at, GuestVirt target, arch::Condition condition) {
    const bool returns = ends_in_return(target);
    add({.address = at,
         .has_value = returns,
         .condition = condition,
         .target = returns ? std::nullopt : std::optional(target)});
  }

  void add(ReturnSite site) {
    site.offset = static_cast<std::uint32_t>(site.address.offset_from(function_));
    sites_.push_back(site);
  }

  const GuestReader& text_;
  const SymbolTable& symbols_;
  GuestVirt function_;
  GuestVirt begin_;  // of what is swept of it
  GuestVirt watched_;
  bool found_watched_ = false;
  std::vector<Part> parts_;
  std::vector<std::byte> bytes_;
  std::vector<ReturnSite> sites_;
};

/// A byte may be the opcode of this, or the last byte of it.
enum class JumpOpcode : std::uint8_t { Nothing, ShortJump, NearJump, NearCondition, IndirectJump };
constexpr auto kMaybe = [] {
  std::array<JumpOpcode, 256> table{};
  for (unsigned i = 0x70; i < 0x80; ++i) table[i] = JumpOpcode::ShortJump;
  for (unsigned i = 0xe0; i < 0xe4; ++i) table[i] = JumpOpcode::ShortJump;  // loop, jrcxz
  table[std::to_integer<std::size_t>(arch::kShortJump)] = JumpOpcode::ShortJump;
  table[std::to_integer<std::size_t>(arch::kNearJump)] = JumpOpcode::NearJump;
  for (unsigned i = 0x80; i < 0x90; ++i) table[i] = JumpOpcode::NearCondition;  // after 0f
  table[0xff] = JumpOpcode::IndirectJump;
  return table;
}();

/// Whether some bytes may be a jump to `target`, or to a cold part or a table that may have one.
/// Says yes too often, as it looks at every byte; but it need not decode a whole kernel.
bool may_jump_to(std::span<const std::byte> bytes, GuestVirt start, GuestVirt target,
                 const SymbolTable& symbols) {
  const auto near_jump = [&](std::size_t i) {
    if (i + 4 >= bytes.size()) return false;
    const auto distance = static_cast<std::uint64_t>(load_at<std::int32_t>(bytes, i + 1));
    const GuestVirt to = start.wrapping_add(i + 5 + distance);
    if (to == target) return true;
    if (to.is_in(start, bytes.size())) return false;
    const Symbol* symbol = symbols.at(to);
    return symbol != nullptr && !owner_of_cold_part(symbol->name).empty();
  };
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    switch (kMaybe[std::to_integer<std::size_t>(bytes[i])]) {
      case JumpOpcode::Nothing: break;
      case JumpOpcode::ShortJump: {
        const auto distance = static_cast<std::int8_t>(bytes[i + 1]);
        if (start.wrapping_add(i + 2 + static_cast<std::uint64_t>(distance)) == target) return true;
        break;
      }
      case JumpOpcode::NearCondition:
        if (i == 0 || bytes[i - 1] != std::byte{0x0f}) break;
        [[fallthrough]];
      case JumpOpcode::NearJump:
        if (near_jump(i)) return true;
        break;
      case JumpOpcode::IndirectJump:  // jmp [table + index * 8]: ff /4 with a SIB byte
        if (bytes[i + 1] == std::byte{0x24}) return true;
        break;
    }
  }
  return false;
}

}  // namespace

Result<void> check_entered_once(const GuestReader& text, const SymbolTable& symbols,
                                const Symbol& function, GuestVirt at) {
  std::vector<std::byte> bytes(std::min(function.size, kMaxFunction));
  bytes.resize(read_available(text, function.address, bytes));
  if (!may_jump_to(bytes, function.address, at, symbols)) return {};
  FunctionSweep sweep(text, symbols, function, at);
  TRY(sweep.run());
  if (!sweep.found_watched()) return {};
  return fail(
      ErrorCode::Unsupported,
      fmt::format("{} begins with a loop: its first instruction also runs in every iteration",
                  function.name));
}

GuestVirt after_landing_pad(const GuestReader& text, const Symbol& function) {
  std::array<std::byte, kLandingPadBytes> head;
  const std::size_t size = read_available(text, function.address, head);
  const bool has_pad = is_landing_pad(std::span(head).first(size));
  return has_pad ? function.address.wrapping_add(kLandingPadBytes) : function.address;
}

std::optional<FtraceSite> ftrace_site(const GuestReader& text, const Symbol& function,
                                      const SymbolTable* symbols) {
  std::array<std::byte, kLandingPadBytes + kFtraceBytes> head;
  const std::size_t size = read_available(text, function.address, head);
  std::span<const std::byte> rest = std::span(head).first(size);
  GuestVirt at = function.address;
  if (is_landing_pad(rest)) {
    rest = rest.subspan(kLandingPadBytes);
    at = at.wrapping_add(kLandingPadBytes);
  }
  if (!is_ftrace_site(text, rest, at, symbols)) return std::nullopt;
  return FtraceSite{at, at.wrapping_add(kFtraceBytes)};
}

Result<GuestVirt> entry_site(const GuestReader& text, const Symbol& function,
                             const SymbolTable* symbols) {
  const auto site = ftrace_site(text, function, symbols);
  if (!site) {
    return fail(ErrorCode::Unsupported, fmt::format("{} has no ftrace site", function.name));
  }
  std::array<std::byte, arch::kLongestInstruction> bytes;
  const std::size_t size = read_available(text, site->end, bytes);
  const auto in = disasm::decode(std::span(bytes).first(size), site->end);
  const std::uint64_t offset = site->end.offset_from(function.address);
  const bool inside = in && (function.size == 0 || offset + in->length <= function.size);
  if (!inside) {
    return fail(ErrorCode::Unsupported,
                fmt::format("{} has no instruction after its ftrace site", function.name));
  }
  return site->end;
}

Result<std::vector<ReturnSite>> return_sites(const GuestReader& text, const SymbolTable& symbols,
                                             const Symbol& function) {
  return FunctionSweep(text, symbols, function).run();
}

}  // namespace ringside::providers
