#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <tuple>
#include <vector>

#include "disasm/code_for_tests.h"
#include "disasm/decoders.h"

namespace ringside::disasm {
namespace {

using Bytes = std::vector<std::byte>;

std::string text_of(const std::optional<Instruction>& in) {
  if (!in) return "none";
  return fmt::format("{} bytes, flow {}, to {:#x}, condition {}, rip {}, sti {}, idt {}, gs {}",
                     in->length, int(in->flow), in->target.raw(), in->condition, in->rip_relative,
                     in->is_sti, in->loads_idt, in->loads_gs);
}

auto facts_of(const Instruction& in) {
  return std::tuple(in.length, in.flow, in.target, in.condition, in.rip_relative, in.is_sti,
                    in.loads_idt, in.loads_gs);
}

/// By Zydis.
std::optional<Instruction> decoded(std::span<const std::byte> bytes) {
  const auto raw = decode_raw(bytes);
  return raw ? std::optional(summarize(*raw, kHere)) : std::nullopt;
}

std::string hex(std::span<const std::byte> bytes) {
  std::string out;
  for (const std::byte byte : bytes) out += fmt::format("{:02x} ", std::to_integer<int>(byte));
  return out;
}

/// The bytes after an opcode, which look like a ModRM byte and all sorts of things.
Bytes with_tail(Bytes bytes, unsigned modrm, unsigned& seed) {
  bytes.push_back(static_cast<std::byte>(modrm));
  while (bytes.size() < arch::kLongestInstruction + 2) {
    seed = seed * 1664525 + 1013904223;
    bytes.push_back(static_cast<std::byte>(seed >> 24));
  }
  return bytes;
}

TEST(CommonInstructions, AreWhatZydisSaysThatTheyAre) {
  const std::array prefixes = {code({}),     code({0x48}),       code({0x41}),      code({0x66}),
                               code({0x65}), code({0x66, 0x49}), code({0x2e, 0x65})};
  unsigned seed = 1, common = 0, failures = 0;
  for (const Bytes& prefix : prefixes) {
    for (unsigned opcode = 0; opcode < 0x200; ++opcode) {
      Bytes bytes = prefix;
      if (opcode >= 0x100) bytes.push_back(std::byte{0x0f});
      bytes.push_back(static_cast<std::byte>(opcode));
      for (unsigned modrm = 0; modrm < 0x100; modrm += prefix.empty() ? 1 : 3) {
        const Bytes whole = with_tail(bytes, modrm, seed);
        const auto found = decode_common(whole, kHere);
        if (!found) continue;
        ++common;
        const auto expected = decoded(whole);
        const bool is_right = expected && facts_of(*found) == facts_of(*expected);
        if (is_right || ++failures > 20) continue;
        ADD_FAILURE() << hex(whole) << ": " << text_of(found) << ", not " << text_of(expected);
      }
    }
  }
  EXPECT_EQ(failures, 0u);
  EXPECT_GT(common, 100'000u);
}

TEST(CommonInstructions, AreNoneWhenCutShort) {
  for (const Bytes& whole :
       {code({0xe8, 1, 2, 3, 4}), code({0x48, 0x8b, 0x84, 0x24, 1, 2, 3, 4}),
        code({0x65, 0x48, 0x8b, 0x04, 0x25, 1, 2, 3, 4}), code({0x0f, 0x84, 1, 2, 3, 4}),
        code({0x66, 0x81, 0x7b, 1, 2, 3}), code({0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8})}) {
    const auto found = decode_common(whole, kHere);
    ASSERT_TRUE(found) << hex(whole);
    EXPECT_EQ(found->length, whole.size());
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(decode_common(std::span(whole).first(size), kHere)) << hex(whole) << size;
    }
  }
}

TEST(CommonInstructions, AreNoLongerThanTheProcessorTakes) {
  Bytes bytes(9, std::byte{0x2e});
  const Bytes add = code({0x81, 0x03, 1, 2, 3, 4});  // add dword [rbx], imm32
  bytes.insert(bytes.end(), add.begin(), add.end());
  ASSERT_EQ(bytes.size(), arch::kLongestInstruction);
  EXPECT_TRUE(decode_common(bytes, kHere));

  bytes.insert(bytes.begin(), std::byte{0x2e});
  EXPECT_FALSE(decode_common(bytes, kHere));
}

TEST(CommonInstructions, LeaveWhatAPrefixChangesToTheDecoder) {
  EXPECT_FALSE(decode_common(code({0x66, 0xe8, 0, 0, 0, 0}), kHere));  // processors differ
  EXPECT_FALSE(decode_common(code({0xf3, 0x90}), kHere));              // pause
  EXPECT_FALSE(decode_common(code({0xf3, 0x0f, 0x1e, 0xfa}), kHere));  // endbr64
  EXPECT_FALSE(decode_common(code({0xf0, 0xff, 0x03}), kHere));        // lock inc
  EXPECT_FALSE(decode_common(code({0x67, 0x8b, 0x03}), kHere));        // mov eax, [ebx]
  EXPECT_FALSE(decode_common(code({0x48, 0x65, 0x8b, 0x03}), kHere));  // REX is not the last
  EXPECT_FALSE(decode_common(code({0x8d, 0xc0}), kHere));              // lea of a register
  EXPECT_FALSE(decode_common(code({0xc7, 0xf8, 0, 0, 0, 0}), kHere));  // xbegin
  EXPECT_FALSE(decode_common(code({0x06}), kHere));
}

}  // namespace
}  // namespace ringside::disasm
