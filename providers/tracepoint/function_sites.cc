// In this file, top to bottom: reading text, the ftrace site, whose jumps leave a function, the
// sweep over a function and its cold parts.
#include "providers/tracepoint/function_sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace ringside::providers {
namespace {

using disasm::Flow;
using guest_linux::Symbol;
using guest_linux::SymbolTable;

/// Longer than any function of Linux; symbols without a neighbour may claim more.
constexpr std::uint64_t kMaxFunction = 1 << 20;
constexpr std::size_t kFtraceBytes = 5;
constexpr std::size_t kLandingPadBytes = 4;

/// Copies what can be read from `at` on, up to out.size() bytes; returns how many.
std::size_t read_available(const GuestReader& text, GuestVirt at, std::span<std::byte> out) {
  const auto done = text.read(at, out);
  if (done) return out.size();
  return std::min<std::uint64_t>(done.error().address - at.raw(), out.size());
}

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

bool is_ftrace_call(std::span<const std::byte> bytes, GuestVirt at, const SymbolTable& symbols) {
  const auto in = disasm::decode(bytes, at);
  if (!in || in->flow != Flow::Call || in->length != kFtraceBytes) return false;
  const Symbol* target = symbols.at(in->target);
  return target == nullptr || target->name.starts_with("ftrace_") || target->name == "__fentry__";
}

/// "foo" for foo.cold and foo.cold.12; empty for everything else.
std::string_view owner_of_cold_part(std::string_view name) {
  constexpr std::string_view kCold = ".cold";
  const auto at = name.rfind(kCold);
  if (at == std::string_view::npos) return {};
  const std::string_view tail = name.substr(at + kCold.size());
  const bool numbered = tail.size() > 1 && tail[0] == '.' &&
                        tail.find_first_not_of("0123456789", 1) == std::string_view::npos;
  return tail.empty() || numbered ? name.substr(0, at) : std::string_view{};
}

/// All symbols that share an address: aliases.
std::span<const Symbol> symbols_at(const SymbolTable& symbols, GuestVirt address) {
  const auto all = symbols.symbols();
  const auto [first, last] =
      std::equal_range(all.begin(), all.end(), Symbol{address, 0, {}, '?', 0},
                       [](const Symbol& a, const Symbol& b) { return a.address < b.address; });
  return {first, last};
}

/// True when `part` is a .cold part of the function that starts at `function`, under any alias.
bool is_cold_part_of(const SymbolTable& symbols, const Symbol& part, GuestVirt function) {
  for (const Symbol& cold : symbols_at(symbols, part.address)) {
    const std::string_view owner = owner_of_cold_part(cold.name);
    if (owner.empty()) continue;
    for (const Symbol& name : symbols_at(symbols, function)) {
      if (name.name == owner) return true;
    }
  }
  return false;
}

class ExitSweep {
 public:
  ExitSweep(const GuestReader& text, const SymbolTable& symbols, const Symbol& function)
      : text_(text), symbols_(symbols), function_(function.address) {
    parts_.push_back({function.address, function.size});
  }

  Result<std::vector<ReturnSite>> run() {
    // Sweeping a part may find further parts; a function has one or two.
    for (std::size_t i = 0; i < parts_.size(); ++i) TRY(sweep(parts_[i]));
    return std::move(sites_);
  }

 private:
  struct Part {
    GuestVirt start;
    std::uint64_t size;
  };
  static constexpr std::size_t kMaxParts = 8;

  Result<void> sweep(Part part) {
    if (part.size == 0 || part.size > kMaxFunction) {
      return fail(ErrorCode::Unsupported, fmt::format("{:#x} has no known end", part.start.raw()));
    }
    bytes_.resize(part.size);
    const std::size_t size = read_available(text_, part.start, bytes_);
    std::size_t at = 0;
    while (at < size) {
      const GuestVirt here(part.start.raw() + at);
      const auto in = disasm::decode(std::span(bytes_).subspan(at, size - at), here);
      if (!in) {
        return fail(ErrorCode::Unsupported,
                    fmt::format("the text at {:#x} does not decode", here.raw()));
      }
      note_exit(*in, here);
      at += in->length;
    }
    return {};
  }

  void note_exit(const disasm::Instruction& in, GuestVirt here) {
    switch (in.flow) {
      case Flow::Return: add(here, true, 0xff); return;
      case Flow::IndirectJump: add(here, false, 0xff); return;
      case Flow::Jump:
        if (leaves(in.target)) add(here, ends_in_return(in.target), 0xff);
        return;
      case Flow::ConditionalJump:
        // jrcxz and loop reach 127 bytes: they do not leave functions.
        if (in.condition != 0xff && leaves(in.target)) {
          add(here, ends_in_return(in.target), in.condition);
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
    for (const Part& part : parts_) {
      if (target >= part.start && target.raw() - part.start.raw() < part.size) return false;
    }
    const Symbol* symbol = symbols_.at(target);
    if (symbol == nullptr || parts_.size() >= kMaxParts ||
        !is_cold_part_of(symbols_, *symbol, function_)) {
      return true;
    }
    parts_.push_back({symbol->address, symbol->size});
    return false;
  }

  /// `ret` is a jump to one of these on CPUs whose return predictor needs help: __x86_return_thunk,
  /// srso_return_thunk, retbleed_return_thunk, its_return_thunk...
  bool ends_in_return(GuestVirt target) const {
    const Symbol* symbol = symbols_.at(target);
    return symbol != nullptr && symbol->name.ends_with("return_thunk");
  }

  void add(GuestVirt at, bool has_value, std::uint8_t condition) {
    const auto offset = static_cast<std::uint32_t>(at.raw() - function_.raw());
    sites_.push_back({at, offset, has_value, condition});
  }

  const GuestReader& text_;
  const SymbolTable& symbols_;
  GuestVirt function_;
  std::vector<Part> parts_;
  std::vector<std::byte> bytes_;
  std::vector<ReturnSite> sites_;
};

}  // namespace

std::optional<FtraceSite> ftrace_site(const GuestReader& text, const Symbol& function,
                                      const SymbolTable* symbols) {
  std::array<std::byte, kLandingPadBytes + kFtraceBytes> head;
  const std::size_t size = read_available(text, function.address, head);
  std::span<const std::byte> rest = std::span(head).first(size);
  GuestVirt at = function.address;
  if (is_landing_pad(rest)) {
    rest = rest.subspan(kLandingPadBytes);
    at = GuestVirt(at.raw() + kLandingPadBytes);
  }
  constexpr std::uint8_t kNop[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
  const bool calls = symbols != nullptr && is_ftrace_call(rest, at, *symbols);
  if (!starts_with(rest, kNop) && !calls) return std::nullopt;
  return FtraceSite{at, GuestVirt(at.raw() + kFtraceBytes)};
}

Result<GuestVirt> entry_site(const GuestReader& text, const Symbol& function,
                             const SymbolTable* symbols) {
  const auto site = ftrace_site(text, function, symbols);
  if (!site) {
    return fail(ErrorCode::Unsupported, fmt::format("{} has no ftrace site", function.name));
  }
  std::array<std::byte, 15> bytes;
  const std::size_t size = read_available(text, site->end, bytes);
  const auto in = disasm::decode(std::span(bytes).first(size), site->end);
  const std::uint64_t offset = site->end.raw() - function.address.raw();
  const bool inside = in && (function.size == 0 || offset + in->length <= function.size);
  if (!inside) {
    return fail(ErrorCode::Unsupported,
                fmt::format("{} has no instruction after its ftrace site", function.name));
  }
  return site->end;
}

Result<std::vector<ReturnSite>> return_sites(const GuestReader& text, const SymbolTable& symbols,
                                             const Symbol& function) {
  return ExitSweep(text, symbols, function).run();
}

}  // namespace ringside::providers
