// The texts about the command line.
#include <fmt/format.h>

#include <string_view>

#include "cli/messages.h"
#include "cli/options/options.h"

namespace ringside::cli {
namespace {

constexpr std::string_view kSynopsis =
    "[-32|-64] [-aABCdeFGhHlOqSvVwZ] [-b bufsz] [-c cmd] [-D name[=def]]\n"
    "\t[-I path] [-L path] [-o output] [-p pid] [-s script] [-U name]\n"
    "\t[-x opt[=val]] [-X a|c|s|t] [--image name | --kernel file | --attach target]\n"
    "\t[--help]\n"
    "\n"
    "\t[-P provider %]\n"
    "\t[-m [ provider: ] module %]\n"
    "\t[-f [[ provider: ] module: ] func %]\n"
    "\t[-n [[[ provider: ] module: ] func: ] name %]\n"
    "\t[-i probe-id %] [ args ... ]\n"
    "\n"
    "\twhere % is a predicate and an action in D, either of which may be missing\n";

constexpr std::string_view kHelp = R"(
Commands; without one, a program is traced:
  vms               list the machines of this host that there are to attach to
  why TARGET        what the CPUs and tasks of a guest that hangs do, who waits
                    for whom, the likely cause; why --core FILE: of a saved one
  stats [NAME...]   the figures of traces that run: firings, misses, drops,
                    pauses, how long the guests waited
  clean TARGET...   take out what a ringside that was killed has left in them
  clean --cache     remove what is kept of kernels to attach quicker next time
  examples [NAME]   list the scripts that come with ringside, or show one with
                    its sample output
  compile -o FILE [options]   compile and verify, and write FILE (DOF)
  run FILE [options]          load FILE, verify it again, and trace with it
  help              this text, as --help; --version names the program's version
vms, why and stats take -O json, for programs. A TARGET is what --attach takes.

Programs (each may be given several times; D may follow a description):
  -n [[[provider:]module:]function:]name [/predicate/] [{ actions }]
  -f, -m, -P, -i    the same by function, module, provider or probe id
  -s FILE           a D script; further words are its $1, $2...
  -C                run cpp over them first; -D NAME[=VALUE] -U NAME -I DIR as
                    there, -H lists the headers, -X a|c|s|t chooses the C
  -L DIR            D libraries besides ours: all *.d of a folder

Tasks:
  -l  list the probes they match (all without a program); with -v stability and
      argument types
  -e  compile, then exit        -S  print the compiled DIF on stderr
  -v  report their stability    -d  print them without if, else and loops
  -V  print the version of D    -h, -G (USDT for native builds) are refused
  -c COMMAND        run COMMAND: with a guest in its shell, else on this host;
                    held until tracing is on; its pid is $target; tracing ends
                    with it
  -p PID            a process of this host: $target; tracing ends with it

How:
  -q  print only what the program asks for
  -w  allow destructive actions
  -F  indent by function entry and return
  -Z  allow descriptions that match nothing
  -o FILE           append the output to FILE
  -b SIZE           buffer size per CPU
  -O [json|jsonl|xml|html|csv]   structured output (also -x oformat=..., and
                    FreeBSD's --libxo WORDS); all aggregations at the end
  -x NAME[=VALUE]   set one of dtrace's options; a variable
                    DTRACE_OPT_NAME=VALUE presets it
  -32 -64 -a -A -B are dtrace's; each works here or says why it cannot

The machine (none: only probes that need no guest):
  --image NAME      a guest that images/build made; each --image or --kernel is
                    one more machine, whose own options follow after commas:
                    NAME,name=web,cpus=2,memory=1g
  --kernel FILE [--initrd FILE] [--append STRING]
  --cpus N  --memory SIZE  --machine auto|kvm|qemu|qemu-kvm  --qemu PATH
  --keep            leave the guest running (qemu)
  --as-is           set no memory aside in the guest: the stub goes where it
                    finds room (qemu)
  --attach TARGET   a machine that runs already, and is left as it was found;
                    may be given several times. TARGET is one of
        pid:N       a process that runs a guest by KVM
        qmp:PATH    a QEMU's monitor. It serves one client at a time, so start
                    QEMU with one for ringside, and a second for its owner:
                      -qmp unix:PATH,server=on,wait=off
                      -qmp unix:OTHER,server=on,wait=off
        NAME        a libvirt domain, also URI?name=NAME
                    then ,name=NAME and ,ivshmem (plug a card with room for the
                    stub into the guest)
  --types FILE      of a kernel that carries no types (BTF): a vmlinux of the
                    same build that has them, or BTF alone; also with why,
                    clean and --core
  --core FILE       a saved guest: an ELF core or compressed dump (snapshot(),
                    kdump, dump-guest-memory), a raw RAM file, a libvirt save
                    image or a QEMU migration stream. BEGIN and END fire over it
  -x bootargs=STRING        as --append
  -x channel=auto|spin|exit how traps reach ringside
  -x pollthreads=N          threads that look for traps (1), on channel spin
  -x jumpprobes[=no]        probes are jumps instead of breakpoints, where they
                            may be (yes; --attach, --keep: no)
  -x maxrate=N/s  -x maxslow=PCT   over so many traps a second, or such a share
                    of a vCPU's time in traps, the hottest probes are taken out
                    (--attach: 95)

With --machine kvm, our own VMM, a guest is traced from its first instruction;
with -c or --after-boot once it has booted:
  --disk FILE[,ro]  a raw file as a virtio disk; may be given several times
  --console         the terminal is the guest's console; Ctrl-A x ends it
  --boot auto|pvh|bzimage   how a kernel file is started
  --kvm-device PATH         instead of /dev/kvm
)";

}  // namespace

std::string usage_text() {
  return fmt::format("Usage: {} {}", program_name(), kSynopsis);
}

std::string help_text() {
  return fmt::format("Usage: {0} [options] [script arguments]\n       {0} COMMAND ...\n{1}",
                     program_name(), kHelp);
}

}  // namespace ringside::cli
