#include <algorithm>
#include <array>

#include "tests/fuzz/guest_input.h"
#include "tests/fuzz/kernel_input.h"
#include "vmm/base/check.h"
#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/stacks/stack_walk.h"

namespace ringside::fuzz {
namespace {

using namespace guest_linux;

constexpr std::uint64_t kText = 0xffff'ffff'8100'0000, kStack = 0xffff'c900'0001'0000;
constexpr std::uint64_t kTable = 0xffff'ffff'8200'0000;
constexpr std::size_t kMostSections = 4, kMostMoved = 8, kMostFrames = 64;

/// Behind the stack's pieces.
struct Walk {
  Registers registers;
  std::uint8_t from_caller;
  std::uint8_t moved;     // pieces of moved text
  std::uint8_t sections;  // each a Section, its addresses and its entries
  std::uint8_t unused[5];
};
struct Section {
  std::uint64_t begin, size;
  std::uint16_t address_bytes, entry_bytes;
  std::uint32_t unused;
};

StackTables take_tables(FuzzScript& script, std::size_t sections) {
  StackTables tables;
  std::size_t most = 0;
  for (std::size_t n = 0; n < std::min(sections, kMostSections); ++n) {
    const auto section = script.take<Section>();
    const auto addresses = script.take_bytes(section.address_bytes);
    const auto entries = script.take_bytes(section.entry_bytes);
    tables.add({GuestVirt(section.begin), GuestVirt(section.begin + section.size)},
               {GuestVirt(kTable), addresses}, entries);
    most += addresses.size() / kOrcAddressBytes;
  }
  CHECK(tables.entry_count() <= most);
  return tables;
}

}  // namespace

std::size_t walk_stack(std::span<const std::byte> input) {
  FuzzScript script(input);
  const GuestInput stack(script);
  const auto walk = script.take<Walk>();
  StackTables tables = take_tables(script, walk.sections);
  std::vector<StackTables::Moved> moved(std::min<std::size_t>(walk.moved, kMostMoved));
  for (auto& each : moved) each = script.take<StackTables::Moved>();
  tables.set_moved(moved);
  const auto start = walk.from_caller % 2 == 0 ? WalkStart::Here : WalkStart::Caller;
  std::array<std::uint64_t, kMostFrames> frames{}, again{};
  const std::size_t count = unwind(tables, stack, walk.registers, start, frames);
  CHECK(count <= frames.size());
  for (std::size_t n = 0; n < count; ++n) CHECK(tables.is_text(frames[n]));
  stack.rewind();
  CHECK(unwind(tables, stack, walk.registers, start, again) == count && again == frames);
  stack.rewind();
  const std::size_t fewer = count / 2;
  CHECK(unwind(tables, stack, walk.registers, start, std::span(again).first(fewer)) == fewer);
  return count;
}

namespace {

// Numbers of registers and kinds since 6.4.
constexpr unsigned kSp = 5, kBp = 4, kPreviousSp = 1, kSpIndirect = 9, kR10 = 6;
constexpr unsigned kEnd = 1, kCall = 2, kRegisters = 3, kPartial = 4;

struct Row {
  std::uint64_t offset;
  unsigned kind, sp;
  int sp_offset;
  unsigned bp = 0;
  int bp_offset = 0;
  bool signal = false;
};

std::vector<std::byte> stack_input(const std::vector<Row>& rows,
                                   const std::vector<std::uint64_t>& words, bool caller) {
  fakes::Bytes stack, addresses, entries;
  for (const std::uint64_t word : words) stack.add(word);
  for (const Row& row : rows) {
    const std::uint64_t here = kTable + addresses.size();
    addresses.add(static_cast<std::int32_t>(kText + row.offset - here));
    entries.add(static_cast<std::int16_t>(row.sp_offset));
    entries.add(static_cast<std::int16_t>(row.bp_offset));
    entries.add(static_cast<std::uint16_t>(row.sp | row.bp << 4 | row.kind << 8 |
                                           (row.signal ? 0x800U : 0U)));
  }
  Walk walk{};
  walk.registers.rip = kText + 0x110;
  walk.registers.rsp = walk.registers.r10 = kStack;
  walk.registers.rbp = kStack + 0x20;
  walk.from_caller = caller ? 1 : 0;
  walk.sections = 1;
  walk.moved = 1;
  ScriptWriter rest;
  rest.put(walk, Section{kText, 0x10000, static_cast<std::uint16_t>(addresses.size()),
                         static_cast<std::uint16_t>(entries.size()), 0});
  for (const auto* bytes : {&addresses, &entries}) {
    for (const std::byte byte : bytes->bytes()) rest.put(byte);
  }
  rest.put(StackTables::Moved{GuestVirt(kTable + 0x10'0000), 16, GuestVirt(kText + 0x108), 4});
  const Piece piece{kStack, 0x2000, 0, stack.bytes()};
  return write_guest({&piece, 1}, rest.bytes());
}

}  // namespace

Inputs stack_inputs() {
  std::vector<std::uint64_t> interrupted(30, 0);
  interrupted[0] = kText + 0x210;
  interrupted[1 + 4] = kStack + 0x80;
  interrupted[1 + 16] = kText + 0x300;
  interrupted[1 + 17] = 0x10;
  interrupted[1 + 19] = kStack + 0x100;
  const std::vector<Row> rows = {{0x100, kCall, kSp, 8},
                                 {0x200, kRegisters, kSp, 0, 0, 0, true},
                                 {0x300, kCall, kBp, 16, kPreviousSp, -16},
                                 {0x400, kPartial, kSp, 0, 0, 0, true},
                                 {0x500, kCall, kSpIndirect, 8},
                                 {0x600, kCall, kR10, 8},
                                 {0x700, kEnd, 0, 0}};
  return {stack_input({{0x100, kCall, kSp, 24}, {0x200, kCall, kSp, 16}, {0x300, kEnd, 0, 0}},
                      {kText + 0x150, 0, 0, kText + 0x250, 0, kText + 0x350}, true),
          stack_input(rows, interrupted, false),
          stack_input({}, {kStack + 0x20, kText + 0x20, kStack + 0x40, kText + 0x40}, false)};
}

}  // namespace ringside::fuzz
