// In this file, top to bottom: where the kernel searches for faults, a function's text as it was,
// where an int3 may stand.
#include "providers/trap_points/sites/site_examiner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "providers/trap_points/sites/function_sites.h"
#include "providers/trap_points/sites/text_sweep.h"
#include "vmm/arch/arch.h"
#include "vmm/base/check.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/text/patched_sites.h"

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

namespace {

using arch::kLongestInstruction;
using guest_linux::Kernel;
using guest_linux::Symbol;

}  // namespace

tl::unexpected<Error> refuse(GuestVirt address, std::string_view why) {
  return fail(ErrorCode::Unsupported,
              fmt::format("no probe can stand at {:#x}: {}", address.raw(), why));
}

void SiteExaminer::forget() {
  boundary_ = {};
  last_.reset();
}

bool SiteExaminer::find_functions_without_idt() {
  if (without_idt_) return false;
  without_idt_ = FunctionsWithoutIdt::find(text_, kernel_);
  return true;
}

bool SiteExaminer::is_unchanged(const ExaminedText& text) const {
  return hash_of(text) == text.hash;
}

/// Empty when not all of it can be read.
std::optional<std::uint64_t> SiteExaminer::hash_of(const ExaminedText& text) const {
  buffer_.resize(text.size);
  if (!text_.read(text.begin, buffer_)) return std::nullopt;
  const auto leave_out = [&](std::uint64_t offset, std::uint64_t length) {
    for (std::uint64_t i = offset; i < offset + length && i < buffer_.size(); ++i) {
      buffer_[i] = std::byte{0};
    }
  };
  if (text.ftrace_offset >= 0) {
    leave_out(static_cast<std::uint64_t>(text.ftrace_offset), kFtraceBytes);
  }
  for (const auto& site : Kernel::sites_from(kernel_.patched_sites(), text.begin)) {
    const std::uint64_t offset = site.address.offset_from(text.begin);
    if (offset >= buffer_.size()) break;
    leave_out(offset, site.length);
  }
  // Without a key: a guest that made two texts of one hash would only deceive itself, and arming
  // compares the bytes of each instruction.
  // SAFETY: char may alias any bytes.
  const std::string_view bytes(reinterpret_cast<const char*>(buffer_.data()), buffer_.size());
  return std::hash<std::string_view>()(bytes);
}

/// Of the function that covers `address`, whose size instruction_at() has found good.
Result<ExaminedText> SiteExaminer::text_of(GuestVirt address, const Symbol& function,
                                           const std::optional<FtraceSite>& ftrace) {
  if (last_ && last_->begin == function.address) return *last_;
  ExaminedText fresh{.begin = function.address,
                     .size = static_cast<std::uint32_t>(function.size),
                     .ftrace_offset = -1};
  if (ftrace) {
    fresh.ftrace_offset = static_cast<std::int8_t>(ftrace->begin.offset_from(function.address));
  }
  const auto hash = hash_of(fresh);
  if (!hash) return refuse(address, "its text cannot be read");
  fresh.hash = *hash;
  last_ = fresh;
  return fresh;
}

Result<void> SiteExaminer::check_ranges(GuestVirt address, const Symbol& function,
                                        SitePolicy policy) const {
  const auto& symbols = kernel_.symbols();
  for (const auto& range : kernel_.forbidden_text()) {
    if (!range.contains(address)) continue;
    const Symbol* start = symbols.find("__noinstr_text_start");
    const Symbol* end = symbols.find("__noinstr_text_end");
    const bool noinstr =
        start != nullptr && end != nullptr && address >= start->address && address < end->address;
    if (policy == SitePolicy::AllowNoinstr && noinstr) continue;
    if (function.module != 0) {
      return refuse(address, "its module's tables of what the kernel patches cannot be read");
    }
    return refuse(address, "the kernel cannot take a breakpoint in this part of its text");
  }
  return {};
}

Result<void> SiteExaminer::check_ready(GuestVirt address, const Symbol& function) const {
  CHECK(without_idt_.has_value());
  const std::string_view reason = without_idt_->reason(function.address);
  if (!reason.empty()) return refuse(address, reason);
  return {};
}

/// The bytes of the instruction at `address`, if the function's instructions lead there from
/// `begin` on. The span is good until the next call.
Result<std::span<const std::byte>> SiteExaminer::instruction_at(GuestVirt address,
                                                                const Symbol& function,
                                                                GuestVirt begin) {
  if (function.size == 0 || function.size > kMaxFunction) {
    return refuse(address, "its function has no known end");
  }
  const bool known = boundary_.function == function.address && boundary_.at <= address;
  const GuestVirt from = known ? boundary_.at : begin;
  // The symbol covers the address.
  const std::uint64_t to_end = function.size - from.offset_from(function.address);
  buffer_.resize(std::min(to_end, address.offset_from(from) + kLongestInstruction));
  if (!text_.read(from, buffer_)) return refuse(address, "its text cannot be read");

  TextSweep sweep(buffer_, from, TextSweep::Reach::NotToTheEnd);
  while (sweep.here() < address) {
    const auto in = sweep.next();
    if (!in) return refuse(address, in.error().message);
  }
  if (sweep.here() != address) return refuse(address, "it lies inside an instruction");
  const auto in = sweep.next();
  if (!in) return refuse(address, in.error().message);
  boundary_ = {function.address, address};
  return std::span<const std::byte>(buffer_).subspan(address.offset_from(from), in->length);
}

/// Whole instructions move to the slot, so no byte of them may be one that the guest patches. True
/// when the kernel mends a fault of it.
Result<bool> SiteExaminer::check_patched(GuestVirt address,
                                         const disasm::Instruction& instruction) const {
  const auto sites = kernel_.patched_sites();
  const Kernel::PatchedSite* site = Kernel::site_in(sites, address, instruction.length);
  if (site == nullptr) return false;
  const auto refusal = [&](std::string_view what, std::string_view why) {
    return refuse(address, fmt::format("{}, {}", what, why));
  };
  bool may_fault = false;
  for (const auto& one : Kernel::sites_from(sites, site->address)) {
    if (one.address >= address.wrapping_add(instruction.length)) break;
    if (one.what != guest_linux::kExceptionTable.what || one.address != address) {
      return refusal(one.what, "which the kernel handles by its address");
    }
    if (!fault_search_) return refusal(one.what, fault_search_.error().message);
    if (!mends_in_slot(one, instruction)) {
      return refusal(one.what, "and what mends a fault looks at the instruction's own place");
    }
    may_fault = true;
  }
  return may_fault;
}

/// A kernel that came up with one CPU has made its lock prefixes ones that say nothing, and makes
/// them locks again, where it finds those bytes, before a second CPU comes
/// (alternatives_enable_smp of arch/x86/kernel/alternative.c).
Result<void> SiteExaminer::check_lock(GuestVirt address,
                                      std::span<const std::byte> instruction) const {
  constexpr std::byte kNoLock{0x3e};  // the prefix DS
  if (instruction.front() != kNoLock || kernel_.percpu_bases().size() <= 1) return {};
  const auto in = disasm::decode(instruction, address);
  if (in && in->flow != disasm::Flow::Next) return {};  // a hint of a jump, or notrack
  return refuse(address, "the kernel makes it a locked one when another CPU comes");
}

/// sti holds interrupts off for one more instruction, which is the jump back when it runs in a
/// slot. That matters to those that must not be apart from it (hlt, mwait, the ways out of the
/// kernel), and none of them can be displaced.
Result<void> SiteExaminer::check_after_sti(GuestVirt address, const Symbol& function) const {
  const GuestVirt next = address.wrapping_add(1);
  std::array<std::byte, kLongestInstruction> bytes;
  const std::uint64_t left = function.size - next.offset_from(function.address);
  const auto code = std::span(bytes).first(std::min<std::uint64_t>(bytes.size(), left));
  const auto known = std::span<const std::byte>(code).first(read_available(text_, next, code));
  if (!known.empty() && disasm::relocate(known, next, next)) return {};
  return refuse(address, "interrupts stay off until the instruction after it has run");
}

Result<ProbeSite> SiteExaminer::examine(GuestVirt address, SitePolicy policy) {
  const Symbol* function = kernel_.symbols().at(address);
  // Kernels list data as text, too: 25,270 symbols of Debian's 7.2 lie beyond its end.
  const auto modules = kernel_.symbols().modules();
  if (function == nullptr || !function->is_text() ||
      !modules[function->module].has_text_at(address)) {
    return refuse(address, "it is not in the kernel's text");
  }
  TRY(check_ranges(address, *function, policy));
  if (!text_.trouble()) return refuse(address, text_.trouble().error().message);
  // At its very beginning the function that gives up the table still has it.
  if (address != kexec_site_) TRY(check_ready(address, *function));
  // Sweeps begin after the ftrace site: the guest may be rewriting it.
  const auto ftrace = ftrace_site(text_, *function, &kernel_.symbols());
  if (ftrace && address >= ftrace->begin && address < ftrace->end) {
    return refuse(address, "the guest's own ftrace patches it");
  }
  const bool after = ftrace && address >= ftrace->end;
  const GuestVirt begin = after ? ftrace->end : function->address;
  const auto bytes = TRY(instruction_at(address, *function, begin));
  const auto instruction = disasm::decode(bytes, address);
  CHECK(instruction.has_value());
  const bool may_fault = TRY(check_patched(address, *instruction));
  TRY(check_lock(address, bytes));
  if (instruction->is_sti) TRY(check_after_sti(address, *function));
  if (text_.has_kprobe(address, bytes.size())) {
    return refuse(address, "a kprobe of the guest's own stands there, or right before it");
  }
  // Its size does not depend on the place.
  const auto displaced = disasm::relocate(bytes, address, address);
  if (!displaced) return refuse(address, displaced.error().message);
  ProbeSite site(address, bytes, policy);
  site.may_fault_ = may_fault;
  site.displaced_size_ = static_cast<std::uint8_t>(displaced->size());
  site.text_ = TRY(text_of(address, *function, ftrace));  // uses the buffer that `bytes` lies in
  return site;
}

}  // namespace ringside::providers
