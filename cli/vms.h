// `ringside vms`: the virtual machines of this host, as a table or as JSON. Does not: find them
// (vmm/attach/host_vms.h).
#pragma once

#include <string>
#include <vector>

#include "cli/options/settings.h"
#include "vmm/attach/host_vms.h"

namespace ringside::cli {

/// Lines with aligned columns; under each machine that cannot be attached to, why.
std::string vms_as_text(const std::vector<vmm::HostVm>& vms);
/// An array of objects; what nobody knows is null.
std::string vms_as_json(const std::vector<vmm::HostVm>& vms);

/// Prints them; the exit status.
int list_vms(OutputFormat format);

}  // namespace ringside::cli
