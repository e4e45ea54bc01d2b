#include "vmm/attach/host_vms.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "vmm/attach/host/fake_proc_for_tests.h"
#include "vmm/attach/monitor/fake_monitor_for_tests.h"

namespace ringside::vmm {
namespace {

// No process of this host: what is not in the folder cannot be looked into.
constexpr pid_t kPid = 0x7fff'fff0;

class HostVms : public testing::Test {
 protected:
  void program(pid_t pid, const std::string& path, const std::string& words) const {
    proc_.link(pid, "exe", path);
    std::string text = words + ' ';
    std::ranges::replace(text, ' ', '\0');
    proc_.file(pid, "cmdline", text);
    proc_.file(pid, fmt::format("task/{}/status", pid), "State:\tS (sleeping)\n");
    proc_.file(pid, "status", "Uid:\t64055\t64055\t64055\t64055\n");
  }
  FakeProc proc_;
  const FindDomain knows_ = [](const std::string&) -> Result<std::string> { return "paused"; };
  const FindDomain knows_not_ = [](const std::string& name) -> Result<std::string> {
    return fail(ErrorCode::NotFound, fmt::format("libvirt has no domain '{}'", name));
  };
};

TEST_F(HostVms, ProcessesThatRunNoGuestAreLeftOut) {
  program(kPid, "/usr/bin/qemu-img", "qemu-img create");
  proc_.link(kPid, "fd/0", "/dev/null");

  EXPECT_TRUE(list_host_vms(proc_.root()).empty());
  EXPECT_TRUE(list_host_vms(proc_.root() + "/none").empty());
}

TEST_F(HostVms, ATranslatingQemuIsAttachedToByItsMonitor) {
  program(kPid, "/usr/bin/qemu-system-x86_64",
          "qemu-system-x86_64 -name web1 -smp 2 -m 1G -qmp unix:run/web1.qmp,server=on");
  proc_.link(kPid, "cwd", "/srv");
  proc_.link(kPid, "fd/0", "/dev/null");

  const auto vms = list_host_vms(proc_.root());

  ASSERT_EQ(vms.size(), 1u);
  EXPECT_EQ(vms[0].name, "web1");
  EXPECT_EQ(vms[0].accelerator, "tcg");
  EXPECT_EQ(vms[0].vcpus, 2u);
  EXPECT_EQ(vms[0].memory, std::uint64_t{1} << 30);
  EXPECT_EQ(vms[0].target, "qmp:/srv/run/web1.qmp");
  EXPECT_EQ(vms[0].obstacle, "");
}

TEST_F(HostVms, ATranslatingQemuOfLibvirtsIsAttachedToByItsDomain) {
  program(kPid, "/usr/bin/qemu-system-x86_64",
          "qemu-system-x86_64 -name guest=web1 -chardev socket,id=charmonitor,fd=25,server=on");
  proc_.link(kPid, "fd/0", "/dev/null");

  EXPECT_EQ(list_host_vms(proc_.root(), knows_).front().target, "web1");
  EXPECT_EQ(list_host_vms(proc_.root(), knows_).front().state, "paused");
  const HostVm vm = list_host_vms(proc_.root(), knows_not_).front();
  EXPECT_EQ(vm.target, "") << "of another libvirt than the default one";
  EXPECT_EQ(vm.obstacle,
            "libvirt has no domain 'web1'; name another libvirt's domain as URI?name=web1");
}

TEST_F(HostVms, ATranslatingQemusStateIsWhatItsMonitorSays) {
  FakeMonitor qemu;  // this process is who listens
  program(getpid(), "/usr/bin/qemu-system-x86_64",
          fmt::format("qemu-system-x86_64 -qmp unix:{},server=on", qemu.path()));
  proc_.link(getpid(), "fd/0", "/dev/null");
  const auto state = [&] { return list_host_vms(proc_.root()).front().state; };

  EXPECT_EQ(state(), "running");
  qemu.set_running(false);
  EXPECT_EQ(state(), "paused");
  qemu.say("query-status", {{"status", "io-error"}});
  EXPECT_EQ(state(), "io-error");
  qemu.say("query-status", {{"status", std::string(200, '\n')}});
  EXPECT_LT(state().size(), 100u);
  EXPECT_EQ(qemu.taken(), std::vector<std::string>());
  program(kPid, "/usr/bin/qemu-system-x86_64",
          fmt::format("qemu-system-x86_64 -qmp unix:{},server=on", qemu.path()));
  proc_.link(kPid, "fd/0", "/dev/null");
  EXPECT_EQ(list_host_vms(proc_.root()).back().state, "unknown") << "its socket is another's";
}

TEST_F(HostVms, ATranslatingQemuWithoutAGuestToTraceSaysSo) {
  FakeMonitor qemu;
  program(getpid(), "/usr/bin/qemu-system-x86_64",
          fmt::format("qemu-system-x86_64 -qmp unix:{},server=on", qemu.path()));
  proc_.link(getpid(), "fd/0", "/dev/null");
  const auto listed = [&](const char* status) {
    qemu.say("query-status", {{"status", status}});
    return list_host_vms(proc_.root()).front();
  };

  EXPECT_EQ(listed("inmigrate").target, "");
  EXPECT_EQ(listed("inmigrate").obstacle,
            "it waits for a guest that comes from another host or a file: attach when it runs");
  EXPECT_EQ(listed("suspended").target, "");
  EXPECT_EQ(listed("paused").target, "qmp:" + qemu.path());
  EXPECT_EQ(listed("paused").obstacle, "");
}

TEST_F(HostVms, ATranslatingQemuWithoutAMonitorSaysSo) {
  program(kPid, "/usr/bin/qemu-system-x86_64", "qemu-system-x86_64");
  proc_.link(kPid, "fd/0", "/dev/null");

  const auto vms = list_host_vms(proc_.root());

  ASSERT_EQ(vms.size(), 1u);
  EXPECT_EQ(vms[0].target, "");
  EXPECT_NE(vms[0].obstacle.find("takes its monitor"), std::string::npos) << vms[0].obstacle;
}

TEST_F(HostVms, AGuestOfAnotherProcessorSaysSo) {
  program(kPid, "/usr/bin/qemu-system-aarch64", "qemu-system-aarch64 -qmp unix:/run/q,server=on");
  proc_.link(kPid, "fd/0", "/dev/null");

  const auto vms = list_host_vms(proc_.root());

  ASSERT_EQ(vms.size(), 1u);
  EXPECT_EQ(vms[0].target, "");
  EXPECT_NE(vms[0].obstacle.find("processor is aarch64"), std::string::npos) << vms[0].obstacle;
}

TEST_F(HostVms, AVmThatWeMayNotLookIntoIsThereWithTheReason) {
  program(kPid, "/usr/bin/firecracker", "firecracker --id fn-1");
  proc_.link(kPid, "fd/8", "anon_inode:kvm-vcpu:0");
  proc_.link(kPid, "fd/9", "anon_inode:kvm-vcpu:1");

  const auto vms = list_host_vms(proc_.root());

  ASSERT_EQ(vms.size(), 1u);
  EXPECT_EQ(vms[0].name, "fn-1");
  EXPECT_EQ(vms[0].vmm, "firecracker");
  EXPECT_EQ(vms[0].accelerator, "kvm");
  EXPECT_EQ(vms[0].vcpus, 2u);
  EXPECT_EQ(vms[0].state, "paused") << "none of its threads is in KVM";
  EXPECT_EQ(vms[0].target, "");
  EXPECT_NE(vms[0].obstacle.find("is not for us"), std::string::npos) << vms[0].obstacle;
}

TEST_F(HostVms, AMonitorKnowsWhatAProcessDoesNotTell) {
  proc_.link(kPid, "fd/8", "anon_inode:kvm-vcpu:0");
  proc_.thread(kPid, kPid, "16 0x8 0xae80 0x0 0x0 0x0 0x0 0x7ffd 0x7f12");
  const auto list = [&](const std::string& words) {
    program(kPid, "/usr/bin/qemu-system-x86_64", "qemu-system-x86_64 -accel kvm " + words);
    return list_host_vms(proc_.root(), knows_).front();
  };

  const auto domain = list("-name guest=web1 -chardev socket,id=charmonitor,fd=25,server=on");
  const auto socket = list("-qmp unix:/run/web2.qmp,server=on");
  const auto neither = list("-name web3");

  EXPECT_EQ(domain.target, "web1");
  EXPECT_EQ(domain.obstacle, "");
  EXPECT_EQ(socket.target, "qmp:/run/web2.qmp");
  EXPECT_EQ(neither.target, "");
  EXPECT_NE(neither.obstacle, "");
  proc_.file(kPid, fmt::format("task/{}/status", kPid), "State:\tT (stopped)\n");
  const HostVm stopped = list_host_vms(proc_.root()).front();
  EXPECT_EQ(stopped.obstacle, "it is stopped");
  EXPECT_EQ(stopped.target, "");
}

TEST_F(HostVms, AGuestRunsWhenAThreadIsInKvm) {
  program(kPid, "/usr/bin/firecracker", "firecracker");
  proc_.link(kPid, "fd/8", "anon_inode:kvm-vcpu:0");
  proc_.thread(kPid, kPid, "16 0x8 0xae80 0x0 0x0 0x0 0x0 0x7ffd 0x7f12");
  EXPECT_EQ(list_host_vms(proc_.root()).front().state, "running");

  proc_.file(kPid, fmt::format("task/{}/status", kPid), "State:\tT (stopped)\n");
  EXPECT_EQ(list_host_vms(proc_.root()).front().state, "stopped");
}

}  // namespace
}  // namespace ringside::vmm
