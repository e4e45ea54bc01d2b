#include <concepts>
#include <optional>
#include <type_traits>

#include "dif/dof/dof.h"
#include "dif/dof/dof_format.h"
#include "vmm/base/numbers.h"

namespace ringside::dif {

namespace dof {

namespace {

template <std::integral T>
void append(std::vector<std::byte>& out, T value) {
  const auto bits = static_cast<std::make_unsigned_t<T>>(value);
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(bits) >> 8 * i));
  }
}

/// Measures an entry: the number of bytes that transfer() would write.
class Ruler {
 public:
  template <class T>
  void number(T&) {
    size += sizeof(T);
  }
  template <class E>
  void choice(E&, E) {
    size += sizeof(std::uint16_t);
  }
  void action(ActionKind) { size += sizeof(std::uint16_t); }
  void text(std::string&) { size += kRange; }
  template <class T>
  void list(Table, std::vector<T>&) {
    size += kRange;
  }
  template <class T>
  void at_most_one(Table, std::optional<T>&) {
    size += kRange;
  }
  std::uint32_t size = 0;

 private:
  static constexpr std::uint32_t kRange = 2 * sizeof(std::uint32_t);
};

template <class T>
std::uint32_t entry_size() {
  if constexpr (std::same_as<T, std::byte>) {
    return 1;
  } else {
    Ruler ruler;
    T entry{};
    transfer(ruler, entry);
    return ruler.size;
  }
}

/// A list's entries go to the end of their table, one after the other, because no kind of entry
/// contains itself. So a range begins where the last one of its table ended; the reader insists.
class Writer {
 public:
  template <std::integral T>
  requires(!std::same_as<T, bool>) void number(T value) { append(*out_, value); }
  void number(bool value) { out_->push_back(std::byte{value}); }
  template <class E>
  void choice(E value, E) {
    number(static_cast<std::uint16_t>(value));
  }
  void action(ActionKind kind) { number(action_info(kind).number); }
  void text(const std::string& text) {
    auto& strings = table(Table::Strings);
    range(static_cast<std::uint32_t>(strings.size()), text.size());
    const auto bytes = std::as_bytes(std::span(text));
    strings.insert(strings.end(), bytes.begin(), bytes.end());
  }
  template <class T>
  void list(Table into, std::vector<T>& entries) {
    range(counts_[index(into)], entries.size());
    all(into, entries);
  }
  template <class T>
  void at_most_one(Table into, std::optional<T>& entry) {
    range(counts_[index(into)], entry ? 1 : 0);
    if (entry) put(into, *entry);
  }
  template <class T>
  void all(Table into, std::vector<T>& entries) {
    for (T& entry : entries) put(into, entry);
  }

  const std::vector<std::byte>& contents(std::size_t table) const { return tables_[table]; }

 private:
  static std::size_t index(Table which) { return static_cast<std::size_t>(which); }
  std::vector<std::byte>& table(Table which) { return tables_[index(which)]; }
  void range(std::uint32_t first, std::size_t count) {
    number(first);
    number(static_cast<std::uint32_t>(count));
  }
  template <class T>
  void put(Table into, T& entry) {
    std::vector<std::byte>* const outer = std::exchange(out_, &table(into));
    transfer(*this, entry);
    out_ = outer;
    ++counts_[index(into)];
  }

  std::array<std::vector<std::byte>, kTables> tables_;
  std::array<std::uint32_t, kTables> counts_{};
  std::vector<std::byte>* out_ = nullptr;
};

constexpr std::size_t kAlignment = 8;

void append_header(std::vector<std::byte>& out, std::size_t file_size) {
  for (const std::uint8_t byte : kMagic) out.push_back(std::byte{byte});
  for (const std::uint8_t byte :
       {kModelLp64, kLittleEndian, kVersion, kDifVersion, static_cast<std::uint8_t>(kRegisters),
        static_cast<std::uint8_t>(kTupleSlots)}) {
    out.push_back(std::byte{byte});
  }
  out.resize(kIdentBytes);
  append(out, kFormat);  // flags
  append(out, static_cast<std::uint32_t>(kHeaderBytes));
  append(out, static_cast<std::uint32_t>(kSectionHeaderBytes));
  append(out, static_cast<std::uint32_t>(kTables));
  append(out, static_cast<std::uint64_t>(kHeaderBytes));  // where the section headers are
  append(out, static_cast<std::uint64_t>(file_size));     // to load
  append(out, static_cast<std::uint64_t>(file_size));     // in all
  out.resize(kHeaderBytes);
}

}  // namespace

std::array<std::uint32_t, kTables> entry_sizes() {
  return {
#define DOF_TABLE(name, section_type, entry) entry_size<entry>(),
#include "dif/dof/tables.def"
  };
}

}  // namespace dof

std::vector<std::byte> write_dof(const Program& program) {
  using namespace dof;
  Program source = program;  // transfer() is one function for writing and reading
  std::vector<Option> options(program.options.begin(), program.options.end());
  Writer writer;
  transfer_program(writer, source, options);

  const auto sizes = entry_sizes();
  std::array<std::size_t, kTables> offsets{};
  std::size_t end = kHeaderBytes + kTables * kSectionHeaderBytes;
  for (std::size_t i = 0; i < kTables; ++i) {
    offsets[i] = end;
    end = round_up(end + writer.contents(i).size(), kAlignment);
    if (end > kMostDofBytes) return {};
  }
  std::vector<std::byte> out;
  out.reserve(end);
  append_header(out, end);
  for (std::size_t i = 0; i < kTables; ++i) {
    append(out, kSectionTypes[i]);
    append(out, static_cast<std::uint32_t>(kAlignment));
    append(out, kLoadable);
    append(out, sizes[i]);
    append(out, static_cast<std::uint64_t>(offsets[i]));
    append(out, static_cast<std::uint64_t>(writer.contents(i).size()));
  }
  for (std::size_t i = 0; i < kTables; ++i) {
    const auto& table = writer.contents(i);
    out.insert(out.end(), table.begin(), table.end());
    out.resize(round_up(out.size(), kAlignment));
  }
  return out;
}

}  // namespace ringside::dif
