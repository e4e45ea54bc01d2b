#include "vmm/linux/processes/static_probes.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "vmm/base/numbers.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kMostNoteBytes = 8 << 20;  // bytes
constexpr std::size_t kMostStaticProbes = 1 << 16;
constexpr std::size_t kLongestProbeName = 128, kLongestArguments = 1024;
constexpr Elf64_Word kProbeNote = 3;  // a note's type
constexpr std::string_view kProbeOwner = "stapsdt";

bool is_probe_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestProbeName &&
         std::ranges::all_of(text, is_probe_character);
}

bool prints(std::string_view text) {
  return text.size() <= kLongestArguments &&
         std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 0x7f; });
}

/// Takes the bytes before the next NUL off; empty where there is none.
std::optional<std::string_view> take_string(std::string_view& rest) {
  const std::size_t end = rest.find('\0');
  if (end == rest.npos) return std::nullopt;
  const auto text = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return text;
}

/// The three addresses of a note.
struct ProbeAddresses {
  std::uint64_t nop, base, semaphore;
};

/// The addresses of all symbols, by name; read when the first one is asked for.
class ProbeVariables {
 public:
  ProbeVariables(const FileBytes& file, const FileElf& elf) : file_(file), elf_(elf) {}

  std::optional<std::uint64_t> find(std::string_view name) {
    if (!std::exchange(is_read_, true)) read();
    const auto found = addresses_.find(std::string(name));
    return found == addresses_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  void read() {
    for (const Elf64_Shdr* const each : elf_.symbol_tables()) {
      const auto table = FileSymbols::read(file_, elf_, *each);
      for (const Elf64_Sym& symbol : table.symbols) {
        if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT) continue;
        const auto name = table.name_of(symbol);
        if (!name.empty() && name.size() < kLongestProbeName) {
          addresses_.emplace(name, symbol.st_value);
        }
      }
    }
  }

  const FileBytes& file_;
  const FileElf& elf_;
  std::map<std::string, std::uint64_t> addresses_;
  bool is_read_ = false;
};

/// The sum of "name+8", "-4+name" and the like: numbers, and one symbol.
std::optional<std::uint64_t> sum_in(std::string_view text, ProbeVariables& variables) {
  std::uint64_t sum = 0;
  bool any_symbol = false;
  while (!text.empty()) {
    const bool is_negative = text.front() == '-';
    if (text.front() == '-' || text.front() == '+') text.remove_prefix(1);
    const auto term = text.substr(0, text.find_first_of("+-"));
    text.remove_prefix(term.size());
    auto value = parse_number<std::uint64_t>(term, 10);
    if (!value && !is_negative && !std::exchange(any_symbol, true)) value = variables.find(term);
    if (!value) return std::nullopt;
    sum += is_negative ? 0 - *value : *value;
  }
  return any_symbol ? std::optional(sum) : std::nullopt;
}

/// `nop`: its address as it was linked, as the symbols' are.
std::string with_distances(std::string_view arguments, std::uint64_t nop,
                           ProbeVariables& variables) {
  constexpr std::string_view kByRip = "(%rip)";
  std::string made;
  while (!arguments.empty()) {
    const auto one = arguments.substr(0, arguments.find(' '));
    const std::size_t at = one.find('@');
    arguments.remove_prefix(std::min(one.size() + 1, arguments.size()));
    if (!made.empty()) made += ' ';
    const auto sum =
        at != one.npos && one.ends_with(kByRip)
            ? sum_in(one.substr(at + 1, one.size() - at - 1 - kByRip.size()), variables)
            : std::nullopt;
    if (!sum) {
      made += one;
      continue;
    }
    const auto distance = static_cast<std::int64_t>(*sum - nop);
    made.append(one.substr(0, at + 1)).append(std::to_string(distance)).append(kByRip);
  }
  return made;
}

/// `in_guest`: which tells where the guest's file has an address. `base`: .stapsdt.base, which was
/// elsewhere if the file was linked anew (prelink); null: none.
std::optional<StaticProbe> probe_of(std::string_view note, const FileElf& in_guest,
                                    const Elf64_Shdr* base, ProbeVariables& variables) {
  if (note.size() < sizeof(ProbeAddresses)) return std::nullopt;
  ProbeAddresses at{};
  std::memcpy(&at, note.data(), sizeof at);
  note.remove_prefix(sizeof at);
  const auto provider = take_string(note), name = take_string(note), arguments = take_string(note);
  if (!arguments || !is_probe_name(*provider) || !is_probe_name(*name) || !prints(*arguments)) {
    return std::nullopt;
  }
  const std::uint64_t moved = base != nullptr ? base->sh_addr - at.base : 0;
  const auto offset = in_guest.offset_of(at.nop + moved, PF_X);
  if (!offset) return std::nullopt;
  StaticProbe probe{std::string(*provider),
                    std::string(*name),
                    with_distances(*arguments, at.nop + moved, variables),
                    *offset,
                    {}};
  if (at.semaphore == 0) return probe;
  probe.semaphore = in_guest.offset_of(at.semaphore + moved, PF_W);
  // It would never fire, or the counter could lie in two pages.
  if (!probe.semaphore || *probe.semaphore == 0 || *probe.semaphore % 2 != 0) return std::nullopt;
  return probe;
}

/// Those that notes tell, and whether all notes were there.
struct NotedProbes {
  std::vector<StaticProbe> probes{};
  bool is_whole = false;
};

/// The notes of this file, which is the guest's or a copy of it.
NotedProbes noted_probes(const FileBytes& file, const FileElf& elf, const FileElf& in_guest) {
  NotedProbes found;
  const Elf64_Shdr* const section = elf.section(".note.stapsdt");
  if (section == nullptr || section->sh_type == SHT_NOBITS) {
    found.is_whole = section == nullptr && !elf.sections().empty();  // else nobody knows
    return found;
  }
  const Elf64_Shdr* const base = elf.section(".stapsdt.base");
  const std::uint64_t size = std::min(section->sh_size, kMostNoteBytes);
  const auto bytes = read_all<char>(file, section->sh_offset, size);
  found.is_whole = bytes.size() == size;
  std::string_view rest(bytes.data(), bytes.size());
  ProbeVariables variables(file, elf);
  while (found.probes.size() < kMostStaticProbes) {
    const auto note = take_note(rest);
    if (!note) break;
    if (note->type != kProbeNote || note->owner != kProbeOwner) continue;
    auto probe = probe_of(note->text, in_guest, base, variables);
    if (probe) found.probes.push_back(std::move(*probe));
  }
  return found;
}

}  // namespace

std::vector<StaticProbe> read_static_probes(const FileBytes& file, const FileElf& elf,
                                            HostFiles* host, std::string_view path,
                                            HostFiles::Servers servers) {
  NotedProbes found = noted_probes(file, elf, elf);
  if (found.is_whole || host == nullptr || !host->any()) return std::move(found.probes);
  (void)host->visit({file, elf, path, servers}, [&](const HostFiles::Copy& copy) {
    NotedProbes more = noted_probes(copy.file, copy.elf, elf);
    if (more.is_whole || more.probes.size() > found.probes.size()) found = std::move(more);
    return found.is_whole;
  });
  return std::move(found.probes);
}

}  // namespace ringside::guest_linux
