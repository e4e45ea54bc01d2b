// Reads numbers, structures and ELF notes from bytes that somebody else wrote (files, tables,
// records). It copies, so the bytes need not be aligned. Little-endian, as the host.
// Used by all decoders.
// Fire context: yes.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "vmm/base/numbers.h"

namespace ringside {

/// One T at byte `index` of `bytes`, which the caller has checked to be there.
template <class T>
T load_at(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index, sizeof value);
  return value;
}

/// The same; empty when not all of it is there.
template <class T>
std::optional<T> load_within(std::span<const std::byte> bytes, std::uint64_t index) {
  if (index > bytes.size() || sizeof(T) > bytes.size() - index) return std::nullopt;
  return load_at<T>(bytes, index);
}

/// Whether `bytes` begin with those of `text`, as a file does with its magic.
inline bool begins_with(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

/// A note of the ELF-64 format, in the bytes that it was read from.
struct ElfNote {
  std::uint32_t type = 0;
  std::string_view name;  // without its NUL
  std::span<const std::byte> description;
};

/// Takes the first note off a row of them; empty if no whole note is there. Name and description
/// are padded to 4 bytes each; the padding of the last may be missing.
inline std::optional<ElfNote> take_elf_note(std::span<const std::byte>& notes) {
  const auto header = load_within<Elf64_Nhdr>(notes, 0);
  if (!header) return std::nullopt;
  const auto rest = notes.subspan(sizeof *header);
  const std::uint64_t name = round_up(std::uint64_t{header->n_namesz}, 4U);
  const std::uint64_t description = round_up(std::uint64_t{header->n_descsz}, 4U);
  if (name > rest.size() || header->n_descsz > rest.size() - name) return std::nullopt;
  // SAFETY: char may alias any bytes; the length was checked.
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), header->n_namesz);
  notes = rest.subspan(std::min<std::uint64_t>(name + description, rest.size()));
  return ElfNote{header->n_type, text.substr(0, text.find('\0')),
                 rest.subspan(name, header->n_descsz)};
}

}  // namespace ringside
