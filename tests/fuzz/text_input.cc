// Any bytes as kernel text: each instruction decoded, described, printed and displaced.
#include <algorithm>

#include "disasm/decoder.h"
#include "tests/fuzz/kernel_input.h"
#include "tests/fuzz/script.h"
#include "vmm/base/check.h"
#include "vmm/base/printable.h"

namespace ringside::fuzz {
namespace {

constexpr GuestVirt kText{0xffff'ffff'8100'0000};
constexpr std::size_t kLongest = 15;  // of an instruction (Intel SDM, volume 2, 2.3.11)

/// Whole instructions to the last byte.
void check_slot(std::span<const std::byte> code, GuestVirt slot) {
  CHECK(!code.empty() && code.size() <= disasm::kMaxSlotBytes);
  while (!code.empty()) {
    const auto instruction = disasm::decode(code, slot);
    CHECK(instruction && instruction->length <= code.size());
    code = code.subspan(instruction->length);
    slot = slot.wrapping_add(instruction->length);
  }
}

/// The length of the instruction; 0 where there is none.
std::size_t look_at(std::span<const std::byte> bytes, GuestVirt at, GuestVirt slot) {
  const auto instruction = disasm::decode(bytes, at);
  const auto operation = disasm::decode_operation(bytes, at);
  CHECK(instruction.has_value() == operation.has_value());
  const std::string text = disasm::assembly(bytes, at);
  CHECK(text.empty() != instruction.has_value() && printable(text) == text);
  const auto moved = disasm::relocate(bytes, at, slot);
  if (!instruction) {
    CHECK(!moved);
    return 0;
  }
  const std::size_t length = instruction->length;
  CHECK(length > 0 && length <= std::min(bytes.size(), kLongest));
  CHECK(operation->length == length);
  CHECK(!disasm::name_of(operation->kind).empty());
  if (moved) {
    check_slot(*moved, slot);
    const auto again = disasm::relocate(bytes.first(length), at, slot);
    CHECK(again && *again == *moved);
  }
  return length;
}

}  // namespace

std::size_t read_text(std::span<const std::byte> input) {
  FuzzScript script(input);
  // Within reach of it, beside it, and where only a lying guest has one.
  const GuestVirt at = kText.wrapping_add(script.take<std::uint32_t>());
  const GuestVirt slot = at.wrapping_add(script.take<std::uint64_t>());
  std::span<const std::byte> bytes = script.take_bytes(4096);
  std::size_t understood = 0;
  for (GuestVirt here = at; !bytes.empty();) {
    const std::size_t length = look_at(bytes, here, slot);
    understood += length > 0 ? 1 : 0;
    const std::size_t step = std::max<std::size_t>(length, 1);
    bytes = bytes.subspan(step);
    here = here.wrapping_add(step);
  }
  return understood;
}

Inputs text_inputs() {
  const auto bytes = [](std::initializer_list<unsigned> values) {
    ScriptWriter out;
    out.put(std::uint32_t{0x1000}, std::uint64_t{0x10'0000});
    for (const unsigned value : values) out.put(static_cast<std::uint8_t>(value));
    return out.bytes();
  };
  return {// push rbp; mov rbp, rsp; call; lea rax, [rip]; mov gs:[rip], rbx; jne; ret
          bytes({0x55, 0x48, 0x89, 0xe5, 0xe8, 1,    2, 3, 0, 0x48, 0x8d, 0x05, 1,   2,
                 3,    0,    0x65, 0x48, 0x89, 0x1d, 1, 2, 3, 0,    0x75, 0x10, 0xc3}),
          // lock xadd [rdi], eax; rep movsb; loop; jrcxz; call [rax * 8 + table]; ret 8; sti; ud2
          bytes({0xf0, 0x0f, 0xc1, 0x07, 0xf3, 0xa4, 0xe2, 0xfe, 0xe3, 0x10, 0xff, 0x14,
                 0xc5, 0,    0,    0,    0x81, 0xc2, 8,    0,    0xfb, 0x0f, 0x0b}),
          // vpaddd ymm0, ymm1, [rip]; vaddps zmm1 {k1}, zmm2, [rip]; push [rsp + 8]; pop [rsp]
          bytes({0xc5, 0xf5, 0xfe, 0x05, 0, 0,    0,    1,    0x62, 0xf1, 0x6c, 0x49, 0x58,
                 0x0d, 0,    0,    0,    1, 0xff, 0x74, 0x24, 8,    0x8f, 0x04, 0x24})};
}

}  // namespace ringside::fuzz
