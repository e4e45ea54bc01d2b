// Writes AML, the byte code of ACPI's DSDT, as nested calls that read like ASL:
//   device("COM1", {name("_HID", eisa_id("PNP0501")), name("_CRS", resources({io(0x3f8, 8)}))})
// Only the terms that our DSDT needs. Advanced Configuration and Power Interface Specification 6.4:
// 20.2 (encoding), 6.4 (resource descriptors), 19.3.4 (EISA identifiers).
// Used by acpi_tables.cc.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ringside::vmm::kvm::aml {

using Code = std::vector<std::uint8_t>;

/// Names are four characters, "_SB_"; a leading backslash makes them absolute.
Code name(std::string_view path, const Code& object);
Code scope(std::string_view path, const std::vector<Code>& body);
Code device(std::string_view path, const std::vector<Code>& body);

Code integer(std::uint64_t value);
Code text(std::string_view characters);
Code package(const std::vector<Code>& elements);  // at most 255
/// "PNP0501": three capital letters and four hexadecimal digits.
Code eisa_id(std::string_view id);

/// The buffer that _CRS gives, of descriptors as below.
Code resources(const std::vector<Code>& descriptors);
Code io(std::uint16_t port, std::uint8_t count);
Code isa_irq(unsigned line);  // 0 to 15; edge, high, exclusive
Code memory32_fixed(std::uint32_t base, std::uint32_t size);
Code interrupt(std::uint32_t gsi);  // level, high, exclusive

}  // namespace ringside::vmm::kvm::aml
