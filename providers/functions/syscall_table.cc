#include "providers/functions/syscall_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>

#include "disasm/decoder.h"

namespace ringside::providers {
namespace {

constexpr std::string_view kPrefix = "__x64_sys_";
constexpr std::string_view kNotImplemented = "ni_syscall";
constexpr std::uint64_t kMostText = 4096;  // bytes of do_syscall_64; it has some 150

/// Function address to the lowest number that leads there.
using Numbers = std::unordered_map<std::uint64_t, std::uint32_t>;

Numbers read_table(const GuestReader& kernel, const guest_linux::Symbol& table) {
  std::vector<std::uint64_t> functions(std::min<std::uint64_t>(table.size / 8, kSyscallNumbers));
  const auto bytes = std::as_writable_bytes(std::span(functions));
  functions.resize(read_available(kernel, table.address, bytes) / 8);
  Numbers numbers;
  for (std::uint32_t number = 0; number < functions.size(); ++number) {
    numbers.emplace(functions[number], number);
  }
  return numbers;
}

/// Of `mov [register + offset], rax` that register; null for everything else.
arch::Register holder_of_result(const disasm::Operation& operation, std::uint32_t offset) {
  if (operation.stored != arch::kSystemCallResult || !operation.memory) return nullptr;
  const disasm::MemoryOperand& memory = *operation.memory;
  const disasm::MemoryOperand plain{.base = memory.base, .displacement = offset};
  return memory == plain ? memory.base : nullptr;
}

}  // namespace

std::vector<SystemCall> find_system_calls(const GuestReader& kernel,
                                          const guest_linux::SymbolTable& symbols) {
  const guest_linux::Symbol* table = symbols.find("sys_call_table", "vmlinux");
  const Numbers numbers = table != nullptr ? read_table(kernel, *table) : Numbers();
  std::vector<SystemCall> calls;
  for (const guest_linux::Symbol& symbol : symbols.symbols()) {
    if (!symbol.is_text() || symbol.module != 0 || !symbol.name.starts_with(kPrefix)) continue;
    const std::string_view name = symbol.name.substr(kPrefix.size());
    // A compiler-made part (__x64_sys_reboot.cold) is not a call of its own.
    if (name == kNotImplemented || name.find('.') != std::string_view::npos) continue;
    const auto number = numbers.find(symbol.address.raw());
    if (!numbers.empty() && number == numbers.end()) continue;
    calls.push_back(
        {std::string(name), symbol, number == numbers.end() ? kNoNumber : number->second});
  }
  std::stable_sort(calls.begin(), calls.end(),
                   [](const SystemCall& a, const SystemCall& b) { return a.number < b.number; });
  return calls;
}

PtRegsLayout find_pt_regs(const TypeGraph& types) {
  const auto regs = types.find(TypeKind::Struct, "pt_regs");
  const auto offset = [&](std::string_view name, std::size_t word) {
    const auto member = regs ? types.find_member(*regs, name) : std::nullopt;
    return static_cast<std::uint32_t>(member ? member->bit_offset / 8
                                             : word * sizeof(std::uint64_t));
  };
  const auto of = [&](arch::Register which) {
    const arch::SavedWord& saved = arch::saved_word(which);
    return offset(saved.member, saved.word);
  };
  PtRegsLayout layout{};
  for (std::size_t n = 0; n < layout.arguments.size(); ++n) {
    layout.arguments[n] = of(arch::kSystemCallArguments[n]);
  }
  layout.result = of(arch::kSystemCallResult);
  layout.number = offset(arch::kSavedNumberName, arch::kSavedNumber);
  return layout;
}

ArgumentPlan system_call_entry_plan(const PtRegsLayout& layout) {
  ArgumentPlan plan;
  for (std::size_t n = 0; n < layout.arguments.size(); ++n) {
    plan.arguments[n] = ArgumentSource::word(arch::kArgumentRegisters[0], layout.arguments[n]);
  }
  return plan;
}

std::vector<SharedReturn> find_shared_returns(const GuestReader& kernel,
                                              const guest_linux::SymbolTable& symbols,
                                              const PtRegsLayout& layout) {
  const guest_linux::Symbol* function = symbols.find("do_syscall_64", "vmlinux");
  if (function == nullptr) return {};
  std::vector<std::byte> text(std::min(function->size, kMostText));
  if (!kernel.read(function->address, text)) return {};

  // A number that is no call's is answered here too, by the function for none: nothing was entered,
  // so nothing returns, whatever the number looks like without its x32 bit.
  const guest_linux::Symbol* none = symbols.find(fmt::format("{}{}", kPrefix, kNotImplemented));
  std::vector<SharedReturn> found;
  bool after_call = false;
  for (std::size_t at = 0; at < text.size();) {
    const GuestVirt address = function->address.wrapping_add(at);
    const auto operation = disasm::decode_operation(std::span(text).subspan(at), address);
    if (!operation || operation->length == 0) break;
    const arch::Register holder = holder_of_result(*operation, layout.result);
    if (after_call && holder != nullptr) found.push_back({address, holder});
    // A patched call through a thunk is followed by the nops that fill its old length.
    const bool filler = after_call && operation->does_nothing;
    const bool calls = operation->flow == disasm::Flow::Call &&
                       (none == nullptr || operation->target != none->address);
    after_call = calls || operation->flow == disasm::Flow::IndirectCall || filler;
    at += operation->length;
  }
  return found;
}

}  // namespace ringside::providers
