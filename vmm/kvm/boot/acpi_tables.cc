// The tables one by one, each by the section of the specification that it names, then their places.
#include "vmm/kvm/boot/acpi_tables.h"

#include <fmt/format.h>

#include <cstring>
#include <numeric>
#include <string_view>
#include <vector>

#include "vmm/base/numbers.h"
#include "vmm/kvm/boot/aml.h"
#include "vmm/kvm/boot/boot_data.h"
#include "vmm/kvm/boot/layout.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::size_t kHeaderSize = 36;
constexpr std::string_view kOem = "RNGSDE", kOemTable = "RINGSIDE", kCreator = "RING";

/// A table's bytes, filled by offset or at the end, little-endian.
class Table {
 public:
  explicit Table(std::size_t size) : bytes_(size) {}

  /// 5.2.6: the header that all tables with a checksum over everything share.
  Table(std::string_view signature, std::uint8_t revision, std::size_t size = kHeaderSize)
      : Table(size) {
    set_text(0, signature);
    set(8, revision);
    set_text(10, kOem);
    set_text(16, kOemTable);
    set(24, std::uint32_t{1});
    set_text(28, kCreator);
    set(32, std::uint32_t{1});
  }

  template <class T>
  void set(std::size_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void set_text(std::size_t at, std::string_view text) {
    std::memcpy(bytes_.data() + at, text.data(), text.size());
  }
  template <class... T>
  void append(T... values) {
    (append_one(values), ...);
  }
  void append_bytes(const std::vector<std::uint8_t>& more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
  }
  /// Makes the first `size` bytes add up to 0 by the byte at `at`.
  void set_checksum(std::size_t at, std::size_t size) {
    bytes_[at] = 0;
    const unsigned sum = std::accumulate(bytes_.begin(), bytes_.begin() + std::ptrdiff_t(size), 0u);
    bytes_[at] = static_cast<std::uint8_t>(0 - sum);
  }
  /// The last step: length and checksum of the shared header.
  const std::vector<std::uint8_t>& sealed() {
    set(4, static_cast<std::uint32_t>(bytes_.size()));
    set_checksum(9, bytes_.size());
    return bytes_;
  }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  template <class T>
  void append_one(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    set(at, value);
  }

  std::vector<std::uint8_t> bytes_;
};

using U8 = std::uint8_t;
using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

constexpr U16 kActiveHighLevel = 0x0d;

/// 5.2.12: the interrupt controllers.
Table make_madt(unsigned vcpus) {
  constexpr U32 kEnabled = 1, kDualPic = 1;
  constexpr unsigned kFirstX2Apic = 255;  // 255 is the broadcast of 8-bit identifiers
  Table madt("APIC", 5);
  madt.append(static_cast<U32>(kLocalApic), kDualPic);
  for (unsigned id = 0; id < vcpus && id < kFirstX2Apic; ++id)
    madt.append(U8{0}, U8{8}, static_cast<U8>(id), static_cast<U8>(id), kEnabled);
  for (unsigned id = kFirstX2Apic; id < vcpus; ++id)
    madt.append(U8{9}, U8{16}, U16{0}, U32{id}, kEnabled, U32{id});
  madt.append(U8{1}, U8{12}, U8{0}, U8{0}, static_cast<U32>(kIoApic), U32{0});
  // The PIT's line comes in at pin 2; ACPI's own is level-triggered unlike others of the ISA.
  madt.append(U8{2}, U8{10}, U8{0}, U8{0}, U32{2}, U16{0});
  madt.append(U8{2}, U8{10}, U8{0}, static_cast<U8>(kSci), kSci, kActiveHighLevel);
  madt.append(U8{4}, U8{6}, U8{0xff}, U16{0}, U8{1});  // NMI at LINT1 of all local APICs
  if (vcpus > kFirstX2Apic) madt.append(U8{10}, U8{12}, U16{0}, ~U32{0}, U8{1}, U8{0}, U16{0});
  return madt;
}

/// 5.2.3.2: an address with its width.
void set_port(Table& table, std::size_t at, U16 port, U8 bits, U8 access) {
  constexpr U8 kSystemIo = 1;
  table.set(at, kSystemIo);
  table.set(at + 1, bits);
  table.set(at + 3, access);  // 1: bytes, 2: words, 3: doublewords
  table.set(at + 4, U64{port});
}

/// 5.2.9: the fixed hardware, which the board has: with HW_REDUCED Linux drops the ISA interrupts.
Table make_fadt(U64 facs, U64 dsdt) {
  constexpr U32 kFlags = 1 << 0      // WBINVD works
                         | 1 << 2    // C1 on all processors
                         | 1 << 5    // no sleep button; the power button is a fixed one
                         | 1 << 6    // the clock wakes nobody
                         | 1 << 8    // the timer has 32 bits
                         | 1 << 10;  // the reset register is there
  constexpr U16 kBootFlags = 1 << 0 | 1 << 2 | 1 << 3;  // ISA devices; no VGA; no MSI (no PCI)
  constexpr U16 kNoCState = 0x0fff;
  Table fadt("FACP", 6, 276);
  fadt.set(131, U8{4});  // 6.4
  fadt.set(40, static_cast<U32>(dsdt));
  fadt.set(132, facs);
  fadt.set(140, dsdt);
  fadt.set(46, static_cast<U16>(kSci));
  fadt.set(56, U32{kPm1Event});
  fadt.set(64, U32{kPm1Control});
  fadt.set(76, U32{kPmTimer});
  fadt.set(88, U8{4});
  fadt.set(89, U8{2});
  fadt.set(91, U8{4});
  fadt.set(96, kNoCState);
  fadt.set(98, kNoCState);
  fadt.set(108, U8{0x32});  // the century in the CMOS
  fadt.set(109, kBootFlags);
  fadt.set(112, kFlags);
  set_port(fadt, 116, kReset, 8, 1);
  fadt.set(128, U8{6});  // RESET_VALUE: written there to reset
  set_port(fadt, 148, kPm1Event, 32, 2);
  set_port(fadt, 172, kPm1Control, 16, 2);
  set_port(fadt, 208, kPmTimer, 32, 3);
  fadt.set_text(268, "KVMKVMKV");
  return fadt;
}

/// 5.2.10: shared with an operating system that sleeps; has no checksum.
Table make_facs() {
  Table facs(64);
  facs.set_text(0, "FACS");
  facs.set(4, U32{64});
  facs.set(32, U8{2});
  return facs;
}

/// 5.2.11.1: the devices, in AML.
Table make_dsdt(unsigned virtio_devices) {
  using namespace aml;
  std::vector<Code> devices;
  for (unsigned i = 0; i < kSerialPorts.size(); ++i) {
    devices.push_back(device(
        fmt::format("COM{}", i + 1),
        {name("_HID", eisa_id("PNP0501")), name("_UID", integer(i + 1)),
         name("_CRS", resources({io(kSerialPorts[i].port, 8), isa_irq(kSerialPorts[i].gsi)}))}));
  }
  for (unsigned i = 0; i < virtio_devices; ++i) {
    const auto base = static_cast<U32>(kVirtioBase + i * kVirtioStride);
    devices.push_back(
        device(fmt::format("VIO{:X}", i),
               {name("_HID", text("LNRO0005")), name("_UID", integer(i)),
                name("_CRS", resources({memory32_fixed(base, static_cast<U32>(kVirtioSize)),
                                        interrupt(kVirtioFirstGsi + i)}))}));
  }
  devices.push_back(device("PEVT", {name("_HID", text("QEMU0001")), name("_UID", integer(0)),
                                    name("_CRS", resources({io(kPvpanic, 1)}))}));
  constexpr unsigned kSoftOff = 5;  // any value would do: the machine has no other sleep
  Table dsdt("DSDT", 2);
  dsdt.append_bytes(
      name("\\_S5_", package({integer(kSoftOff), integer(kSoftOff), integer(0), integer(0)})));
  dsdt.append_bytes(scope("\\_SB_", devices));
  return dsdt;
}

/// 5.2.5.3: the root, which leads to the other tables.
Table make_rsdp(U64 xsdt) {
  Table rsdp(36);
  rsdp.set_text(0, "RSD PTR ");
  rsdp.set_text(9, kOem);
  rsdp.set(15, U8{2});
  rsdp.set(20, U32{36});
  rsdp.set(24, xsdt);
  rsdp.set_checksum(8, 20);
  rsdp.set_checksum(32, 36);
  return rsdp;
}

/// Puts one table after the other, on 64 bytes as the FACS must be.
class Shelf {
 public:
  explicit Shelf(GuestMemory& memory) : memory_(memory) {}

  Result<U64> place(const std::vector<std::uint8_t>& table) {
    const U64 at = next_;
    if (table.size() > kAcpiEnd - at) {
      return fail(ErrorCode::Limit,
                  "the ACPI tables of so many vCPUs do not fit into 128 KiB: "
                  "give fewer --cpus");
    }
    TRY(put(memory_, at, std::as_bytes(std::span(table)), "ACPI tables"));
    next_ = round_up(at + table.size(), 64);
    return at;
  }

 private:
  GuestMemory& memory_;
  U64 next_ = kAcpiTables + 64;  // after the RSDP, which is found by its place
};

}  // namespace

Result<GuestPhys> write_acpi_tables(GuestMemory& memory, const AcpiConfig& config) {
  if (config.virtio_devices > kMostVirtio) {
    return fail(ErrorCode::Limit, fmt::format("{} virtio devices: the machine has room for {}",
                                              config.virtio_devices, kMostVirtio));
  }
  Shelf shelf(memory);
  const U64 facs = TRY(shelf.place(make_facs().bytes()));
  const U64 dsdt = TRY(shelf.place(make_dsdt(config.virtio_devices).sealed()));
  const U64 fadt = TRY(shelf.place(make_fadt(facs, dsdt).sealed()));
  const U64 madt = TRY(shelf.place(make_madt(config.vcpus).sealed()));
  Table xsdt("XSDT", 1);  // 5.2.8
  xsdt.append(fadt, madt);
  const U64 root = TRY(shelf.place(xsdt.sealed()));
  TRY(put(memory, kAcpiTables, std::as_bytes(std::span(make_rsdp(root).bytes())), "ACPI tables"));
  return GuestPhys(kAcpiTables);
}

}  // namespace ringside::vmm::kvm
