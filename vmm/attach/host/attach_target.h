// The target of --attach: a machine that someone else started. Used by the command line and
// attach() (attach.h). Pure: whether there is such a machine is found out when it is attached to.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "vmm/base/result.h"

namespace ringside::vmm {

/// pid:N, a process that runs a guest.
struct ProcessTarget {
  pid_t pid = 0;
};

/// qmp:PATH, the socket of a QEMU's monitor.
struct QmpTarget {
  std::string path;
};

/// A libvirt domain: a name, a UUID, or a connection's URI with ?name= or ?uuid=.
struct DomainTarget {
  std::string uri;     // without name= and uuid=; empty: libvirt's own choice
  std::string domain;  // name or UUID
};

struct AttachTarget {
  std::string text;  // as it was given, for messages
  std::variant<ProcessTarget, QmpTarget, DomainTarget> where;
};

/// Invalid, with the forms that there are, for a text that is none of them.
Result<AttachTarget> parse_attach_target(std::string_view text);

/// The option by which QEMU makes such a socket, for messages. It has one client at a time, so one
/// is for ringside alone.
inline constexpr std::string_view kQmpOption = "-qmp unix:PATH,server=on,wait=off";

/// The error that the connection `uri` has no such domain; `names` are its domains. It is one line,
/// because anybody can choose the names.
std::string no_such_domain(std::string_view uri, const DomainTarget& target,
                           std::vector<std::string> names);

}  // namespace ringside::vmm
