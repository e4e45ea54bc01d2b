#include "vmm/kvm/host/trace_format.h"

#include <fmt/format.h>

#include <cstring>

#include "vmm/base/numbers.h"

namespace ringside::vmm::kvm {
namespace {

/// The number after the first `key` of `text`.
std::optional<std::uint32_t> number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return take_number<std::uint32_t>(text);
}

}  // namespace

std::optional<std::uint64_t> TraceField::read(std::span<const std::byte> record) const {
  if (offset > record.size() || size > record.size() - offset) return std::nullopt;
  std::uint64_t value = 0;
  std::memcpy(&value, record.data() + offset, size);
  return value;
}

Result<std::uint32_t> trace_id(std::string_view format) {
  const auto id = number_after(format, "ID:");
  if (!id) return fail(ErrorCode::Invalid, "the format of a tracepoint has no ID");
  return *id;
}

Result<TraceField> trace_field(std::string_view format, std::string_view name) {
  // "\tfield:unsigned long rax;\toffset:16;\tsize:8;\tsigned:0;"
  for (std::size_t at = 0; at < format.size();) {
    const std::string_view line = format.substr(at, format.find('\n', at) - at);
    at += line.size() + 1;
    const std::size_t begin = line.find("field:"), end = line.find(';');
    if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) continue;
    const std::string_view declared = line.substr(begin, end - begin);
    if (declared.substr(declared.find_last_of(" *:") + 1) != name) continue;
    const auto offset = number_after(line, "offset:"), size = number_after(line, "size:");
    const bool fits = size && (*size == 1 || *size == 2 || *size == 4 || *size == 8);
    if (offset && fits) return TraceField{*offset, *size};
    return fail(ErrorCode::Invalid, fmt::format("a tracepoint's field '{}' is no number", name));
  }
  return fail(ErrorCode::NotFound, fmt::format("a tracepoint has no field '{}'", name));
}

}  // namespace ringside::vmm::kvm
