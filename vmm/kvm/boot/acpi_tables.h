// The ACPI tables of a machine of ours: RSDP, XSDT, FADT, MADT and a DSDT that declares the serial
// ports, the virtio-mmio devices (_HID LNRO0005), the power button's and S5's objects, pvpanic.
// Advanced Configuration and Power Interface Specification 6.4: 5.2 (tables), 20 (AML).
// Pure but for the RAM it fills. Used by the board.
#pragma once

#include <cstdint>

#include "vmm/base/result.h"
#include "vmm/guest_memory.h"

namespace ringside::vmm::kvm {

struct AcpiConfig {
  unsigned vcpus = 1;           // local APIC ids 0 to vcpus - 1 (x2APIC entries from 255 on)
  unsigned virtio_devices = 0;  // at layout.h's places, in order
};

/// Writes the tables at kAcpiTables and returns the RSDP's address. Limit when they do not fit.
Result<GuestPhys> write_acpi_tables(GuestMemory& memory, const AcpiConfig& config);

}  // namespace ringside::vmm::kvm
