#include "vmm/attach/host/vmm_program.h"

#include <gtest/gtest.h>

#include "vmm/attach/host/fake_proc_for_tests.h"

namespace ringside::vmm {
namespace {

VmmProgram qemu(std::vector<std::string> words) {
  words.insert(words.begin(), "qemu-system-x86_64");
  return describe_program("qemu-system-x86_64", words, 7);
}

TEST(VmmProgram, AQemuIsAskedByItsOptions) {
  const VmmProgram found = qemu({"-name", "guest=web1,debug-threads=on", "-m", "size=2G,slots=4",
                                 "-smp", "4,sockets=1", "-qmp", "unix:/run/a,,b.sock,server=on"});

  EXPECT_EQ(found.kind, VmmKind::Qemu);
  EXPECT_EQ(found.title, "qemu");
  EXPECT_EQ(found.name, "web1");
  EXPECT_EQ(found.vcpus, 4u);
  EXPECT_EQ(found.memory, std::uint64_t{2} << 30);
  EXPECT_EQ(found.qmp_path, "/run/a,b.sock");
}

TEST(VmmProgram, AnEmulatorsNameTellsTheProcessorUnlessItIsCutOff) {
  const auto processor = [](const char* program) {
    return describe_program(program, {program}, 7).processor;
  };

  EXPECT_EQ(processor("qemu-system-x86_64"), "x86_64");
  EXPECT_EQ(processor("qemu-system-x86_64-microvm"), "x86_64");
  EXPECT_EQ(processor("qemu-system-aarch64"), "aarch64");
  EXPECT_EQ(processor("qemu-system-arm"), "arm");
  EXPECT_EQ(processor("qemu-system-x86"), "");
  EXPECT_EQ(processor("qemu-kvm"), "");
}

TEST(VmmProgram, AMonitorMayHaveItsSocketFromAChardev) {
  const VmmProgram found = qemu({"-chardev", "socket,id=other,path=/no", "-chardev",
                                 "socket,id=mon0,path=/run/m.sock,server=on", "-mon",
                                 "chardev=mon0,mode=control", "-m", "512"});

  EXPECT_EQ(found.qmp_path, "/run/m.sock");
  EXPECT_EQ(found.memory, std::uint64_t{512} << 20);
  EXPECT_EQ(found.name, "qemu-7");
  EXPECT_EQ(found.vcpus, std::nullopt);
}

TEST(VmmProgram, ADomainOfLibvirtsIsNamedAndItsMonitorIsLeftAlone) {
  const VmmProgram found =
      qemu({"-name", "guest=web 1,debug-threads=on", "-chardev",
            "socket,id=charmonitor,path=/var/lib/libvirt/qemu/domain-1-web/monitor.sock,server=on",
            "-mon", "chardev=charmonitor,id=monitor,mode=control"});

  EXPECT_EQ(found.domain, "web 1");
  EXPECT_EQ(found.name, "web_1");
  EXPECT_EQ(found.qmp_path, "");
  EXPECT_EQ(qemu({"-name", "web1"}).domain, "");
}

TEST(VmmProgram, AMonitorThatPeopleTypeInIsNone) {
  EXPECT_EQ(qemu({"-monitor", "unix:/run/hmp.sock,server=on"}).qmp_path, "");
  EXPECT_EQ(
      qemu({"-chardev", "socket,id=m,path=/run/m", "-mon", "chardev=m,mode=readline"}).qmp_path,
      "");
  EXPECT_EQ(qemu({"-qmp", "stdio"}).qmp_path, "");
}

TEST(VmmProgram, AQemuWhoseMemoryArrivesIsToldByItsDescriptor) {
  const FakeProc proc;
  const HostProcess process(7, proc.root());
  const auto waits = [&](const VmmProgram& program) {
    const auto descriptors = process.descriptors().value_or(std::vector<HostProcess::Descriptor>());
    const auto checked = check_memory_is_here(process, program, descriptors);
    return checked ? std::string() : checked.error().message;
  };
  EXPECT_EQ(waits(qemu({})), "") << "nobody may look";
  proc.link(7, "fd/3", "/dev/kvm");
  EXPECT_EQ(waits(qemu({})), "");

  proc.link(7, "fd/4", "anon_inode:[userfaultfd]");

  EXPECT_NE(waits(qemu({})).find("still arrives from another host"), std::string::npos);
  EXPECT_EQ(waits(describe_program("firecracker", {"firecracker"}, 7)), "")
      << "it loads its snapshot by need";
}

TEST(VmmProgram, OthersAreNamedByTheirOwnOptionsOrTheirNumber) {
  EXPECT_EQ(describe_program("firecracker", {"firecracker", "--id", "fn-1"}, 9).name, "fn-1");
  EXPECT_EQ(describe_program("crosvm", {"crosvm", "run", "--name", "a"}, 9).name, "a");
  EXPECT_EQ(describe_program("cloud-hypervisor", {"cloud-hypervisor"}, 9).name,
            "cloud-hypervisor-9");
  EXPECT_EQ(describe_program("", {}, 9).name, "-9");
}

TEST(VmmProgram, ANameMeansNothingInAProbeDescription) {
  EXPECT_EQ(qemu({"-name", "web:1*?/ x"}).name, "web_1____x");
  EXPECT_EQ(qemu({"-name", std::string(500, 'a')}).name.size(), 64u);
}

TEST(VmmProgram, NonsenseSaysNothing) {
  for (const char* memory : {"", "x", "0", "99999999999999999999", "5X", "9999999T"}) {
    EXPECT_EQ(qemu({"-m", memory}).memory, std::nullopt) << memory;
  }
  EXPECT_EQ(qemu({"-smp"}).vcpus, std::nullopt);
  EXPECT_EQ(qemu({"-smp", "-1"}).vcpus, std::nullopt);
}

}  // namespace
}  // namespace ringside::vmm
