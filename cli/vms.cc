#include "cli/vms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/messages/messages.h"
#include "vmm/base/numbers.h"
#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

using Row = std::array<std::string, 10>;

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : printable(text);
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30;
  if (bytes >= kGiB && bytes % kGiB == 0) return fmt::format("{}G", bytes / kGiB);
  // The memory that the guest knows of may end a few pages below its machine's size.
  return fmt::format("{}M", divide_up(bytes, kMiB));
}

Row row_of(const vmm::HostVm& vm) {
  return {or_dash(vm.name),
          std::to_string(vm.pid),
          or_dash(vm.vmm),
          or_dash(vm.accelerator),
          or_dash(vm.state),
          vm.vcpus ? std::to_string(*vm.vcpus) : "-",
          vm.memory ? size_text(*vm.memory) : "-",
          or_dash(vm.kernel),
          or_dash(vm.ours),
          vm.target.empty() ? "no: " + printable(vm.obstacle) : printable(vm.target)};
}

nlohmann::json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(printable(text));
}

template <class T>
nlohmann::json value_or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

}  // namespace

std::string vms_as_text(const std::vector<vmm::HostVm>& vms) {
  std::vector<Row> rows{
      {"NAME", "PID", "VMM", "ACCEL", "STATE", "VCPUS", "MEMORY", "KERNEL", "OURS", "ATTACH"}};
  for (const vmm::HostVm& vm : vms) rows.push_back(row_of(vm));
  std::array<std::size_t, std::tuple_size_v<Row>> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      text += fmt::format("{:<{}}  ", row[i], widths[i]);
    text += row.back() + '\n';
  }
  return text;
}

std::string vms_as_json(const std::vector<vmm::HostVm>& vms) {
  auto list = nlohmann::json::array();
  for (const vmm::HostVm& vm : vms) {
    list.push_back({{"name", printable(vm.name)},
                    {"pid", vm.pid},
                    {"vmm", printable(vm.vmm)},
                    {"accelerator", text_or_null(vm.accelerator)},
                    {"state", vm.state},
                    {"vcpus", value_or_null(vm.vcpus)},
                    {"memory", value_or_null(vm.memory)},
                    {"kernel", text_or_null(vm.kernel)},
                    {"ours", text_or_null(vm.ours)},
                    {"attach", text_or_null(vm.target)},
                    {"obstacle", text_or_null(vm.obstacle)}});
  }
  return list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

int list_vms(OutputFormat format) {
  const auto vms = vmm::list_host_vms();
  if (format == OutputFormat::Text && vms.empty()) {
    say("no virtual machine that we may see runs on this host");
    return kExitOk;
  }
  const std::string text = format == OutputFormat::Json ? vms_as_json(vms) : vms_as_text(vms);
  const bool written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return written ? kExitOk : kExitFailure;
}

}  // namespace ringside::cli
