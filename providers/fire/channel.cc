#include "providers/fire/channel.h"

#include <sched.h>

#include <algorithm>

namespace ringside::providers {

Result<Channel> choose_channel(Channel wanted, const ChannelChoice& choice) {
  if (wanted == Channel::Exit && !choice.has_exits) {
    return fail(ErrorCode::Unsupported,
                "this machine's vCPUs run in another process, so traps cannot be exits: "
                "use -x channel=spin, or --machine kvm");
  }
  if (wanted != Channel::Auto) return wanted;
  // The fire thread wants a CPU of its own to spin on.
  const bool spare = choice.online_cpus > choice.vcpus;
  return choice.has_exits && !spare ? Channel::Exit : Channel::Spin;
}

unsigned online_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&allowed)));
}

}  // namespace ringside::providers
