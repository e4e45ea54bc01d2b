// In this file, top to bottom: the container (header, section headers, one section for each table),
// then the program's entries. Each range of a table begins where the last one ended and nothing is
// left over, so no byte is read twice and the program is no larger than its file suggests.
#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <optional>
#include <tuple>
#include <type_traits>

#include "dif/dof/dof.h"
#include "dif/dof/dof_format.h"

namespace ringside::dif {

namespace dof {

namespace {

using Bytes = std::span<const std::byte>;

template <class... Args>
tl::unexpected<Error> refuse(fmt::format_string<Args...> text, Args&&... args) {
  return fail(ErrorCode::Invalid, "DOF: " + fmt::format(text, std::forward<Args>(args)...));
}

/// Little endian, from bytes that are there.
template <std::integral T>
T number_at(Bytes bytes, std::size_t offset) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= std::to_integer<std::uint64_t>(bytes[offset + i]) << 8 * i;
  }
  return static_cast<T>(value);
}

struct Container {
  std::array<std::optional<Bytes>, kTables> tables;
};

Result<void> check_ident(Bytes bytes) {
  const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  for (std::size_t i = 0; i < kMagic.size(); ++i) {
    if (byte(i) != kMagic[i]) return refuse("bad magic");
  }
  if (byte(4) != kModelLp64) return refuse("data model {} is not LP64", byte(4));
  if (byte(5) != kLittleEndian) return refuse("byte order {} is not little endian", byte(5));
  if (byte(6) != kVersion) return refuse("version {} is not {}", byte(6), kVersion);
  if (byte(7) != kDifVersion) return refuse("DIF version {} is not {}", byte(7), kDifVersion);
  if (byte(8) > kRegisters) return refuse("{} registers where there are {}", byte(8), kRegisters);
  if (byte(9) > kTupleSlots) return refuse("{} tuple slots of {}", byte(9), kTupleSlots);
  return {};
}

Result<void> check_header(Bytes bytes) {
  if (bytes.size() > kMostDofBytes) return refuse("more than {} bytes", kMostDofBytes);
  if (bytes.size() < kHeaderBytes) return refuse("the header is truncated");
  TRY(check_ident(bytes));
  const auto format = number_at<std::uint32_t>(bytes, kIdentBytes);
  if (format < kFormat) {
    return refuse("entries of format {} are an older ringside's: compile the program again",
                  format);
  }
  if (format != kFormat) return refuse("entries of format {} are not known", format);
  if (number_at<std::uint32_t>(bytes, 20) != kHeaderBytes ||
      number_at<std::uint32_t>(bytes, 24) != kSectionHeaderBytes) {
    return refuse("headers of another size");
  }
  const auto file_size = number_at<std::uint64_t>(bytes, 48);
  if (file_size != bytes.size()) {
    return refuse("{} bytes where the header says {}", bytes.size(), file_size);
  }
  return {};
}

Result<void> read_section(Bytes bytes, std::uint32_t number, Bytes header, Container& out) {
  const auto type = number_at<std::uint32_t>(header, 0);
  const auto align = number_at<std::uint32_t>(header, 4);
  const auto entry = number_at<std::uint32_t>(header, 12);
  const auto offset = number_at<std::uint64_t>(header, 16);
  const auto size = number_at<std::uint64_t>(header, 24);
  if (offset > bytes.size() || size > bytes.size() - offset) {
    return refuse("section {} is truncated", number);
  }
  if (align == 0 || (align & (align - 1)) != 0 || offset % align != 0) {
    return refuse("section {} is not aligned", number);
  }
  for (std::size_t i = 0; i < kTables; ++i) {
    if (kSectionTypes[i] != type) continue;
    const std::uint32_t expected = entry_sizes()[i];
    if (entry != expected || size % expected != 0) {
      return refuse("section {} has entries of another size", number);
    }
    if (out.tables[i]) return refuse("section {} has the type of an earlier one", number);
    out.tables[i] = bytes.subspan(offset, size);
    return {};
  }
  return {};  // comments, source text, and what other writers add
}

Result<Container> read_container(Bytes bytes) {
  TRY(check_header(bytes));
  const auto count = number_at<std::uint32_t>(bytes, 28);
  const auto at = number_at<std::uint64_t>(bytes, 32);
  if (at > bytes.size() || count > (bytes.size() - at) / kSectionHeaderBytes) {
    return refuse("the section headers are truncated");
  }
  Container container;
  for (std::uint32_t i = 0; i < count; ++i) {
    TRY(read_section(bytes, i, bytes.subspan(at + i * kSectionHeaderBytes, kSectionHeaderBytes),
                     container));
  }
  for (std::size_t i = 0; i < kTables; ++i) {
    if (!container.tables[i]) return refuse("no section has type {:#x}", kSectionTypes[i]);
  }
  return container;
}

/// Reads entries. The first broken rule stops everything: from then on lists are empty.
class Reader {
 public:
  explicit Reader(const Container& container) : sizes_(entry_sizes()) {
    for (std::size_t i = 0; i < kTables; ++i) tables_[i] = *container.tables[i];
  }

  template <std::integral T>
  requires(!std::same_as<T, bool>) void number(T& value) {
    value = number_at<T>(*at_, offset_);
    offset_ += sizeof(T);
  }
  void number(bool& value) {
    std::uint8_t byte = 0;
    number(byte);
    if (byte > 1) complain("{} is neither true nor false", byte);
    value = byte == 1;
  }
  template <class E>
  void choice(E& value, E last) {
    std::uint16_t number_of = 0;
    number(number_of);
    if (number_of > static_cast<std::uint16_t>(last)) complain("{} is no such kind", number_of);
    value = error_ ? E{} : static_cast<E>(number_of);
  }
  void action(ActionKind& kind) {
    std::uint16_t number_of = 0;
    number(number_of);
    const auto known = find_action(number_of);
    if (!known) complain("{} is no such kind", number_of);
    kind = known.value_or(ActionKind{});
  }
  void text(std::string& text) {
    const auto [first, count] = range(Table::Strings);
    const Bytes bytes = tables_[index(Table::Strings)].subspan(first, count);
    text.resize(count);
    std::ranges::transform(bytes, text.begin(), [](std::byte b) { return static_cast<char>(b); });
  }
  template <class T>
  void list(Table from, std::vector<T>& entries) {
    const auto [first, count] = range(from);
    entries.resize(count);
    for (std::uint32_t i = 0; i < count; ++i) get(from, first + i, entries[i]);
  }
  template <class T>
  void at_most_one(Table from, std::optional<T>& entry) {
    const auto [first, count] = range(from);
    if (count > 1) return complain("{} entries where there may be one", count);
    if (count == 1) get(from, first, entry.emplace());
  }
  template <class T>
  void all(Table from, std::vector<T>& entries) {
    const auto count = static_cast<std::uint32_t>(entries_in(from));
    used_[index(from)] = count;
    entries.resize(error_ ? 0 : count);
    for (std::uint32_t i = 0; i < entries.size(); ++i) get(from, i, entries[i]);
  }

  Result<void> finish() {
    for (std::size_t i = 0; i < kTables && !error_; ++i) {
      if (used_[i] != tables_[i].size() / sizes_[i]) {
        table_ = i;
        complain("nothing refers to what follows {}", used_[i]);
      }
    }
    if (error_) return tl::unexpected(*error_);
    return {};
  }

 private:
  struct Range {
    std::uint32_t first = 0, count = 0;
  };
  static std::size_t index(Table which) { return static_cast<std::size_t>(which); }
  std::size_t entries_in(Table which) const {
    return tables_[index(which)].size() / sizes_[index(which)];
  }
  template <class... Args>
  void complain(fmt::format_string<Args...> text, Args&&... args) {
    if (error_) return;
    error_ = Error{ErrorCode::Invalid,
                   fmt::format("DOF: section of type {:#x}, entry {}: {}", kSectionTypes[table_],
                               entry_, fmt::format(text, std::forward<Args>(args)...))};
  }
  Range range(Table of) {
    Range range;
    number(range.first);
    number(range.count);
    if (error_) return {};
    std::uint32_t& used = used_[index(of)];
    if (range.first != used || range.count > entries_in(of) - used) {
      complain("index out of range: {} entries from {} of {}", range.count, range.first,
               entries_in(of));
      return {};
    }
    used += range.count;
    return range;
  }
  template <class T>
  void get(Table from, std::uint32_t number, T& entry) {
    if (error_) return;
    const auto outer = std::tuple(at_, offset_, table_, entry_);
    at_ = &tables_[index(from)];
    offset_ = std::size_t{number} * sizes_[index(from)];
    table_ = index(from);
    entry_ = number;
    transfer(*this, entry);
    std::tie(at_, offset_, table_, entry_) = outer;
  }

  std::array<std::uint32_t, kTables> sizes_;
  std::array<Bytes, kTables> tables_;
  std::array<std::uint32_t, kTables> used_{};
  const Bytes* at_ = nullptr;  // the table of the entry that is being read
  std::size_t offset_ = 0;
  std::size_t table_ = 0;
  std::uint32_t entry_ = 0;
  std::optional<Error> error_;
};

}  // namespace

}  // namespace dof

Result<Program> read_dof(std::span<const std::byte> bytes) {
  const dof::Container container = TRY(dof::read_container(bytes));
  dof::Reader reader(container);
  Program program;
  std::vector<dof::Option> options;
  dof::transfer_program(reader, program, options);
  TRY(reader.finish());
  for (auto& [name, value] : options) {
    if (!program.options.emplace(std::move(name), std::move(value)).second) {
      return dof::refuse("an option is set twice");
    }
  }
  return program;
}

}  // namespace ringside::dif
