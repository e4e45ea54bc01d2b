// In this file, top to bottom: copies of structures, what a kernel lacks, walks.
#include "vmm/linux/listing/listing.h"

#include <fmt/format.h>

#include <algorithm>

#include "vmm/linux/types/types_without_btf.h"

namespace ringside::guest_linux {
namespace {

/// Structures that lists are made of have less than that; a kernel's own types may say anything.
constexpr std::size_t kMostCopied = 32 << 10;
/// A red-black tree of 2^32 nodes is no deeper.
constexpr std::size_t kDeepest = 64;

}  // namespace

std::string StructCopy::text(const Field& field, std::size_t size) const {
  const auto all = bytes(field, size);
  const std::string text(reinterpret_cast<const char*>(all.data()), all.size());
  return text.substr(0, text.find('\0'));
}

std::span<const std::byte> StructCopy::bytes(const Field& field, std::size_t size) const {
  const std::span<const std::byte> all(bytes_);
  if (field.offset > all.size() || all.size() - field.offset < size) return {};
  return all.subspan(field.offset, size);
}

Result<void> Wanted::check(std::string_view list) const {
  if (missing_.empty()) return {};
  if (!has_kernel_types(view_->types())) {
    return fail(ErrorCode::Unsupported,
                fmt::format("{}: the types of this kernel are not known (it has no BTF): name a "
                            "file that has them with --types",
                            list));
  }
  return fail(ErrorCode::Unsupported, fmt::format("{}: this kernel has no {}", list, missing_));
}

GuestVirt Wanted::symbol(std::string_view name) {
  const auto found = view_->symbol(name);
  if (!found) lacks(fmt::format("symbol {}", name));
  return found.value_or(GuestVirt());
}

std::int64_t Wanted::enumerator(std::string_view name) {
  const auto found = view_->enumerator(name);
  if (!found) lacks(fmt::format("enumerator {}", name));
  return found.value_or(0);
}

std::uint64_t Wanted::size_of(std::string_view structure) {
  const std::uint64_t size = view_->size_of(structure);
  if (size == 0 || size > kMostCopied) lacks(fmt::format("struct {}", structure));
  return size;
}

Field Shape::need(Wanted& wanted, std::initializer_list<std::string_view> paths,
                  std::size_t bytes) {
  const auto found = want(paths, bytes);
  if (!found) wanted.lacks(fmt::format("{}.{}", structure_, *paths.begin()));
  return found.value_or(Field());
}

std::optional<Field> Shape::want(std::initializer_list<std::string_view> paths, std::size_t bytes) {
  const auto found = view_->field(structure_, paths);
  if (!found || found->offset + std::max<std::size_t>(found->bytes, bytes) > kMostCopied) {
    return std::nullopt;
  }
  extent_ = std::max(extent_, found->offset + std::max<std::size_t>(found->bytes, bytes));
  return found;
}

std::optional<StructCopy> Shape::copy(GuestVirt at) const {
  std::vector<std::byte> bytes(extent_);
  if (!view_->reader().read(at, bytes)) return std::nullopt;
  return StructCopy(at, std::move(bytes));
}

ListEnd Walk::circular(GuestVirt head, const ListVisitor& visit) {
  auto node = view_->load<std::uint64_t>(head);
  while (node && *node != 0) {
    if (*node == head.raw()) return ListEnd::Whole;
    if (!take(GuestVirt(*node))) return ListEnd::Endless;
    if (!visit(GuestVirt(*node))) return ListEnd::Stopped;
    node = view_->load<std::uint64_t>(GuestVirt(*node));
  }
  return ListEnd::Unreadable;
}

ListEnd Walk::chain(std::uint64_t first, const ListVisitor& visit) {
  std::optional<std::uint64_t> node = first;
  while (node) {
    if (*node == 0 || (*node & 1) != 0) return ListEnd::Whole;
    if (!take(GuestVirt(*node))) return ListEnd::Endless;
    if (!visit(GuestVirt(*node))) return ListEnd::Stopped;
    node = view_->load<std::uint64_t>(GuestVirt(*node));
  }
  return ListEnd::Unreadable;
}

ListEnd Walk::tree(GuestVirt root, const ListVisitor& visit) {
  const auto left = view_->field("rb_node", "rb_left"), right = view_->field("rb_node", "rb_right");
  auto node = view_->load<std::uint64_t>(root);
  std::vector<GuestVirt> above;  // whose left half is done or being done
  while (node && left && right) {
    for (; node && *node != 0; node = view_->value(GuestVirt(*node), left)) {
      if (above.size() == kDeepest || !take(GuestVirt(*node))) return ListEnd::Endless;
      above.emplace_back(*node);
    }
    if (!node) break;
    if (above.empty()) return ListEnd::Whole;
    const GuestVirt next = above.back();
    above.pop_back();
    if (!visit(next)) return ListEnd::Stopped;
    node = view_->value(next, right);
  }
  return ListEnd::Unreadable;
}

std::optional<std::string> cut_note(std::string_view list, ListEnd end) {
  switch (end) {
    case ListEnd::Whole: return std::nullopt;
    case ListEnd::Stopped: return fmt::format("{} is longer than what is read of it", list);
    case ListEnd::Unreadable: return fmt::format("{} is cut: a link leads nowhere", list);
    case ListEnd::Endless: return fmt::format("{} is cut: it does not end", list);
  }
  return std::nullopt;
}

}  // namespace ringside::guest_linux
