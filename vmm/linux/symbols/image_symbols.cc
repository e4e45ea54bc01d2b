#include "vmm/linux/symbols/image_symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "vmm/linux/symbols/kallsyms_names.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kTokenTableBytes = 64 << 10;  // u16 offsets reach no further

std::optional<KallsymsKeys> keys_of(const VmcoreInfo& info) {
  const auto names = info.symbol("kallsyms_names");
  const auto table = info.symbol("kallsyms_token_table");
  const auto index = info.symbol("kallsyms_token_index");
  if (!names || !table || !index || !info.symbol("kallsyms_num_syms")) return std::nullopt;
  KallsymsKeys keys{.names = *names,
                    .token_table = *table,
                    .token_index = *index,
                    .count = 0,
                    .offsets = info.symbol("kallsyms_offsets"),
                    .addresses64 = info.symbol("kallsyms_addresses"),
                    .relative_base = info.symbol("kallsyms_relative_base")};
  if (!keys.offsets && !keys.addresses64) return std::nullopt;
  return keys;
}

/// The smallest piece of the image that holds all the tables. The names end below the tokens.
Result<std::vector<std::byte>> copy_tables(const KernelMemory& memory, const KallsymsKeys& keys,
                                           GuestVirt& from) {
  std::uint64_t low = keys.names.raw();
  std::uint64_t high = low;
  const auto include = [&](std::optional<GuestVirt> at, std::uint64_t size) {
    if (!at) return;
    low = std::min(low, at->raw());
    // Beyond the last address it is in no image: the copy is refused.
    high = std::max(high, at->checked_add(size).value_or(GuestVirt(UINT64_MAX)).raw());
  };
  include(keys.token_table, kTokenTableBytes);
  include(keys.token_index, kTokenIndexBytes);
  include(keys.offsets, std::uint64_t{keys.count} * 4);
  include(keys.addresses64, std::uint64_t{keys.count} * 8);
  include(keys.relative_base, 8);
  from = GuestVirt(low);
  return memory.copy_image(from, high - low);
}

}  // namespace

Error lacks(const KernelMemory& memory, std::string_view what, std::string_view option) {
  return {ErrorCode::Unsupported,
          fmt::format("the guest's kernel {} {}: boot one built with {}, as distributions do",
                      memory.info().release(), what, option)};
}

Result<Kallsyms> read_kallsyms(const KernelMemory& memory) {
  const GuestVirt stext = *memory.info().symbol("_stext");
  auto keys = keys_of(memory.info());
  if (!keys) {
    const auto image = memory.copy_whole_image();
    auto found = scan_for_kallsyms(ImageView{stext, image}, stext);
    if (!found) return tl::unexpected(lacks(memory, "has no symbol table", "CONFIG_KALLSYMS"));
    return found;
  }
  const auto count =
      TRY(memory.copy_image(*memory.info().symbol("kallsyms_num_syms"), sizeof(std::uint32_t)));
  keys->count = std::min(load_at<std::uint32_t>(count, 0), kMaxSymbols);
  GuestVirt from;
  const auto tables = TRY(copy_tables(memory, *keys, from));
  return decode_kallsyms(ImageView{from, tables}, *keys, stext);
}

}  // namespace ringside::guest_linux
