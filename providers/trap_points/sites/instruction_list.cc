#include "providers/trap_points/sites/instruction_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "providers/trap_points/sites/text_sweep.h"
#include "vmm/arch/arch.h"

namespace ringside::providers {
namespace {

using disasm::Flow;
using disasm::InstructionClass;
using guest_linux::Symbol;
using guest_linux::SymbolTable;

/// Of arch/x86/lib/retpoline.S (since 4.15; those for calls and jumps alone since 6.2):
/// __x86_indirect_thunk_REG, __x86_indirect_call_thunk_REG, __x86_indirect_jump_thunk_REG.
arch::Register register_of_thunk(std::string_view name) {
  constexpr std::string_view kPrefix = "__x86_indirect_", kInfix = "thunk_";
  const std::size_t at = name.find(kInfix);
  if (!name.starts_with(kPrefix) || at == name.npos) return nullptr;
  const auto found = std::ranges::find(arch::kNamesByEncoding, name.substr(at + kInfix.size()));
  if (found == arch::kNamesByEncoding.end()) return nullptr;
  return arch::kByEncoding[static_cast<std::size_t>(found - arch::kNamesByEncoding.begin())];
}

void see_through_thunks(disasm::Operation& operation, const SymbolTable& symbols) {
  const Flow flow = operation.flow;
  if (flow != Flow::Call && flow != Flow::Jump) return;
  for (const Symbol& target : symbols.all_at(operation.target)) {
    if (flow == Flow::Jump && is_return_thunk(target.name)) operation.kind = InstructionClass::Ret;
    if (auto by = register_of_thunk(target.name); by != nullptr) operation.target_register = by;
  }
}

/// Whether the text of this symbol is a function's that has an ftrace site: its own, or that of
/// the function whose .cold part it is.
Result<std::optional<FtraceSite>> find_ftrace(const GuestReader& text, const SymbolTable& symbols,
                                              const Symbol& function) {
  if (auto site = ftrace_site(text, function, &symbols)) return site;
  const std::string_view owner = owner_of_cold_part(function.name);
  const std::string& module = symbols.modules()[function.module].name;
  const Symbol* const found = owner.empty() ? nullptr : symbols.find(owner, module);
  if (found != nullptr && ftrace_site(text, *found, &symbols)) {
    return std::optional<FtraceSite>();
  }
  return fail(ErrorCode::Unsupported, fmt::format("{} has no ftrace site", function.name));
}

class Lister {
 public:
  Lister(const GuestReader& text, const SymbolTable& symbols, const Symbol& function)
      : text_(text), symbols_(symbols), function_(function) {}

  Result<InstructionList> run() {
    TRY(read());
    if (reach_ == TextSweep::Reach::NotToTheEnd) list_.trouble = "its text cannot be read";
    if (list_.ftrace) add_head();
    sweep();
    leave_out_padding_at_end();
    return std::move(list_);
  }
  Result<bool> has(GuestVirt at) {
    TRY(read());
    TextSweep steps(body(), begin(), reach_);
    while (!steps.is_done() && steps.here() < at) {
      if (!steps.next()) return false;
    }
    return !steps.is_done() && steps.here() == at && steps.next().has_value();
  }

 private:
  Result<void> read() {
    if (function_.size == 0 || function_.size > kMaxFunction) {
      return fail(ErrorCode::Unsupported, fmt::format("{} has no known end", function_.name));
    }
    list_.ftrace = TRY(find_ftrace(text_, symbols_, function_));
    bytes_.resize(function_.size);
    bytes_.resize(read_available(text_, function_.address, bytes_));
    if (bytes_.size() == function_.size) reach_ = TextSweep::Reach::ToTheEnd;
    return {};
  }

  /// The text after the head begins here.
  GuestVirt begin() const { return list_.ftrace ? list_.ftrace->end : function_.address; }
  std::span<const std::byte> body() const {
    const std::uint64_t skipped = begin().offset_from(function_.address);
    return std::span(bytes_).subspan(std::min<std::uint64_t>(skipped, bytes_.size()));
  }

  /// The landing pad, if there is one, and the ftrace site, which the guest may be rewriting.
  void add_head() {
    const auto pad = disasm::decode_operation(bytes_, function_.address);
    if (list_.ftrace->begin != function_.address && pad) add(*pad);
    disasm::Operation site;
    site.address = list_.ftrace->begin;
    site.length = kFtraceBytes;
    site.does_nothing = true;
    list_.instructions.push_back(site);
  }

  void sweep() {
    const auto bytes = body();
    for (TextSweep steps(bytes, begin(), reach_); !steps.is_done();) {
      const GuestVirt here = steps.here();
      const auto rest = bytes.subspan(here.offset_from(begin()));
      const bool is_padding = rest.front() == arch::kBreakpoint;
      const auto step = steps.next();
      if (!step) {
        if (list_.trouble.empty()) list_.trouble = step.error().message;
        return;
      }
      const auto operation = disasm::decode_operation(rest, here);
      if (operation && !is_padding) add(*operation);
    }
  }

  void add(disasm::Operation operation) {
    see_through_thunks(operation, symbols_);
    list_.instructions.push_back(operation);
  }

  /// Nops that fill the room up to the next function, or belong to its prefix.
  void leave_out_padding_at_end() {
    auto& all = list_.instructions;
    const bool is_whole = list_.trouble.empty();
    const auto is_nop = [&](const disasm::Operation& one) {
      const bool of_head = list_.ftrace && one.address < list_.ftrace->end;
      return one.does_nothing && !of_head;
    };
    while (is_whole && !all.empty() && is_nop(all.back())) all.pop_back();
  }

  const GuestReader& text_;
  const SymbolTable& symbols_;
  const Symbol& function_;
  InstructionList list_;
  std::vector<std::byte> bytes_;
  TextSweep::Reach reach_ = TextSweep::Reach::NotToTheEnd;
};

}  // namespace

Result<InstructionList> list_instructions(const GuestReader& text, const SymbolTable& symbols,
                                          const Symbol& function) {
  return Lister(text, symbols, function).run();
}

Result<bool> has_instruction(const GuestReader& text, const SymbolTable& symbols,
                             const Symbol& function, GuestVirt at) {
  return Lister(text, symbols, function).has(at);
}

}  // namespace ringside::providers
