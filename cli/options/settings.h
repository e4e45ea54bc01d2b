// Settings: what -x, #pragma D option, setopt() and DTRACE_OPT_ variables can set, by the rows of
// options.def.
// Does not: know the command line's own letters (options.h).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dif/program/options.h"
#include "dif/program/program.h"
#include "dif/program/stability.h"
#include "providers/budget/budget.h"
#include "providers/fire/channel.h"
#include "vmm/base/result.h"

namespace ringside::cli {

/// How records and aggregations are written: dtrace's text, one of the structured forms, or a
/// picture.
enum class OutputFormat : std::uint8_t {
  Text,
  Json,
  JsonLines,
  Xml,
  Html,
  Csv,
  Folded,
  Flame,
  Speedscope,
  Heatmap,
  Perfetto
};

/// -C: what the C preprocessor is given besides dtrace's own definitions.
struct PreprocessorSettings {
  enum class Conformance : std::uint8_t { Default, Strict, Traditional };
  bool wanted = false;                 // cpp, -C
  bool list_headers = false;           // cpphdrs, -H
  std::string path = "cpp";            // cpppath
  std::vector<std::string> arguments;  // cppargs, one word each
  // -D, -U and -I (define, undef, incdir), in the order given: "-DNAME=VALUE".
  std::vector<std::string> definitions;
  Conformance conformance = Conformance::Default;  // stdc, -X
};

struct Settings {
  // Compile time.
  bool default_arguments = false;  // defaultargs
  bool unused_arguments = false;   // argref: $1... need not all be used
  bool empty = false;              // empty
  bool error_tags = false;         // errtags
  bool zero_matches = false;       // zdefs, -Z
  bool show_dif = false;           // verbose, -S
  bool debug = false;              // debug: what took how long
  bool show_desugared = false;     // tree=8, -d
  PreprocessorSettings preprocessor;
  bool no_libraries = false;                         // nolibs
  std::string system_library_folder;                 // syslibdir; empty: ours
  std::vector<std::string> library_folders;          // libdir, -L
  std::optional<dif::Attributes> attribute_minimum;  // amin
  unsigned integer_registers = dif::kRegisters;      // iregs
  unsigned tuple_registers = dif::kTupleSlots;       // tregs
  std::optional<std::array<unsigned, 3>> version;    // version
  std::string c_dictionary, d_dictionary;            // ctypes, dtypes: files to write
  std::uint32_t stack_frames = 20;                   // stackframes
  std::uint32_t user_stack_frames = 100;             // ustackframes
  std::uint32_t java_stack_frames = 50;              // jstackframes
  std::uint32_t java_string_size = 512;  // jstackstrsize: names are looked up when printed, so no
                                         // firing needs it
  std::uint32_t most_frames = 2048;      // maxframes: bounds the three above
  std::vector<std::pair<std::string, std::string>> environment;  // setenv, for -c
  std::vector<std::string> removed_environment;                  // unsetenv
  // Fixed once tracing starts.
  bool destructive = false;                                     // -w
  providers::Channel channel = providers::Channel::Auto;        // channel: how traps reach us
  std::uint32_t poll_threads = 1;                               // pollthreads: that look for traps
  providers::Recording recording = providers::Recording::Auto;  // record: which traps do not wait
  providers::RecordFull record_full = providers::RecordFull::Wait;  // recordfull: of such rings
  std::optional<bool> jump_probes;    // jumpprobes: where they may be jumps
  providers::Budget budget;           // maxrate, maxslow
  std::string boot_arguments;         // bootargs: added to the kernel's
  std::vector<std::string> sysroots;  // sysroot, --sysroot: with files of the guests
  dif::EngineOptions engine;
  std::string packet_file;                   // pcapfile: what pcap() writes; empty: none
  bool quiet_resize = false;                 // quietresize: no word about it
  OutputFormat format = OutputFormat::Text;  // oformat
  bool print_all_aggregations = false;       // -O
  bool record_threads = false;               // threads
  bool merge_aggregations = false;           // aggmerge: those of several machines are one
  bool raw_user_addresses = false;           // noresolve
  bool demangle = true;
  bool raw_text = false;  // rawtext: a terminal gets text as it is
  bool testing = false;   // _DTRACE_TESTING: no CPU and ID columns
  // May change at any time.
  bool drop_tags = false;                           // droptags
  bool flow_indent = false;                         // -F
  bool quiet = false;                               // -q
  bool raw_bytes = false;                           // rawbytes
  std::uint64_t print_size = UINT64_MAX;            // printsize: bytes that print() shows
  bool sort_by_key = false, sort_reversed = false;  // aggsortkey, aggsortrev
  std::size_t sort_position = 0;                    // aggsortpos: which aggregation of a printa
  std::size_t sort_key_position = 0;                // aggsortkeypos: which key comes first
  bool aggregation_histogram = false;               // agghist
  bool aggregation_pack = false;                    // aggpack
  bool aggregation_zoom = false;                    // aggzoom
  bool utf8 = false;                                // encoding: what aggpack may draw with
  std::size_t stack_indent = 14;                    // stackindent: columns
  std::chrono::nanoseconds switch_interval = std::chrono::seconds(1);     // switchrate
  std::chrono::nanoseconds aggregate_interval = std::chrono::seconds(1);  // aggrate
  std::chrono::nanoseconds status_interval = std::chrono::seconds(1);     // statusrate
  std::optional<std::chrono::nanoseconds> meanwhile_interval;             // meanwhile
  bool sealed = false;  // sealed: what programs may not ask for is refused
};

/// The D that we speak, as illumos counts it: major, minor, micro.
inline constexpr std::array<unsigned, 3> kLanguageVersion{1, 13, 0};
/// "1.13", or "1.13.1" where there is a micro.
std::string language_version_text();

/// The one that sets an option. The table says which sources may set which option.
enum class OptionSource : std::uint8_t {
  CommandLine = 1,   // -x and the environment
  Program = 2,       // #pragma D option
  SavedProgram = 4,  // a pragma that was compiled into a file
  Setopt = 8,        // setopt(), while tracing
};

/// Sets one option by dtrace's name. `value` is empty where none was given. The error is one line
/// in dtrace's words, to stand after "failed to set -x NAME: ". An option that can mean
/// nothing here is ErrorCode::Unsupported, with the reason. An error leaves the settings as they
/// were.
Result<void> apply_option(Settings& settings, std::string_view name, std::string_view value,
                          OptionSource source);

/// "name" or "name=value", as -x takes it; the error's line is whole.
Result<void> apply_option_argument(Settings& settings, std::string_view argument);

/// The names that parse_output_format() takes, for messages.
inline constexpr std::string_view kOutputFormats =
    "text, json, jsonl, xml, html, csv, folded, flame, speedscope, heatmap and perfetto";
/// "text", "json"...; empty when it is none.
std::optional<OutputFormat> parse_output_format(std::string_view name);
/// Whether the form is a picture (cli/pictures).
bool is_picture(OutputFormat format);
/// Whether it is a picture that is one document, which cannot be appended to another.
bool is_drawn_whole(OutputFormat format);

}  // namespace ringside::cli
