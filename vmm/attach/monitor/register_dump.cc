#include "vmm/attach/monitor/register_dump.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "vmm/base/numbers.h"

namespace ringside::vmm {
namespace {

struct RegisterName {
  std::string_view wide, narrow;  // in 64-bit code, and in all other
  arch::Register to;
};

constexpr std::array<RegisterName, 22> kRegisterNames{{
    {"RAX=", "EAX=", &Registers::rax}, {"RBX=", "EBX=", &Registers::rbx},
    {"RCX=", "ECX=", &Registers::rcx}, {"RDX=", "EDX=", &Registers::rdx},
    {"RSI=", "ESI=", &Registers::rsi}, {"RDI=", "EDI=", &Registers::rdi},
    {"RBP=", "EBP=", &Registers::rbp}, {"RSP=", "ESP=", &Registers::rsp},
    {"RIP=", "EIP=", &Registers::rip}, {"RFL=", "EFL=", &Registers::rflags},
    {"R8 =", {}, &Registers::r8},      {"R9 =", {}, &Registers::r9},
    {"R10=", {}, &Registers::r10},     {"R11=", {}, &Registers::r11},
    {"R12=", {}, &Registers::r12},     {"R13=", {}, &Registers::r13},
    {"R14=", {}, &Registers::r14},     {"R15=", {}, &Registers::r15},
    {"CR0=", "CR0=", &Registers::cr0}, {"CR3=", "CR3=", &Registers::cr3},
    {"CR4=", "CR4=", &Registers::cr4}, {"EFER=", "EFER=", &Registers::efer},
}};

/// The digits that begin the text.
std::optional<std::uint64_t> hexadecimal(std::string_view text) {
  return take_number<std::uint64_t>(text, 16);
}

/// The number after `name`, where a word begins.
std::optional<std::uint64_t> value_of(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; (at = text.find(name, at)) != std::string_view::npos; ++at) {
    const bool begins = at == 0 || text[at - 1] == ' ' || text[at - 1] == '\n';
    if (begins) return hexadecimal(text.substr(at + name.size()));
  }
  return std::nullopt;
}

struct Segment {
  std::uint64_t selector = 0, base = 0;
};

/// A line such as "CS =0010 0000000000000000 ffffffff 00af9b00 DPL=0 CS64 [-RA]".
std::optional<Segment> segment(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == std::string_view::npos || (at != 0 && text[at - 1] != '\n')) return std::nullopt;
  const std::string_view words = text.substr(at + name.size());
  const std::size_t blank = words.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const auto selector = hexadecimal(words), base = hexadecimal(words.substr(blank + 1));
  return selector && base ? std::optional(Segment{*selector, *base}) : std::nullopt;
}

std::optional<Registers> read_vcpu(std::string_view text) {
  Registers registers;
  const bool is_wide = value_of(text, "RIP=").has_value();
  for (const RegisterName& name : kRegisterNames) {
    const std::string_view wanted = is_wide ? name.wide : name.narrow;
    if (wanted.empty()) continue;
    const auto value = value_of(text, wanted);
    if (!value) return std::nullopt;
    registers.*name.to = *value;
  }
  const auto cs = segment(text, "CS ="), ss = segment(text, "SS ="), fs = segment(text, "FS ="),
             gs = segment(text, "GS =");
  if (!cs || !ss || !fs || !gs) return std::nullopt;
  registers.cs = cs->selector;
  registers.ss = ss->selector;
  registers.fs_base = fs->base;
  registers.gs_base = gs->base;
  return registers;
}

}  // namespace

Result<std::vector<Registers>> read_register_dump(std::string_view text,
                                                  std::span<const unsigned> numbers) {
  std::string clean(text);
  std::erase(clean, '\r');
  std::string_view rest = clean;
  std::vector<Registers> all;
  constexpr std::string_view kHead = "CPU#";
  while (all.size() < numbers.size()) {
    const std::size_t head = rest.find(kHead);
    if (head == std::string_view::npos) break;
    rest.remove_prefix(head + kHead.size());
    const std::size_t number = rest.find('\n');
    if (number == std::string_view::npos ||
        rest.substr(0, number) != std::to_string(numbers[all.size()])) {
      break;
    }
    rest.remove_prefix(number + 1);
    const auto registers = read_vcpu(rest.substr(0, rest.find(kHead)));
    if (!registers) break;
    all.push_back(*registers);
  }
  if (all.size() == numbers.size() && rest.find(kHead) == std::string_view::npos) return all;
  return fail(ErrorCode::Invalid,
              fmt::format("QEMU does not print the registers of vCPU {} as it should", all.size()));
}

}  // namespace ringside::vmm
