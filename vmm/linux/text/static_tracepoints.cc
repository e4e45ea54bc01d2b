// In this file, top to bottom: offsets, one tracepoint, the tables, groups.
#include "vmm/linux/text/static_tracepoints.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "vmm/base/printable.h"
#include "vmm/block_reader.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/modules.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kLongestName = 128;
constexpr std::size_t kMostEvents = 1 << 15;

/// Offsets in struct tracepoint. Kernels without static calls (before 5.10) are not supported.
struct Layout {
  std::uint32_t name, key, call_key, functions;
  std::optional<std::uint32_t> registration;  // before 6.13
  std::optional<std::uint32_t> extension;     // since: leads to struct tracepoint_ext
  std::uint32_t extension_registration = 0;
};

std::optional<Layout> layout_from(const TypeGraph& types) {
  const auto member = [&](std::string_view name) { return offset_of(types, "tracepoint", {name}); };
  const auto name = member("name"), key = member("key"), call_key = member("static_call_key"),
             functions = member("funcs");
  if (!name || !key || !call_key || !functions) return std::nullopt;
  Layout layout{*name, *key, *call_key, *functions, member("regfunc"), member("ext"), 0};
  if (layout.extension) {
    const auto inside = offset_of(types, "tracepoint_ext", {"regfunc"});
    if (!inside) return std::nullopt;
    layout.extension_registration = *inside;
  }
  return layout;
}

/// Empty for what is no name.
std::string name_at(const GuestReader& memory, GuestVirt at) {
  std::array<char, kLongestName> text{};
  const auto bytes = std::as_writable_bytes(std::span(text));
  // A name may be the last thing that is mapped.
  const std::string_view read(text.data(), read_available(memory, at, bytes));
  const std::size_t end = read.find('\0');
  if (end == read.npos || end == 0) return {};
  const std::string_view name = read.substr(0, end);
  return std::ranges::all_of(name, is_name_character) ? std::string(name) : std::string();
}

Result<bool, Fault> has_registration(const GuestReader& memory, const Layout& layout,
                                     GuestVirt tracepoint) {
  if (layout.registration) {
    return TRY(load_field<std::uint64_t>(memory, tracepoint, *layout.registration)) != 0;
  }
  if (!layout.extension) return false;
  const auto more = TRY(load_field<std::uint64_t>(memory, tracepoint, *layout.extension));
  if (more == 0) return false;
  return TRY(load_field<std::uint64_t>(memory, GuestVirt(more), layout.extension_registration)) !=
         0;
}

/// A tracepoint that cannot be read is left out: its module may be going just now.
Result<StaticTracepoint, Fault> read_one(const GuestReader& memory, const Layout& layout,
                                         GuestVirt at) {
  StaticTracepoint out;
  out.name = name_at(memory, GuestVirt(TRY(load_field<std::uint64_t>(memory, at, layout.name))));
  out.key = at.wrapping_add(layout.key);
  out.call_key = GuestVirt(TRY(load_field<std::uint64_t>(memory, at, layout.call_key)));
  out.functions = at.wrapping_add(layout.functions);
  out.has_registration = TRY(has_registration(memory, layout, at));
  return out;
}

/// A table of offsets, each relative to itself.
struct Table {
  GuestVirt begin;
  std::uint64_t count = 0;
  std::uint16_t module = 0;
};

class Reader {
 public:
  Reader(const GuestReader& memory, const Layout& layout) : memory_(memory), layout_(layout) {}

  void add(const Table& table) {
    const std::uint64_t room = kMostStaticTracepoints - found_.size();
    for (std::uint64_t n = 0; n < std::min(table.count, room); ++n) {
      const GuestVirt place = table.begin.wrapping_add(n * sizeof(std::int32_t));
      const auto distance = load<std::int32_t>(memory_, place);
      if (!distance) return;
      const auto far = static_cast<std::uint64_t>(std::int64_t{*distance});
      const GuestVirt at = place.wrapping_add(far);
      auto one = read_one(memory_, layout_, at);
      if (!one || one->name.empty() || !index_.emplace(at.raw(), found_.size()).second) continue;
      one->module = table.module;
      found_.push_back(std::move(*one));
    }
  }
  /// The tracepoint there; null for what is none.
  StaticTracepoint* at(std::uint64_t address) {
    const auto found = index_.find(address);
    return found != index_.end() ? &found_[found->second] : nullptr;
  }
  std::vector<StaticTracepoint>& found() { return found_; }

 private:
  const GuestReader& memory_;
  const Layout& layout_;
  std::vector<StaticTracepoint> found_;
  std::unordered_map<std::uint64_t, std::size_t> index_;  // by the address of struct tracepoint
};

void add_modules(const GuestReader& memory, const Kernel& kernel, Reader& reader) {
  const Symbol* const list = kernel.symbols().find("modules", "vmlinux");
  const auto layout = ModuleLayout::from(kernel.types());
  const auto pointers = offset_of(kernel.types(), "module", {"tracepoints_ptrs"});
  const auto count = offset_of(kernel.types(), "module", {"num_tracepoints"});
  if (list == nullptr || !layout || !pointers || !count) return;
  const auto heads = list_modules(memory, *layout, list->address);
  if (!heads) return;
  const auto modules = kernel.symbols().modules();
  for (const ModuleHead& head : *heads) {
    const auto known = std::ranges::find_if(modules, [&](const Module& one) {
      return one.name == head.name && one.text_base == head.text_base;
    });
    const auto begin = load_field<std::uint64_t>(memory, head.address, *pointers);
    const auto length = load_field<std::uint32_t>(memory, head.address, *count);
    if (known == modules.end() || !begin || !length) continue;
    reader.add({GuestVirt(*begin), *length, static_cast<std::uint16_t>(known - modules.begin())});
  }
}

/// Offsets in struct trace_event_call and in struct trace_event_class.
struct EventLayout {
  GuestVirt head;  // of the list of all
  std::uint32_t list, group, tracepoint, flags, system;
  std::uint32_t is_tracepoint;  // the flag
};

std::optional<EventLayout> event_layout_from(const Kernel& kernel) {
  const auto& types = kernel.types();
  const auto member = [&](std::string_view name) {
    return offset_of(types, "trace_event_call", {name});
  };
  const Symbol* const head = kernel.symbols().find("ftrace_events", "vmlinux");
  const auto list = member("list"), group = member("class"), tracepoint = member("tp"),
             flags = member("flags");
  const auto system = offset_of(types, "trace_event_class", {"system"});
  const auto is_tracepoint = types.find_enumerator("TRACE_EVENT_FL_TRACEPOINT");
  if (head == nullptr || !list || !group || !tracepoint || !flags || !system || !is_tracepoint) {
    return std::nullopt;
  }
  return EventLayout{head->address,
                     *list,
                     *group,
                     *tracepoint,
                     *flags,
                     *system,
                     static_cast<std::uint32_t>(is_tracepoint->second)};
}

/// The groups of tracepoints, as struct trace_event_call has them.
class Events {
 public:
  Events(const GuestReader& memory, const EventLayout& layout) : memory_(memory), at_(layout) {}

  void name_groups(Reader& reader) {
    // Of a list that ends badly the groups that were reached are known.
    (void)walk_list(memory_, at_.head, kMostEvents, [&](GuestVirt node) {
      name_group(node.wrapping_sub(at_.list), reader);
      return true;
    });
  }

 private:
  void name_group(GuestVirt event, Reader& reader) {
    const auto flags = load_field<std::uint32_t>(memory_, event, at_.flags);
    if (!flags || (*flags & at_.is_tracepoint) == 0) return;
    const auto tracepoint = load_field<std::uint64_t>(memory_, event, at_.tracepoint);
    StaticTracepoint* const known = tracepoint ? reader.at(*tracepoint) : nullptr;
    const auto group = load_field<std::uint64_t>(memory_, event, at_.group);
    if (known == nullptr || !group) return;
    const auto system = load_field<std::uint64_t>(memory_, GuestVirt(*group), at_.system);
    if (system) known->group = name_of_system(GuestVirt(*system));
  }
  /// Groups have many events each.
  const std::string& name_of_system(GuestVirt at) {
    const auto [known, is_new] = systems_.try_emplace(at.raw());
    if (is_new) known->second = name_at(memory_, at);
    return known->second;
  }

  const GuestReader& memory_;
  const EventLayout& at_;
  std::unordered_map<std::uint64_t, std::string> systems_;
};

}  // namespace

Result<std::vector<StaticTracepoint>> read_static_tracepoints(const GuestReader& memory,
                                                              const Kernel& kernel) {
  const Symbol* const begin = kernel.symbols().find("__start___tracepoints_ptrs", "vmlinux");
  const Symbol* const end = kernel.symbols().find("__stop___tracepoints_ptrs", "vmlinux");
  if (begin == nullptr || end == nullptr || end->address <= begin->address) {
    return fail(ErrorCode::Unsupported,
                "the guest's kernel has no static tracepoints (CONFIG_TRACEPOINTS)");
  }
  const auto layout = layout_from(kernel.types());
  if (!layout) {
    return fail(ErrorCode::Unsupported,
                "the types of the guest's kernel do not describe static tracepoints as kernels "
                "since 5.10 have them (struct tracepoint with static_call_key)");
  }
  const vmm::BlockReader blocks(memory);
  Reader reader(blocks, *layout);
  const std::uint64_t bytes = end->address.offset_from(begin->address);
  reader.add({begin->address, bytes / sizeof(std::int32_t), 0});
  add_modules(blocks, kernel, reader);
  if (const auto events = event_layout_from(kernel)) Events(blocks, *events).name_groups(reader);
  const auto modules = kernel.symbols().modules();
  for (StaticTracepoint& one : reader.found()) {
    if (one.group.empty()) one.group = modules[one.module].name;
  }
  return std::move(reader.found());
}

}  // namespace ringside::guest_linux
