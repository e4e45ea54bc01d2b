// In this file, top to bottom: the scan for instructions that open a window, the functions that
// leave it open for their callers, where the kernel starts a CPU, find().
#include "providers/trap_points/sites/functions_without_idt.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "disasm/decoder.h"
#include "providers/trap_points/sites/code_walk.h"
#include "providers/trap_points/sites/function_sites.h"
#include "vmm/arch/arch.h"

namespace ringside::providers {
namespace {

using disasm::Flow;
using guest_linux::Kernel;
using guest_linux::Symbol;
using Indirect = CodeWalk::Indirect;
using Outcome = CodeWalk::Outcome;

constexpr std::string_view kComesUp = "it runs before a CPU that comes up can take a breakpoint";
constexpr std::string_view kWakesUp = "it runs before a CPU that wakes up can take a breakpoint";
constexpr std::string_view kSwitches =
    "it runs where the kernel has another interrupt table, or another GS";

constexpr std::uint64_t kMaxText = 128 << 20;  // 7.2 has 19 MiB
// 6.1 has 8 functions that change the table or GS, two of which leave it open.
constexpr std::size_t kMaxOpeners = 256;

/// Where a CPU begins to run kernel text without the kernel's table. Assembler code hands on by
/// jumps that cannot be followed, so each of its parts is named.
struct Root {
  std::string_view name, reason;
  Indirect indirect;
};
constexpr std::array kRoots = {
    Root{"secondary_startup_64", kComesUp, Indirect::PassesOn},
    Root{"secondary_startup_64_no_verify", kComesUp, Indirect::PassesOn},  // 5.14 and later
    Root{"common_startup_64", kComesUp, Indirect::PassesOn},               // 6.7 and later
    Root{"soft_restart_cpu", kComesUp, Indirect::PassesOn},                // 6.5 and later
    Root{"start_cpu0", kComesUp, Indirect::EndsPath},                      // until 6.5
    Root{"start_secondary", kComesUp, Indirect::Fails},
    Root{"wakeup_long64", kWakesUp, Indirect::EndsPath},
    Root{"restore_registers", kWakesUp, Indirect::EndsPath},  // from hibernation
    Root{"restore_processor_state", kWakesUp, Indirect::Fails},
    Root{"__restore_processor_state", kWakesUp, Indirect::Fails},
};

/// All of vmlinux's text, read once: it is looked through several times, and walked in small steps.
class CopiedText final : public GuestReader {
 public:
  explicit CopiedText(const GuestReader& text) : text_(text) {}

  Result<void, Fault> copy(GuestVirt base, std::uint64_t size) {
    base_ = base;
    const std::size_t whole = (size / kHugePage + 1) * kHugePage;
    memory_.reset(std::aligned_alloc(kHugePage, whole));
    if (memory_ == nullptr) throw std::bad_alloc();
    // Without huge pages the 4,000 page faults take longer than the copy.
    (void)madvise(memory_.get(), whole, MADV_HUGEPAGE);
    bytes_ = {static_cast<std::byte*>(memory_.get()), size};
    return text_.read(base, bytes_);
  }
  GuestVirt base() const { return base_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    const std::uint64_t offset = at.offset_from(base_);  // huge below it
    if (offset >= bytes_.size() || out.size() > bytes_.size() - offset) {
      return text_.read(at, out);
    }
    std::copy_n(&bytes_[offset], out.size(), out.begin());
    return {};
  }

 private:
  const GuestReader& text_;
  static constexpr std::size_t kHugePage = 2 << 20;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  GuestVirt base_;
  std::unique_ptr<void, Free> memory_;
  std::span<std::byte> bytes_;
};

/// By where a function starts.
using Reasons = std::map<GuestVirt, std::string_view>;

class Search {
 public:
  Search(const GuestReader& text, const Kernel& kernel)
      : kernel_(kernel), copy_(text), walk_(copy_, kernel) {}

  Result<Reasons> run() {
    TRY(read_text());
    for (const Root& root : kRoots) TRY(walk_from(root));
    TRY(check_roots());
    TRY(find_switches());
    TRY(follow_openers());
    return std::move(reasons_);
  }

 private:
  const Symbol* named(std::string_view name) const {
    return kernel_.symbols().find(name, "vmlinux");
  }

  Result<void> walk_from(const Root& root) {
    const Symbol* symbol = named(root.name);
    if (symbol == nullptr || is_forbidden(symbol->address)) return {};
    TRY(walk_.from(symbol->address, root.indirect));
    note_walked(root.reason);
    return {};
  }

  /// A kernel that starts CPUs in a way that we do not know is not one to trace.
  Result<void> check_roots() const {
    const bool starts = named("secondary_startup_64") != nullptr;
    if (starts && kernel_.percpu_bases().size() > 1 && named("start_secondary") == nullptr) {
      return fail(ErrorCode::Unsupported, "it has no start_secondary");
    }
    const bool sleeps = named("do_suspend_lowlevel") != nullptr;
    if (sleeps && named("restore_processor_state") == nullptr &&
        named("__restore_processor_state") == nullptr) {
      return fail(ErrorCode::Unsupported, "it has no restore_processor_state");
    }
    return {};
  }

  bool is_forbidden(GuestVirt at) const {
    const auto ranges = kernel_.forbidden_text();
    return std::any_of(ranges.begin(), ranges.end(),
                       [at](const auto& range) { return range.contains(at); });
  }

  const Symbol* function_at(GuestVirt at) const {
    const Symbol* symbol = kernel_.symbols().at(at);
    return symbol != nullptr && symbol->is_text() && symbol->module == 0 ? symbol : nullptr;
  }

  void refuse(GuestVirt function, std::string_view reason) {
    reasons_.try_emplace(function, reason);
  }
  void note_walked(std::string_view reason) {
    for (const GuestVirt function : walk_.functions()) refuse(function, reason);
  }

  Result<void> read_text();
  struct DecodedInstruction {
    GuestVirt at;
    disasm::Instruction instruction;
  };
  std::optional<DecodedInstruction> instruction_over(const Symbol& function, GuestVirt byte) const;
  Result<void> find_switches();
  Result<void> follow_switch(GuestVirt byte);
  std::vector<GuestVirt> callers_of(const std::set<GuestVirt>& functions) const;
  Result<void> follow_openers();
  Result<void> follow_caller(GuestVirt at);
  Result<void> go_on_after(const Symbol& function, GuestVirt next);

  const Kernel& kernel_;
  CopiedText copy_;
  CodeWalk walk_;
  Reasons reasons_;
  std::set<GuestVirt> openers_;  // functions that come back with another table: see their callers
};

Result<void> Search::read_text() {
  if (kernel_.symbols().modules().empty()) return {};
  const guest_linux::Module& vmlinux = kernel_.symbols().modules()[0];
  if (vmlinux.text_size > kMaxText) {
    return fail(ErrorCode::Invalid, fmt::format("its text has {} bytes", vmlinux.text_size));
  }
  const auto done = copy_.copy(vmlinux.text_base, vmlinux.text_size);
  if (!done) {
    return fail(ErrorCode::Unsupported,
                fmt::format("its text at {:#x} cannot be read", done.error().address));
  }
  return {};
}

/// The instruction of the function that covers `byte`.
std::optional<Search::DecodedInstruction> Search::instruction_over(const Symbol& function,
                                                                   GuestVirt byte) const {
  const std::span text = copy_.bytes();
  if (function.address < copy_.base() || !byte.is_in(copy_.base(), text.size()))
    return std::nullopt;
  const auto bytes = text.subspan(function.address.offset_from(copy_.base()));
  const std::uint64_t goal = byte.offset_from(function.address);
  std::size_t offset = 0;
  while (offset < bytes.size()) {
    const GuestVirt here = function.address.wrapping_add(offset);
    const auto in = disasm::decode(bytes.subspan(offset), here);
    if (!in) return std::nullopt;
    offset += in->length;
    if (offset > goal) return DecodedInstruction{here, *in};
  }
  return std::nullopt;
}

/// The places of two bytes in a text, in order. Of 20 million bytes few are one of them, and two
/// searches for one byte each take a tenth of the time that a look at every byte takes.
class ByteSearch {
 public:
  ByteSearch(std::byte one, std::byte other, std::span<const std::byte> text)
      : text_(text), bytes_{one, other}, next_{find(one, 0), find(other, 0)} {}

  /// The text's size when there are no more.
  std::size_t next() {
    const std::size_t place = std::min(next_[0], next_[1]);
    const std::size_t n = next_[0] == place ? 0 : 1;
    next_[n] = find(bytes_[n], place + 1);
    return place;
  }

 private:
  std::size_t find(std::byte byte, std::size_t from) const {
    if (from >= text_.size()) return text_.size();  // memchr() may not be given a null pointer
    const void* const found =
        std::memchr(text_.data() + from, std::to_integer<int>(byte), text_.size() - from);
    if (found == nullptr) return text_.size();
    return static_cast<std::size_t>(static_cast<const std::byte*>(found) - text_.data());
  }

  std::span<const std::byte> text_;
  std::array<std::byte, 2> bytes_;
  std::array<std::size_t, 2> next_;
};

/// The first bytes of the instructions that may_switch() looks for.
constexpr std::byte kTwoByteOpcode{0x0f}, kMoveToSegment{0x8e};

/// Whether the three bytes, which begin with one of those, can be of lidt [mem], swapgs, mov gs,
/// pop gs, lgs, wrgsbase (Intel SDM volume 2).
bool may_switch(const std::byte* bytes) {
  const auto byte = [bytes](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  const unsigned reg = byte(2) >> 3 & 7, mod = byte(2) >> 6;
  if (bytes[0] == kMoveToSegment) return (byte(1) >> 3 & 7) == 5;
  switch (byte(1)) {
    case 0x01: return (reg == 3 && mod != 3) || byte(2) == 0xf8;
    case 0xa9:
    case 0xb5: return true;
    case 0xae: return reg == 3 && mod == 3;
    default: return false;
  }
}

Result<void> Search::find_switches() {
  constexpr std::size_t kLooksAt = 3;
  const std::span text = copy_.bytes();
  ByteSearch places(kTwoByteOpcode, kMoveToSegment, text);
  for (std::size_t i = places.next(); i + kLooksAt <= text.size(); i = places.next()) {
    if (may_switch(&text[i])) TRY(follow_switch(copy_.base().wrapping_add(i)));
  }
  return {};
}

Result<void> Search::follow_switch(GuestVirt byte) {
  const Symbol* function = function_at(byte);
  if (function == nullptr || is_forbidden(byte)) return {};
  const auto found = instruction_over(*function, byte);
  if (!found) return {};
  const disasm::Instruction& in = found->instruction;
  if (!in.loads_idt && !in.loads_gs) return {};
  refuse(function->address, kSwitches);
  const GuestVirt next = found->at.wrapping_add(in.length);
  if (in.loads_idt) return go_on_after(*function, next);
  TRY(walk_.from(next, Indirect::EndsPath));
  note_walked(kSwitches);
  return {};
}

/// Goes on after a change of the table; where that comes back, its callers are in the window too.
Result<void> Search::go_on_after(const Symbol& function, GuestVirt next) {
  refuse(function.address, kSwitches);
  if (loads_serving_table(function.name)) return {};
  const Outcome outcome = TRY(walk_.from(next, Indirect::EndsPath));
  note_walked(kSwitches);
  if (outcome == Outcome::Returns) openers_.insert(function.address);
  return {};
}

/// Where a call or jmp rel32 may lead to one of these functions.
std::vector<GuestVirt> Search::callers_of(const std::set<GuestVirt>& functions) const {
  constexpr std::size_t kLength = 5;
  std::vector<GuestVirt> callers;
  if (functions.empty()) return callers;
  const GuestVirt lowest = *functions.begin();
  const std::uint64_t reach = functions.rbegin()->offset_from(lowest);
  const std::span text = copy_.bytes();
  ByteSearch places(arch::kNearCall, arch::kNearJump, text);
  for (std::size_t i = places.next(); i + kLength <= text.size(); i = places.next()) {
    std::int32_t distance;
    std::memcpy(&distance, &text[i + 1], sizeof distance);
    const GuestVirt at = copy_.base().wrapping_add(i);
    const GuestVirt target =
        at.wrapping_add(kLength + static_cast<std::uint64_t>(std::int64_t{distance}));
    if (target.offset_from(lowest) > reach || !functions.contains(target)) continue;
    callers.push_back(at);
  }
  return callers;
}

Result<void> Search::follow_openers() {
  std::set<GuestVirt> followed;
  while (followed.size() != openers_.size()) {
    if (openers_.size() > kMaxOpeners) {
      return fail(ErrorCode::Unsupported, "too many functions change the interrupt table");
    }
    std::set<GuestVirt> fresh;
    std::set_difference(openers_.begin(), openers_.end(), followed.begin(), followed.end(),
                        std::inserter(fresh, fresh.end()));
    followed = openers_;
    const auto callers = callers_of(fresh);
    for (const GuestVirt at : callers) TRY(follow_caller(at));
  }
  return {};
}

Result<void> Search::follow_caller(GuestVirt at) {
  const Symbol* function = function_at(at);
  if (function == nullptr || is_forbidden(at)) return {};
  const auto found = instruction_over(*function, at);
  if (!found || found->at != at) return {};
  const disasm::Instruction& in = found->instruction;
  if (in.flow == Flow::Call) return go_on_after(*function, at.wrapping_add(in.length));
  if (in.flow != Flow::Jump) return {};
  refuse(function->address, kSwitches);
  if (!loads_serving_table(function->name)) openers_.insert(function->address);
  return {};
}

}  // namespace

FunctionsWithoutIdt FunctionsWithoutIdt::find(const GuestReader& text, const Kernel& kernel) {
  FunctionsWithoutIdt found;
  auto reasons = Search(text, kernel).run();
  if (reasons) {
    found.reasons_ = std::move(*reasons);
  } else {
    found.all_ = fmt::format(
        "it cannot be told what this kernel runs before a CPU can take a breakpoint: {}",
        reasons.error().message);
  }
  return found;
}

std::string_view FunctionsWithoutIdt::reason(GuestVirt function) const {
  if (!all_.empty()) return all_;
  const auto known = reasons_.find(function);
  return known != reasons_.end() ? known->second : std::string_view();
}

}  // namespace ringside::providers
