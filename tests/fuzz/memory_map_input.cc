// The memory map that a QEMU that somebody else started tells of its guest: each piece that we
// believe has to lie in its backend, and no two anywhere at one place.
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tests/fuzz/host_input.h"
#include "tests/fuzz/script.h"
#include "vmm/arch/arch.h"
#include "vmm/attach/monitor/memory_map.h"
#include "vmm/base/check.h"

namespace ringside::fuzz {
namespace {

using namespace vmm;

constexpr std::uint64_t kEndOfMemory = std::uint64_t{1} << 52;

std::string_view text_of(std::span<const std::byte> bytes) {
  // SAFETY: char may alias.
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void check_line(const Error& error) {
  CHECK(!error.message.empty() && error.message.size() < 1024);
  CHECK(error.message.find_first_of("\n\x1b") == std::string::npos);
}

void check_map(const MemoryMap& map) {
  CHECK(!map.pieces.empty());
  GuestPhys reached(0);
  for (const MappedPiece& piece : map.pieces) {
    CHECK(piece.backend < map.backends.size() && piece.size != 0 && piece.base >= reached);
    CHECK((piece.base.raw() | piece.size | piece.offset) % arch::kPageSize == 0);
    const std::uint64_t backed = map.backends[piece.backend].size;
    CHECK(piece.size <= backed && piece.offset <= backed - piece.size);
    reached = *piece.base.checked_add(piece.size);
    CHECK(reached.raw() <= kEndOfMemory);
  }
}

}  // namespace

std::size_t read_monitor_memory(std::span<const std::byte> input) {
  FuzzScript script(input);
  const std::string_view memdevs = text_of(script.take_bytes(script.take<std::uint16_t>()));
  const std::string_view address = text_of(script.take_bytes(script.take<std::uint8_t>()));
  const std::string_view tree = text_of(script.take_bytes(input.size()));
  std::size_t understood = 0;
  const auto map = read_memory_map(nlohmann::json::parse(memdevs, nullptr, false), tree);
  if (map) {
    check_map(*map);
    understood += map->pieces.size();
  } else {
    check_line(map.error());
  }
  const auto window = read_plug_window(tree);
  if (!window) check_line(window.error());
  if (window && *window) {
    CHECK((*window)->size != 0 &&
          (*window)->base.checked_add((*window)->size)->raw() <= kEndOfMemory);
    ++understood;
  }
  const auto host = read_host_address(address, "pc.ram");
  if (host) {
    CHECK(*host != 0 && *host % arch::kPageSize == 0);
    ++understood;
  } else {
    check_line(host.error());
  }
  return understood;
}

std::vector<std::vector<std::byte>> memory_map_inputs() {
  const auto input = [](std::string_view memdevs, std::string_view address, std::string_view tree) {
    ScriptWriter writer;
    const auto put_text = [&](std::string_view text) {
      for (const char c : text) writer.put(c);
    };
    writer.put(static_cast<std::uint16_t>(memdevs.size()));
    put_text(memdevs);
    writer.put(static_cast<std::uint8_t>(address.size()));
    put_text(address);
    put_text(tree);
    return writer.bytes();
  };
  return {input(R"([{"id": "pc.ram", "size": 6442450944, "share": false}])",
                "Host virtual address for 0x0 (pc.ram) is 0x7f2197e00000\r\n",
                "FlatView #0\n AS \"I/O\", root: io\n\nFlatView #1\n AS \"memory\", root: system\n"
                " Root memory region: system\n"
                "  0000000000000000-00000000000c2fff (prio 0, ram): pc.ram KVM\n"
                "  00000000000c3000-00000000000e7fff (prio 0, rom): pc.ram @00000000000c3000 KVM\n"
                "  00000000000e8000-00000000bfffffff (prio 0, ram): pc.ram @00000000000e8000 KVM\n"
                "  00000000fec00000-00000000fec00fff (prio 0, i/o): ioapic\n"
                "  0000000100000000-00000001bfffffff (prio 0, ram): pc.ram @00000000c0000000\n"),
          input(R"([{"id": "m0", "size": 268435456}, {"id": "dimm", "size": 1073741824}])",
                "No memory is mapped at address 0x0\r\n",
                "FlatView #7\n AS \"memory\", root: system\n"
                "  0000000000000000-000000000fffffff (prio 0, ram): m0\n"
                "  0000000140000000-000000017fffffff (prio 0, ram): dimm\n"
                "  0000000140000000-00000001ffffffff (prio 0, i/o): device-memory\n")};
}

}  // namespace ringside::fuzz
