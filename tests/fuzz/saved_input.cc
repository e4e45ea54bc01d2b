// Files that are said to be saved guests: ELF cores, compressed dumps, migration streams, save
// images. All that is read of one lies in the file, and an error is a line.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <string_view>

#include "tests/fuzz/host_input.h"
#include "vmm/base/check.h"
#include "vmm/base/unique_fd.h"
#include "vmm/saved/compressed_dump_for_tests.h"
#include "vmm/saved/saved_machine.h"

namespace ringside::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

void add(Bytes& to, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void add_number(Bytes& to, std::uint64_t value, unsigned size) {
  while (size-- > 0) to.push_back(static_cast<std::byte>(value >> (8 * size)));
}

/// A stream with a page of each form.
Bytes stream() {
  constexpr std::uint64_t kPage = 4096;
  Bytes bytes;
  add(bytes, "QEVM");
  add_number(bytes, 3, 4);
  add_number(bytes, 7, 1);
  add_number(bytes, 2, 4);
  add(bytes, "pc");
  add_number(bytes, 1, 1);
  add_number(bytes, 2, 4);
  add(bytes, "\3ram");
  add_number(bytes, 0, 4);
  add_number(bytes, 4, 4);
  add_number(bytes, 4 * kPage | 4, 8);
  add(bytes, "\6pc.ram");
  add_number(bytes, 4 * kPage, 8);
  add_number(bytes, 0x10, 8);
  add_number(bytes, 3, 1);
  add_number(bytes, 2, 4);
  add_number(bytes, kPage | 8, 8);
  add(bytes, "\6pc.ram");
  bytes.insert(bytes.end(), kPage, std::byte{'x'});
  add_number(bytes, 2 * kPage | 2 | 0x20, 8);
  add_number(bytes, 'y', 1);
  add_number(bytes, kPage | 0x40 | 0x20, 8);
  add_number(bytes, 1, 1);
  add_number(bytes, 4, 2);
  add(bytes, std::string_view("\1\2zz", 4));
  add_number(bytes, 0x10, 8);
  return bytes;
}

Bytes save_image() {
  constexpr std::string_view kXml = "<domain/>";
  Bytes bytes;
  add(bytes, "LibvirtQemudSave");
  for (const std::uint32_t word : {2U, static_cast<std::uint32_t>(kXml.size()), 1U, 0U}) {
    const auto words = std::as_bytes(std::span(&word, 1));
    bytes.insert(bytes.end(), words.begin(), words.end());
  }
  bytes.resize(92);
  add(bytes, kXml);
  const Bytes rest = stream();
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

/// A dump with a page of each packing; of most the bytes are no page.
Bytes compressed_dump() {
  vmm::DumpBuilder builder;
  builder.left_out(7);
  std::uint64_t number = 0;
  for (const std::uint32_t packing : {0U, 1U, 2U, 4U, 0x20U}) {
    builder.page(number++, packing, Bytes(packing == 0 ? vmm::DumpBuilder::kBlock : 40));
  }
  return builder.build();
}

}  // namespace

std::size_t read_saved_memory(std::span<const std::byte> input) {
  const UniqueFd file(memfd_create("saved", MFD_CLOEXEC));
  CHECK(file &&
        write(file.get(), input.data(), input.size()) == static_cast<ssize_t>(input.size()));
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  const auto machine = vmm::SavedMachine::open(path);
  if (!machine) {
    CHECK(machine.error().message.find_first_of("\n\x1b") == std::string::npos);
    return 0;
  }
  vmm::GuestMemory& memory = (*machine)->memory();
  std::size_t understood = 0;
  for (const auto& extent : memory.present_extents()) {
    std::byte first{};
    if (memory.read(extent.base, std::span(&first, 1))) ++understood;
  }
  auto paused = vmm::PausedMachine::pause(**machine);
  for (unsigned vcpu = 0; vcpu < (*machine)->vcpu_count(); ++vcpu) {
    CHECK(paused->registers(vcpu).has_value());
  }
  return understood;
}

std::vector<std::vector<std::byte>> saved_inputs() {
  const Bytes dump = compressed_dump();
  return {stream(), save_image(), dump, vmm::DumpBuilder::flattened(dump, 1000)};
}

}  // namespace ringside::fuzz
