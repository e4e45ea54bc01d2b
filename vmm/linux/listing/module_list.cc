#include "vmm/linux/listing/module_list.h"

#include <algorithm>

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostModules = 4096, kMostUses = 1 << 16;
constexpr std::size_t kNameBytes = 56;  // MODULE_NAME_LEN

class ModuleReader {
 public:
  ModuleReader(const KernelView& view, Wanted& wanted);
  Listing<ModuleRow> list();

 private:
  std::optional<ModuleRow> row(GuestVirt at);
  void add_users(const StructCopy& module, ModuleRow& row);
  std::string state(std::uint64_t value) const;

  const KernelView& view_;
  Shape module_, use_;
  GuestVirt modules_;
  Field list_, name_, state_;
  std::vector<Field> sizes_;  // one for each part
  std::optional<Field> base_, references_, source_list_, use_link_, use_source_, init_, exit_;
  std::optional<std::int64_t> coming_, going_, unformed_;
  Walk uses_;
  ListEnd uses_end_ = ListEnd::Whole;
};

ModuleReader::ModuleReader(const KernelView& view, Wanted& wanted)
    : view_(view), module_(wanted, "module"), use_(wanted, "module_use"), uses_(view, kMostUses) {
  modules_ = wanted.symbol("modules");
  list_ = module_.need(wanted, "list");
  name_ = module_.need(wanted, {"name"}, kNameBytes);
  state_ = module_.need(wanted, "state");
  for (const std::string_view part : {"core_layout.size", "init_layout.size", "data_layout.size"}) {
    if (const auto size = module_.want(part)) sizes_.push_back(*size);
  }
  base_ = module_.want("core_layout.base");
  const auto parts = view.field("module", "mem");
  const auto count = view.length_of("module", "mem");
  const auto part_size = view.field("module_memory", "size"),
             part_base = view.field("module_memory", "base");
  if (parts && count && part_size && part_base) {
    const auto of_part = [&](Field field, std::uint32_t i) {
      field.offset += static_cast<std::uint32_t>(parts->offset + i * view.size_of("module_memory"));
      return field;
    };
    for (std::uint32_t i = 0; i < std::min(*count, 16U); ++i)
      sizes_.push_back(of_part(*part_size, i));
    base_ = of_part(*part_base, 0);
    (void)module_.want({"mem"}, std::min(*count, 16U) * view.size_of("module_memory"));
  }
  if (sizes_.empty()) wanted.lacks("module.core_layout, module.mem");
  references_ = module_.want("refcnt.counter");
  source_list_ = module_.want("source_list");
  init_ = module_.want("init");
  exit_ = module_.want("exit");
  use_link_ = use_.want("source_list");
  use_source_ = use_.want("source");
  coming_ = view.enumerator("MODULE_STATE_COMING");
  going_ = view.enumerator("MODULE_STATE_GOING");
  unformed_ = view.enumerator("MODULE_STATE_UNFORMED");
}

std::string ModuleReader::state(std::uint64_t value) const {
  const auto number = static_cast<std::int64_t>(value);
  if (number == coming_) return "loading";
  return number == going_ ? "unloading" : "live";
}

void ModuleReader::add_users(const StructCopy& module, ModuleRow& row) {
  if (!source_list_ || !use_link_ || !use_source_) return;
  const ListEnd end = uses_.circular(module.place(*source_list_), [&](GuestVirt node) {
    const auto use = use_.copy(node.wrapping_sub(use_link_->offset));
    const auto user = use ? use->pointer(use_source_) : std::nullopt;
    if (user) row.used_by.push_back(view_.raw_text(user->wrapping_add(name_.offset), kNameBytes));
    return user.has_value();
  });
  if (end != ListEnd::Whole) uses_end_ = end;
}

/// Empty for one that cannot be read, and for one that the kernel does not show yet.
std::optional<ModuleRow> ModuleReader::row(GuestVirt at) {
  const auto module = module_.copy(at);
  if (!module) {
    uses_end_ = ListEnd::Unreadable;
    return std::nullopt;
  }
  const std::uint64_t state = module->number(state_);
  if (static_cast<std::int64_t>(state) == unformed_) return std::nullopt;
  ModuleRow row;
  row.name = module->text(name_, kNameBytes);
  for (const Field& size : sizes_) row.size += module->number(size);
  row.address = GuestVirt(module->number(base_));
  row.state = this->state(state);
  if (references_) {
    row.references = static_cast<std::int64_t>(module->number(references_)) - 1;  // MODULE_REF_BASE
    row.is_permanent = exit_ && init_ && module->number(init_) != 0 && module->number(exit_) == 0;
  }
  add_users(*module, row);
  return row;
}

Listing<ModuleRow> ModuleReader::list() {
  Listing<ModuleRow> found;
  Walk walk(view_, kMostModules);
  const ListEnd end = walk.circular(modules_, [&](GuestVirt node) {
    if (auto module = row(node.wrapping_sub(list_.offset)))
      found.rows.push_back(std::move(*module));
    return true;
  });
  if (const auto note = cut_note("the list of modules", end)) found.notes.push_back(*note);
  if (const auto note = cut_note("the list of a module's users", uses_end_)) {
    found.notes.push_back(*note);
  }
  return found;
}

}  // namespace

Result<Listing<ModuleRow>> list_loaded_modules(const ListedGuest& guest) {
  return read_until_whole<ModuleRow>(guest, [&]() -> Result<Listing<ModuleRow>> {
    Wanted wanted(guest.view);
    ModuleReader reader(guest.view, wanted);
    TRY(wanted.check("modules"));
    return reader.list();
  });
}

}  // namespace ringside::guest_linux
