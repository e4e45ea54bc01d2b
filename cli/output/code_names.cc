#include "cli/output/code_names.h"

#include <fmt/format.h>

#include <charconv>

namespace ringside::cli {

std::string CodeNames::describe_user(std::uint64_t /*pid*/, GuestVirt address) const {
  return fmt::format("0x{:x}", address.raw());
}

CodeName split_code_name(std::string_view description) {
  CodeName name;
  const std::size_t tick = description.find('`');
  if (tick == description.npos) return name;
  name.module = description.substr(0, tick);
  const std::string_view rest = description.substr(tick + 1);
  if (rest.starts_with("0x")) return name;
  name.symbol = without_offset(rest);
  const std::string_view offset = rest.substr(name.symbol.size());
  if (offset.size() > 3) {
    std::from_chars(offset.data() + 3, offset.data() + offset.size(), name.offset, 16);
  }
  return name;
}

std::string_view without_offset(std::string_view description) {
  return description.substr(0, description.rfind("+0x"));
}

std::string_view module_of(std::string_view description) {
  return description.substr(0, description.find('`'));
}

}  // namespace ringside::cli
