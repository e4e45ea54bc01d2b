#include <algorithm>
#include <array>

#include "tests/fuzz/kernel_input.h"
#include "tests/fuzz/ram_input.h"
#include "vmm/base/check.h"
#include "vmm/linux/processes/user_unwind.h"
#include "vmm/linux/processes/user_unwind_fakes_for_tests.h"

namespace ringside::fuzz {
namespace {

using namespace guest_linux;
using fakes::RuleWriter;
using fakes::UnwindGuest;
using fakes::UnwindImage;

constexpr std::uint64_t kProgramAt = 0x40'0000, kLibraryAt = 0x7f00'0000'0000;
constexpr std::size_t kMostFrames = 64;

/// Behind the pieces.
struct Thread {
  std::uint64_t mm, rip, rsp, rbp;
};

Registers registers_of(const Thread& thread) {
  Registers registers;
  registers.rip = thread.rip, registers.rsp = thread.rsp;
  registers.rbp = registers.r10 = thread.rbp;
  return registers;
}

}  // namespace

std::size_t walk_user_stack(std::span<const std::byte> input) {
  FuzzScript script(input);
  const GuestInput guest(script);
  InputMachine machine(guest, 0);
  const auto thread = script.take<Thread>();
  const Registers registers = registers_of(thread);
  UserUnwinder unwinder(machine.memory(), fakes::user_unwind_layout());
  const UserUnwinder::Process process{guest, guest, GuestVirt(thread.mm)};
  std::array<std::uint64_t, kMostFrames> frames{}, fewer{};
  const std::size_t count = unwinder.walk(process, registers, frames);
  CHECK(count <= frames.size() && (count != 0) == (thread.rip != 0));
  for (std::size_t n = 0; n < count; ++n) CHECK(frames[n] != 0);
  // Nothing was remembered that would make a walk longer than it may be.
  guest.rewind();
  CHECK(unwinder.walk(process, registers, std::span(fewer).first(3)) <= 3);
  CHECK(unwinder.walk(process, registers, {}) == 0);
  return count == 0 ? 0 : count - 1;
}

namespace {

std::vector<std::byte> a_stack(bool is_interrupted) {
  UnwindImage image;
  const std::uint8_t stub[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22},
                     cfa[] = {0x77, 0xa0, 1, 0x06}, pc[] = {0x77, 0xa8, 1};
  RuleWriter trampoline;
  trampoline.expression(0x0f, cfa).register_expression(0x10, 16, pc);
  image.functions = {
      {0x1000, 0x40, RuleWriter().advance(1).def_cfa_offset(16).saved(3, 16), "zPLR"},
      {0x1100, 0x40, RuleWriter().advance(4).byte(0x0a).def_cfa_offset(40).advance(90).byte(0x0b)},
      {0x1200, 0x40, RuleWriter().expression(0x0f, stub)},
      {0x1300, 0x40, RuleWriter().byte(7).uleb(16)},
      {0x13ff, 0x11, trampoline, "zRS"}};
  UnwindGuest guest(28);
  guest.map(image, kLibraryAt);
  const GuestVirt mm = guest.finish();
  std::vector<std::uint64_t> words(64, 0);
  if (is_interrupted) {
    words[0] = kLibraryAt + 0x1400;
    words[22] = kLibraryAt + 0x1100, words[21] = UnwindGuest::kStack + 400;
    words[50] = kLibraryAt + 0x1310;
  } else {
    words[0] = kLibraryAt + 0x1120, words[5] = kLibraryAt + 0x1020, words[7] = kProgramAt;
    words[8] = UnwindGuest::kStack + 0x100, words[9] = kLibraryAt + 0x1310;
  }
  guest.stand_at(kLibraryAt + 0x1200, words);
  std::vector<Piece> pieces = pieces_of(guest.kernel.pages());
  for (const Piece& piece : pieces_of(guest.memory.pages())) pieces.push_back(piece);
  for (std::uint64_t frame = 1; frame < 28; ++frame) {
    const auto page = guest.files.page(frame);
    if (std::ranges::all_of(page, [](std::byte b) { return b == std::byte{0}; })) continue;
    pieces.push_back({frame * 4096, 4096, 0, page});
  }
  ScriptWriter rest;
  rest.put(Thread{mm.raw(), guest.registers.rip, guest.registers.rsp, UnwindGuest::kStack + 64});
  return write_guest(pieces, rest.bytes());
}

}  // namespace

Inputs user_stack_inputs() {
  return {a_stack(false), a_stack(true)};
}

}  // namespace ringside::fuzz
