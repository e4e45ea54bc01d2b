// In this file, top to bottom: reading and decoding text, room, sites, ways out.
#include "providers/trap_points/sites/user_sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>

#include "disasm/decoder.h"
#include "vmm/base/numbers.h"

namespace ringside::providers {
namespace {

using disasm::Flow;
using guest_linux::FileFunction, guest_linux::FileFunctions;

constexpr std::uint64_t kFilePage = arch::kPageSize;
constexpr std::uint64_t kTextAlignment = 16;
/// How far from a page its neighbouring symbols may lie.
constexpr std::uint64_t kMostText = 256 << 10;
constexpr std::uint64_t kMostFunction = 1 << 20;
/// Where the text is taken to lie, for the decoder: beyond what a push of 32 bits can name, so no
/// form with an absolute address is made of it. Programs at fixed addresses lie where they do.
constexpr GuestVirt kAnywhere{0x4000'0000'0000};

GuestVirt place_of(std::uint64_t offset) {
  return kAnywhere.wrapping_add(offset);
}

/// A part of a file's text.
struct Text {
  std::uint64_t begin = 0;
  std::vector<std::byte> bytes;

  std::uint64_t end() const { return begin + bytes.size(); }
  std::span<const std::byte> from(std::uint64_t offset) const {
    return std::span(bytes).subspan(offset - begin);
  }
  std::optional<disasm::Instruction> decode(std::uint64_t offset) const {
    return disasm::decode(from(offset), place_of(offset));
  }
};

Result<Text> read_text(const ReadFile& file, std::uint64_t begin, std::uint64_t end) {
  Text text{begin, std::vector<std::byte>(end - begin)};
  text.bytes.resize(file(begin, text.bytes));
  if (text.end() == end) return text;
  return fail(ErrorCode::NotFound,
              fmt::format("page {:#x} of the file is not in the guest's memory",
                          round_down(text.end(), kFilePage)));
}

constexpr std::array kLandingPad{std::byte{0xf3}, std::byte{0x0f}, std::byte{0x1e},
                                 std::byte{0xfa}};
bool is_endbr(std::span<const std::byte> bytes) {
  return bytes.size() >= kLandingPad.size() &&
         std::ranges::equal(bytes.first(kLandingPad.size()), kLandingPad);
}

/// Nothing of it runs, or it does nothing.
bool is_filler(const Text& text, std::uint64_t offset) {
  if (text.from(offset).front() == arch::kBreakpoint) return true;
  const auto operation = disasm::decode_operation(text.from(offset), place_of(offset));
  return operation && operation->does_nothing && !is_endbr(text.from(offset));
}

bool goes_on(Flow flow) {
  return flow != Flow::Return && flow != Flow::Jump && flow != Flow::IndirectJump &&
         flow != Flow::TableJump && flow != Flow::Stop;
}

/// From `begin`, where code has ended, to where the next function may begin; `begin` itself where
/// something else stands there. No function begins with an int3, but a symbol may stand there.
std::uint64_t end_of_filler(const Text& text, std::uint64_t begin, std::uint64_t symbol) {
  const std::uint64_t end = std::min(round_up(begin, kTextAlignment), text.end());
  std::uint64_t at = begin;
  while (at < end && is_filler(text, at)) at += text.decode(at)->length;
  if (at != end) return begin;
  const std::uint64_t most = std::min(symbol, text.end());
  while (at < most && text.from(at).front() == arch::kBreakpoint) ++at;
  return std::max(end, at - at % kTextAlignment);
}

/// Where two sections meet, the linker leaves zeros between them, up to the alignment of the
/// second.
bool are_zeros(const Text& text, std::uint64_t begin, std::uint64_t end) {
  if (end - begin >= kTextAlignment || end > text.end()) return false;
  return std::ranges::all_of(text.from(begin).first(end - begin),
                             [](std::byte each) { return each == std::byte{0}; });
}

}  // namespace

Result<PageText> decode_page(const ReadFile& file, const FileFunctions& functions,
                             std::uint64_t page) {
  const std::uint64_t page_begin = page * kFilePage, page_end = page_begin + kFilePage;
  const auto all = functions.all();
  const auto above = std::ranges::upper_bound(all, page_begin, {}, &FileFunction::offset);
  // Without a function of its segment that begins before the page, it is decoded from its first one
  // on.
  const bool is_lowest = above == all.begin() || (std::prev(above)->offset < page_begin &&
                                                  !functions.is_text(page_begin - 1));
  if (is_lowest && (above == all.end() || above->offset >= page_end)) {
    return fail(ErrorCode::Unsupported, "no function of the file begins in its page or before");
  }
  const auto first = is_lowest ? above
                               : std::ranges::lower_bound(all, std::prev(above)->offset, {},
                                                          &FileFunction::offset);
  const auto behind = std::ranges::lower_bound(all, page_end, {}, &FileFunction::offset);
  const std::uint64_t begin = first->offset;
  const std::uint64_t end = behind == all.end() ? page_end : behind->offset;
  if (end - begin > kMostText || !functions.is_text(begin)) {
    return fail(ErrorCode::Unsupported, "no symbols are near, by which its page could be decoded");
  }
  const Text text = TRY(read_text(file, begin, end));
  PageText found;
  auto next = first;
  for (std::uint64_t at = begin; at < end;) {
    while (next != behind && next->offset < at) {
      return fail(ErrorCode::Unsupported, "its page does not decode as its symbols say");
    }
    while (next != behind && next->offset == at) ++next;
    const auto one = text.decode(at);
    if (!one) break;  // the last one ends behind the page, or what follows is no code
    for (std::uint64_t inner = at + 1; inner < at + one->length; ++inner) {
      if (inner >= page_begin && inner < page_end) found.inner.set(inner - page_begin);
    }
    at += one->length;
    if (goes_on(one->flow) || at >= end) continue;
    const std::uint64_t until = end_of_filler(text, at, next == behind ? end : next->offset);
    const std::uint64_t from = std::max(at, page_begin), to = std::min(until, page_end);
    if (from < to) {
      found.rooms.push_back({static_cast<std::uint16_t>(from - page_begin),
                             static_cast<std::uint16_t>(to - page_begin)});
    }
    const bool is_gap = until == at && next != behind && are_zeros(text, at, next->offset);
    at = is_gap ? next->offset : until;
  }
  return found;
}

Result<UserSite> examine_user_site(const ReadFile& file, std::uint64_t offset,
                                   std::optional<GuestVirt> fixed) {
  std::array<std::byte, arch::kLongestInstruction> bytes{};
  const std::size_t length = file(offset, bytes);
  if (length == 0) {
    return fail(ErrorCode::Unsupported, "its page is not in the guest's memory");
  }
  const auto found = std::span<const std::byte>(bytes).first(length);
  const auto operation = disasm::decode_operation(found, place_of(offset));
  if (!operation) return fail(ErrorCode::Unsupported, "no instruction is there");
  UserSite site{.offset = offset,
                .instruction = {found.begin(), found.begin() + operation->length},
                .address = fixed.value_or(place_of(offset)),
                .calls = operation->flow == Flow::Call || operation->flow == Flow::IndirectCall};
  if (is_endbr(found)) {
    return fail(ErrorCode::Unsupported, "indirect branches must land on it");
  }
  site.slot_bytes = TRY(displace_user_site(site, offset)).size();
  return site;
}

Result<std::vector<std::byte>> displace_user_site(const UserSite& site, std::uint64_t slot) {
  const GuestVirt to = site.address.wrapping_add(slot - site.offset);
  auto code = TRY(disasm::relocate(site.instruction, site.address, to));
  const auto one = disasm::decode(site.instruction, place_of(site.offset));
  if (one && goes_on(one->flow)) return code;
  // No jump back to the place tells whose it is; nothing runs into these bytes.
  const auto in_page = static_cast<std::uint16_t>(site.offset % kFilePage);
  for (const std::byte part : std::as_bytes(std::span(&in_page, 1))) code.push_back(part);
  return code;
}

namespace {

constexpr std::byte kPlainReturn{0xc3};
/// push %rbp; mov %rsp, %rbp
constexpr std::array kFrame{std::byte{0x55}, std::byte{0x48}, std::byte{0x89}, std::byte{0xe5}};
constexpr std::size_t kPushBytes = 1, kMoveBytes = 3;

/// Bytes by which it takes the stack pointer down: sub $N, %rsp; Go also adds -128.
std::uint32_t taken_from_stack(std::span<const std::byte> code) {
  const auto is = [code](std::initializer_list<unsigned char> bytes) {
    return std::ranges::equal(code.first(bytes.size()), bytes, {},
                              [](std::byte one) { return std::to_integer<unsigned char>(one); });
  };
  constexpr std::uint32_t kMost = 1U << 30;
  const auto byte = static_cast<std::int8_t>(code[3]);
  std::int32_t word = 0;
  std::memcpy(&word, &code[3], sizeof word);
  if (is({0x48, 0x83, 0xec}) && byte > 0) return static_cast<std::uint32_t>(byte);
  if (is({0x48, 0x83, 0xc4}) && byte < 0) return static_cast<std::uint32_t>(-byte);
  if (is({0x48, 0x81, 0xec}) && word > 0 && static_cast<std::uint32_t>(word) <= kMost) {
    return static_cast<std::uint32_t>(word);
  }
  return 0;
}

/// The function's first instructions; fewer where they do not decode, or are not in memory.
Text start_of(const ReadFile& file, const FileFunction& function) {
  constexpr std::uint64_t kMostStart = 64;
  Text text{function.offset, std::vector<std::byte>(std::min(function.size, kMostStart))};
  text.bytes.resize(file(text.begin, text.bytes));
  return text;
}

/// Behind the check whether the stack has room: cmp 0x10(%r14), %rsp or %r12; jbe.
std::optional<std::uint64_t> behind_stack_check(const Text& text) {
  constexpr std::array kWith{std::byte{0x3b}, std::byte{0x66}, std::byte{0x10}};
  bool is_checked = false;
  for (std::uint64_t at = text.begin; at < text.end();) {
    const auto one = text.decode(at);
    if (!one) return std::nullopt;
    const auto code = text.from(at).first(one->length);
    const bool branches = one->flow == Flow::ConditionalJump;
    if (branches && is_checked) return at + one->length;
    // With a frame of more than some KiB there is another jump before.
    if (one->flow != Flow::Next && !branches) return std::nullopt;
    is_checked = code.size() == kWith.size() + 1 &&
                 (code[0] & std::byte{0xfb}) == std::byte{0x49} &&
                 std::ranges::equal(code.subspan(1), kWith);
    at += one->length;
  }
  return std::nullopt;
}

/// The first one of the function that is free.
std::optional<std::uint64_t> return_in(const ReadFile& file, const FileFunction& function,
                                       const std::function<bool(std::uint64_t)>& is_free) {
  const auto text = read_text(file, function.offset, function.offset + function.size);
  for (std::uint64_t at = function.offset; text && at < text->end();) {
    const auto one = text->decode(at);
    if (!one) break;
    if (text->from(at).front() == kPlainReturn && is_free(at)) return at;
    at += one->length;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> find_free_return(const ReadFile& file, const FileFunctions& functions,
                                              std::uint64_t page,
                                              const std::function<bool(std::uint64_t)>& is_free) {
  const auto is_here = [&](std::uint64_t at) { return at / kFilePage == page && is_free(at); };
  const auto all = functions.all();
  auto each = std::ranges::upper_bound(all, page * kFilePage, {}, &FileFunction::offset);
  if (each != all.begin()) --each;  // it may reach into the page
  for (; each != all.end() && each->offset / kFilePage <= page; ++each) {
    if (each->size > kMostFunction) continue;
    if (const auto at = return_in(file, *each, is_here)) return at;
  }
  return std::nullopt;
}

bool is_plain_return(const UserSite& site) {
  return site.instruction.size() == 1 && site.instruction[0] == kPlainReturn;
}

std::optional<UserSite> done_by_stub(const UserSite& site,
                                     std::optional<std::uint64_t> spare_return) {
  UserSite done = site;
  if (std::ranges::equal(site.instruction, std::span(kFrame).subspan(kPushBytes))) {
    done.goes_on = static_cast<std::int32_t>(kMoveBytes);
    done.makes_frame = true;
    return done;
  }
  const auto one = disasm::decode_operation(site.instruction, place_of(site.offset));
  if (one && one->does_nothing) {
    done.goes_on = static_cast<std::int32_t>(one->length);
    return done;
  }
  if (!is_plain_return(site) || !spare_return) return std::nullopt;
  const auto distance = static_cast<std::int64_t>(*spare_return - site.offset);
  if (distance == 0 || distance != static_cast<std::int32_t>(distance)) return std::nullopt;
  done.goes_on = static_cast<std::int32_t>(distance);
  return done;
}

std::optional<std::uint64_t> find_inner_return(const ReadFile& file, std::uint64_t page,
                                               const PageText& text) {
  std::vector<std::byte> bytes(kFilePage);
  bytes.resize(file(page * kFilePage, bytes));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (text.inner[at] && bytes[at] == kPlainReturn) return page * kFilePage + at;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> frame_entry(const ReadFile& file, std::uint64_t entry) {
  std::array<std::byte, kFrame.size()> bytes{};
  const bool makes_one = file(entry, bytes) == bytes.size() && bytes == kFrame;
  return makes_one ? std::optional(entry + kPushBytes) : std::nullopt;
}

Result<UserSite> examine_go_site(const ReadFile& file, std::uint64_t offset,
                                 std::optional<std::uint64_t> spare) {
  std::array<std::byte, arch::kLongestInstruction> bytes{};
  const std::size_t length = file(offset, bytes);
  const auto one = disasm::decode(std::span(bytes).first(length), place_of(offset));
  if (!one) return fail(ErrorCode::Unsupported, "no instruction is there, or not in memory");
  UserSite site{.offset = offset, .instruction = {bytes.begin(), bytes.begin() + one->length}};
  site.down = taken_from_stack(bytes);
  if (site.down != 0) {
    site.goes_on = one->length;
    return site;
  }
  if (bytes[0] != kPlainReturn) {
    return fail(
        ErrorCode::Unsupported,
        "Go's runtime ends a program that a signal finds in a displaced instruction, so only "
        "returns have probes, and entries of functions that have a stack frame");
  }
  const auto distance = static_cast<std::int64_t>(spare.value_or(offset) - offset);
  if (distance == 0 || distance != static_cast<std::int32_t>(distance)) {
    return fail(ErrorCode::Unsupported,
                "no other return of the program is in memory that could take its place");
  }
  site.goes_on = static_cast<std::int32_t>(distance);
  return site;
}

std::optional<std::uint64_t> find_spare_return(const ReadFile& file,
                                               const FileFunctions& functions) {
  for (const FileFunction& function : functions.all()) {
    // Functions of the runtime that are not Go have no such check.
    if (!function.name.starts_with("runtime.") || function.size > kMostFunction) continue;
    if (!behind_stack_check(start_of(file, function))) continue;
    if (const auto at = return_in(file, function, [](std::uint64_t) { return true; })) return at;
  }
  return std::nullopt;
}

std::uint64_t go_entry(const ReadFile& file, const FileFunction& function) {
  const Text text = start_of(file, function);
  std::uint64_t at = behind_stack_check(text).value_or(function.offset);
  // Since Go 1.21 its frame comes first.
  const bool has_room = text.end() - at > kFrame.size();
  if (has_room && std::ranges::equal(text.from(at).first(kFrame.size()), kFrame)) {
    at += kFrame.size();
  }
  return at;
}

std::uint64_t user_entry(const ReadFile& file, const FileFunction& function) {
  std::array<std::byte, kLandingPad.size()> first{};
  const bool is_read = file(function.offset, first) == first.size();
  return function.offset + (is_read && is_endbr(first) ? first.size() : 0);
}

namespace {

using FunctionPart = guest_linux::FileFunction;

/// The function, and those that the compiler has moved away from it.
std::vector<FunctionPart> parts_of(const FileFunctions& functions, const FileFunction& function) {
  std::vector<FunctionPart> parts{function};
  const std::string cold = std::string(function.name) + ".cold";
  for (const FileFunction& each : functions.all()) {
    if (each.name.starts_with(cold)) parts.push_back(each);
  }
  return parts;
}

bool is_in(std::span<const FunctionPart> parts, GuestVirt target) {
  return std::ranges::any_of(parts, [target](const FunctionPart& part) {
    return target.is_in(place_of(part.offset), part.size);
  });
}

/// Whether an import is jumped to there: jmp *distance(%rip), behind a landing pad or not.
bool is_import(const ReadFile& file, std::uint64_t offset) {
  std::array<std::byte, 8> code{};
  if (file(offset, code) != code.size()) return false;
  const std::size_t at = is_endbr(code) ? kLandingPad.size() : 0;
  const bool has_prefix = code[at] == std::byte{0xf2};
  return code[at + has_prefix] == std::byte{0xff} && code[at + has_prefix + 1] == std::byte{0x25};
}

/// A search for the ways out of one function.
class WaysOut {
 public:
  WaysOut(const ReadFile& file, const FileFunctions& functions, const FindPiece& find_piece,
          const FileFunction& function, OnTailCall on_tail_call)
      : file_(file),
        functions_(functions),
        find_piece_(find_piece),
        follows_(on_tail_call == OnTailCall::Follow),
        parts_(parts_of(functions, function)) {}

  Result<std::vector<UserReturn>> find() {
    // Parts are found on the way.
    for (std::size_t n = 0; n < parts_.size(); ++n) {
      const FunctionPart part = parts_[n];
      TRY(find_in(part));
    }
    // A piece that seemed to be a function may have proved to be a part since.
    std::erase_if(found_, [this](const WayOut& one) { return is_in(parts_, one.target); });
    std::vector<UserReturn> result;
    std::ranges::transform(found_, std::back_inserter(result), &WayOut::way);
    return result;
  }

 private:
  struct WayOut {
    UserReturn way;
    GuestVirt target{};  // of a jump
  };
  static constexpr std::size_t kMostParts = 64;

  Result<void> find_in(const FunctionPart& part) {
    if (part.size == 0 || part.size > kMostFunction) {
      return fail(ErrorCode::Unsupported, "its symbol does not say how long it is");
    }
    const std::uint64_t end = part.offset + part.size;
    const Text text = TRY(read_text(file_, part.offset, end));
    for (std::uint64_t at = part.offset; at < end;) {
      const auto one = text.decode(at);
      if (!one) {
        return fail(ErrorCode::Unsupported,
                    fmt::format("{}+{:#x} does not decode", part.name, at - part.offset));
      }
      const bool jumps = one->flow == Flow::Jump || one->flow == Flow::ConditionalJump;
      const bool leaves = jumps && !is_in(parts_, one->target) &&
                          TRY(leads_out(fmt::format("{}+{:#x}", part.name, at - part.offset),
                                        one->target.offset_from(kAnywhere)));
      if (one->flow == Flow::Return) found_.push_back({{at, true}});
      if (leaves) found_.push_back({{at, false, one->condition}, one->target});
      at += one->length;
    }
    return {};
  }

  /// Whether a jump to there leaves; if it does not, that is one more part.
  Result<bool> leads_out(const std::string& where, std::uint64_t target) {
    const auto all = functions_.all();
    const auto first = std::ranges::lower_bound(all, target, {}, &FileFunction::offset);
    const auto last = std::ranges::upper_bound(all, target, {}, &FileFunction::offset);
    if (is_import(file_, target)) return true;
    if (first != last && !follows_) return true;
    if (parts_.size() == kMostParts) return fail(ErrorCode::Unsupported, "it has too many parts");
    if (first != last) {  // of aliases the one that says how long it is
      parts_.push_back(*std::ranges::max_element(first, last, {}, &FileFunction::size));
      return false;
    }
    const auto piece = find_piece_(target);
    // Code with a symbol is another function's, which may have returns of its own.
    if (!piece || functions_.at(target) != nullptr) {
      return fail(ErrorCode::Unsupported,
                  fmt::format("{} jumps to where no symbol stands, which may be a part of the "
                              "function or another one",
                              where));
    }
    const bool may_be_function = piece->offset == target && piece->may_be_called;
    if (may_be_function && !follows_ && !jumps_back(*piece)) return true;
    parts_.push_back({parts_.front().name, piece->offset, piece->size});
    return false;
  }

  /// Whether it goes on in the middle of what is known of the function.
  bool jumps_back(const guest_linux::FilePiece& piece) const {
    if (piece.size > kMostFunction) return false;
    const auto text = read_text(file_, piece.offset, piece.offset + piece.size);
    if (!text) return false;
    for (std::uint64_t at = piece.offset; at < text->end();) {
      const auto one = text->decode(at);
      if (!one) return false;
      const bool jumps = one->flow == Flow::Jump || one->flow == Flow::ConditionalJump;
      if (jumps && is_in(parts_, one->target) &&
          one->target.offset_from(kAnywhere) != parts_.front().offset) {
        return true;
      }
      at += one->length;
    }
    return false;
  }

  const ReadFile& file_;
  const FileFunctions& functions_;
  const FindPiece& find_piece_;
  const bool follows_;
  std::vector<FunctionPart> parts_;  // the function itself is the first
  std::vector<WayOut> found_;
};

}  // namespace

Result<std::vector<UserReturn>> user_returns(const ReadFile& file, const FileFunctions& functions,
                                             const FindPiece& find_piece,
                                             const FileFunction& function,
                                             OnTailCall on_tail_call) {
  return WaysOut(file, functions, find_piece, function, on_tail_call).find();
}

}  // namespace ringside::providers
