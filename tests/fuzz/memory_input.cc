#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/fuzz/guest_input.h"
#include "tests/fuzz/kernel_input.h"
#include "vmm/base/check.h"
#include "vmm/inert_machine_for_tests.h"
#include "vmm/linux/kernel_memory.h"

namespace ringside::fuzz {
namespace {

using namespace guest_linux;

constexpr std::size_t kRam = 64 << 10;
// The image lies at the sixth page of RAM, and is mapped page by page.
constexpr std::uint64_t kStext = 0xffff'ffff'8100'0000, kMap = 0xffff'ffff'8000'0000;
constexpr std::uint64_t kImage = 0x5000, kRoot = kImage + 0x1000, kUts = kImage + 0x2000;
constexpr std::uint64_t kTables = 0x1000, kInfo = 0x9000;
constexpr std::int64_t kPhysBase = std::int64_t{kImage} - static_cast<std::int64_t>(kStext - kMap);

class InputMachine final : public vmm::InertMachine {
 public:
  InputMachine(const GuestInput& input, std::uint64_t cr3)
      : ram_(kRam), memory_({{GuestPhys(0), ram_}}), cr3_(cr3) {
    for (const Piece& piece : input.pieces()) {
      if (piece.at >= kRam) continue;
      const auto bytes =
          piece.bytes.first(std::min<std::size_t>(piece.bytes.size(), kRam - piece.at));
      std::ranges::copy(bytes, ram_.begin() + static_cast<std::ptrdiff_t>(piece.at));
    }
  }
  vmm::GuestMemory& memory() override { return memory_; }

 protected:
  Result<Registers> read_registers(unsigned) override {
    Registers registers;
    registers.cr3 = cr3_;
    return registers;
  }

 private:
  std::vector<std::byte> ram_;
  vmm::GuestMemory memory_;
  std::uint64_t cr3_;
};

void check_info(const VmcoreInfo& info) {
  CHECK(!info.release().empty() && info.text().size() <= 4096);
  CHECK(std::ranges::all_of(info.release(), [](char c) { return c >= ' ' && c < 0x7f; }));
  CHECK(info.symbol("_stext") && info.symbol("swapper_pg_dir") && info.number("phys_base"));
  const auto again = VmcoreInfo::parse(info.text());
  CHECK(again && again->text() == info.text() && again->release() == info.release());
}

void check_copies(const KernelMemory& kernel, Script& script) {
  const GuestVirt from(*kernel.info().symbol("_stext"));
  const GuestVirt at(script.take<std::uint64_t>());
  const std::uint64_t size = script.take<std::uint32_t>();
  for (const GuestVirt begin : {from, at}) {
    const auto copy = kernel.copy_image(begin, size);
    CHECK(!copy || (copy->size() == size && size <= kRam));
  }
  CHECK(kernel.copy_whole_image().size() <= kMaxCopy);
  std::array<std::byte, 64> bytes{};
  const auto read = kernel.reader().read(at, bytes);
  CHECK(read || read.error().address - at.raw() < bytes.size());
}

}  // namespace

std::size_t read_vmcoreinfo(std::span<const std::byte> input) {
  Script script(input);
  const GuestInput pieces(script);
  InputMachine machine(pieces, script.take<std::uint64_t>());
  const auto all = find_vmcoreinfo(machine.memory(), [](const VmcoreInfo&) { return true; });
  CHECK(all.size() <= kMostVmcoreInfos);
  std::ranges::for_each(all, check_info);
  const auto kernel = find_kernel_memory(machine);
  const auto again = find_kernel_memory(machine);
  CHECK(kernel.has_value() == again.has_value());
  if (!kernel) {
    CHECK(kernel.error().message == again.error().message);
    return 0;
  }
  CHECK(kernel->info().text() == again->info().text());
  CHECK(kernel->table().root == again->table().root);
  check_copies(*kernel, script);
  return all.size();
}

namespace {

std::string info_text(std::uint64_t root = kRoot) {
  return fmt::format(
      "OSRELEASE=6.1.0-test\nPAGESIZE=4096\nSYMBOL(init_uts_ns)={:x}\n"
      "OFFSET(uts_namespace.name)=4\nSYMBOL(_stext)={:x}\nSYMBOL(swapper_pg_dir)={:x}\n"
      "NUMBER(phys_base)={}\nNUMBER(pgtable_l5_enabled)=0\nNUMBER(sme_mask)=0\n"
      "SYMBOL(kallsyms_names)={:x}\n",
      kStext + kUts - kImage, kStext, kStext + root - kImage, kPhysBase, kStext);
}

class Ram {
 public:
  Ram() : bytes_(kRam) {
    map(kRoot, kTables);
    put_text(kUts + 4 + 130, "6.1.0-test");
  }
  /// Three pages of tables, which map the image for this root.
  Ram& map(std::uint64_t root, std::uint64_t tables) {
    put(root + 511 * 8, tables | 1);
    put(tables + 510 * 8, (tables + 0x1000) | 1);
    put(tables + 0x1000 + 8 * 8, (tables + 0x2000) | 1);
    for (std::uint64_t n = 0; n < 8; ++n) put(tables + 0x2000 + n * 8, (kImage + n * 4096) | 1);
    return *this;
  }
  void put(std::uint64_t at, std::uint64_t value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  Ram& put_text(std::uint64_t at, std::string_view text) {
    std::memcpy(bytes_.data() + at, text.data(), text.size());
    return *this;
  }
  /// Without the zeroes that RAM is full of.
  std::vector<std::byte> input() const {
    constexpr std::size_t kPart = 256;
    std::vector<Piece> pieces;
    for (std::size_t at = 0; at < kRam; at += kPart) {
      const auto part = std::span(bytes_).subspan(at, kPart);
      if (std::ranges::all_of(part, [](std::byte b) { return b == std::byte{0}; })) continue;
      pieces.push_back({at, kPart, 0, part});
    }
    ScriptWriter rest;
    rest.put(kRoot, kStext + 0x2000, std::uint32_t{0x1800});
    return write_guest(pieces, rest.bytes());
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

Inputs vmcoreinfo_inputs() {
  std::string note("\x0b\0\0\0\0\4\0\0\0\0\0\0VMCOREINFO\0\0", 24);
  Ram with_forgery;
  with_forgery.map(kImage + 0x3000, 0xd000);
  with_forgery.put_text(kInfo, info_text()).put_text(0xa000, info_text(kImage + 0x3000));
  return {Ram().put_text(kInfo, info_text()).input(),
          Ram().put_text(kInfo, note + info_text()).input(), with_forgery.input()};
}

}  // namespace ringside::fuzz
