#include "vmm/kvm/boot/acpi_tables.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "vmm/kvm/boot/layout.h"

namespace ringside::vmm::kvm {
namespace {

/// The tables as a guest finds them: from the RSDP, by name.
class AcpiTables : public testing::Test {
 protected:
  AcpiTables() : ram_(kAcpiEnd), memory_({{GuestPhys(0), ram_}}) {}

  template <class T>
  T at(std::uint64_t address) {
    T value{};
    EXPECT_TRUE(memory_.read(GuestPhys(address), std::as_writable_bytes(std::span(&value, 1))));
    return value;
  }
  unsigned sum(std::uint64_t address, std::uint64_t size) {
    unsigned total = 0;
    for (std::uint64_t i = 0; i < size; ++i) total += at<std::uint8_t>(address + i);
    return total & 0xff;
  }
  std::string name_at(std::uint64_t address) {
    const auto name = at<std::array<char, 4>>(address);
    return std::string(name.data(), name.size());
  }

  void write(unsigned vcpus, unsigned virtio_devices) {
    const auto rsdp = write_acpi_tables(memory_, {vcpus, virtio_devices});
    ASSERT_TRUE(rsdp.has_value()) << rsdp.error().message;
    ASSERT_EQ(rsdp->raw(), kAcpiTables);
    const auto xsdt = at<std::uint64_t>(kAcpiTables + 24);
    tables_["XSDT"] = xsdt;
    for (std::uint64_t entry = 36; entry < at<std::uint32_t>(xsdt + 4); entry += 8) {
      const auto table = at<std::uint64_t>(xsdt + entry);
      tables_[name_at(table)] = table;
    }
    tables_["DSDT"] = at<std::uint64_t>(tables_["FACP"] + 140);
  }

  struct MadtEntry {
    unsigned type = 0;
    std::uint64_t at = 0;
  };
  std::vector<MadtEntry> madt_entries() {
    std::vector<MadtEntry> entries;
    const std::uint64_t madt = tables_["APIC"], size = at<std::uint32_t>(madt + 4);
    std::uint64_t offset = 44;
    while (offset < size) {
      entries.push_back({at<std::uint8_t>(madt + offset), madt + offset});
      offset += std::max<unsigned>(at<std::uint8_t>(madt + offset + 1), 1);
    }
    EXPECT_EQ(offset, size);
    return entries;
  }
  unsigned count(unsigned type) {
    unsigned total = 0;
    for (const MadtEntry& entry : madt_entries()) total += entry.type == type ? 1 : 0;
    return total;
  }

  std::vector<std::byte> ram_;
  GuestMemory memory_;
  std::map<std::string, std::uint64_t> tables_;
};

TEST_F(AcpiTables, TheRootPointerHasBothChecksums) {
  write(1, 0);

  EXPECT_EQ(std::memcmp(&ram_[kAcpiTables], "RSD PTR ", 8), 0);
  EXPECT_EQ(sum(kAcpiTables, 20), 0u);
  EXPECT_EQ(sum(kAcpiTables, 36), 0u);
}

TEST_F(AcpiTables, EveryTableAddsUpToZeroOverItsLength) {
  write(3, 2);

  for (const char* name : {"XSDT", "FACP", "APIC", "DSDT"}) {
    const std::uint64_t table = tables_[name];
    ASSERT_GE(table, kAcpiTables) << name;
    const std::uint64_t size = at<std::uint32_t>(table + 4);
    ASSERT_LE(table + size, kAcpiEnd) << name;
    EXPECT_EQ(name_at(table), name);
    EXPECT_EQ(sum(table, size), 0u) << name;
  }
}

TEST_F(AcpiTables, TheFadtNamesThePortsTwiceAndHasTheFixedHardware) {
  write(1, 0);
  const std::uint64_t fadt = tables_["FACP"];

  EXPECT_EQ(at<std::uint32_t>(fadt + 4), 276u);
  EXPECT_EQ(at<std::uint32_t>(fadt + 56), kPm1Event);
  EXPECT_EQ(at<std::uint64_t>(fadt + 152), kPm1Event);
  EXPECT_EQ(at<std::uint32_t>(fadt + 64), kPm1Control);
  EXPECT_EQ(at<std::uint64_t>(fadt + 176), kPm1Control);
  EXPECT_EQ(at<std::uint32_t>(fadt + 76), kPmTimer);
  EXPECT_EQ(at<std::uint64_t>(fadt + 212), kPmTimer);
  EXPECT_EQ(at<std::uint64_t>(fadt + 120), kReset);
  EXPECT_EQ(at<std::uint16_t>(fadt + 46), kSci);
  EXPECT_EQ(at<std::uint32_t>(fadt + 112) & (1u << 20), 0u) << "HW_REDUCED";
  const auto facs = at<std::uint64_t>(fadt + 132);
  EXPECT_EQ(name_at(facs), "FACS");
  EXPECT_EQ(facs % 64, 0u);
}

TEST_F(AcpiTables, TheMadtHasOneLocalApicAVcpuAndOneIoApic) {
  write(4, 0);

  EXPECT_EQ(count(0), 4u);
  EXPECT_EQ(count(1), 1u);
  EXPECT_EQ(count(9), 0u);
  for (const MadtEntry& entry : madt_entries()) {
    if (entry.type == 1) {
      EXPECT_EQ(at<std::uint32_t>(entry.at + 4), kIoApic);
    }
  }
}

TEST_F(AcpiTables, TheTimersLineIsMovedToPin2AndTheScisIsLevelTriggered) {
  write(1, 0);
  std::map<unsigned, std::pair<std::uint32_t, std::uint16_t>> overrides;

  for (const MadtEntry& entry : madt_entries()) {
    if (entry.type != 2) continue;
    overrides[at<std::uint8_t>(entry.at + 3)] = {at<std::uint32_t>(entry.at + 4),
                                                 at<std::uint16_t>(entry.at + 8)};
  }

  ASSERT_EQ(overrides.size(), 2u);
  EXPECT_EQ(overrides[0], (std::pair<std::uint32_t, std::uint16_t>(2, 0)));
  EXPECT_EQ(overrides[kSci], (std::pair<std::uint32_t, std::uint16_t>(kSci, 0x0d)));
}

TEST_F(AcpiTables, VcpusFrom255OnAreX2Apics) {
  write(300, 0);

  EXPECT_EQ(count(0), 255u);
  EXPECT_EQ(count(9), 45u);
  EXPECT_EQ(count(10), 1u);
  EXPECT_EQ(at<std::uint32_t>(madt_entries()[255].at + 4), 255u);
}

TEST_F(AcpiTables, TheDsdtDeclaresAsManyVirtioDevicesAsThereAre) {
  const auto virtio_devices = [&] {
    const std::uint64_t dsdt = tables_["DSDT"], size = at<std::uint32_t>(dsdt + 4);
    // SAFETY: char may alias.
    const std::string code(reinterpret_cast<const char*>(&ram_[dsdt]), size);
    unsigned total = 0;
    for (auto found = code.find("LNRO0005"); found != std::string::npos;
         found = code.find("LNRO0005", found + 1))
      ++total;
    return total;
  };

  write(1, 0);
  EXPECT_EQ(virtio_devices(), 0u);
  write(1, kMostVirtio);
  EXPECT_EQ(virtio_devices(), kMostVirtio);
}

TEST_F(AcpiTables, TooManyDevicesOrVcpusAreALimit) {
  const auto devices = write_acpi_tables(memory_, {1, kMostVirtio + 1});
  const auto vcpus = write_acpi_tables(memory_, {10'000, 0});

  ASSERT_FALSE(devices.has_value());
  EXPECT_EQ(devices.error().code, ErrorCode::Limit);
  ASSERT_FALSE(vcpus.has_value());
  EXPECT_EQ(vcpus.error().code, ErrorCode::Limit);
}

TEST_F(AcpiTables, AMachineWithoutRamThereIsAnErrorNotACrash) {
  GuestMemory none;

  EXPECT_FALSE(write_acpi_tables(none, {1, 0}).has_value());
}

}  // namespace
}  // namespace ringside::vmm::kvm
