#include "cli/program/preprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>

#include "cli/guest/host_program.h"
#include "vmm/base/process.h"
#include "vmm/base/unique_fd.h"

namespace ringside::cli {
namespace {

std::string as_identifier(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

/// The name of the file in a line marker; a name cannot end it.
std::string in_quotes(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    if (c != '\n') text += c;
  }
  return '"' + text + '"';
}

Result<std::string> contents(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) {
    return fail(ErrorCode::Io, fmt::format("cpp: {}", std::strerror(errno)));
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count =
        pread(fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (count <= 0) return fail(ErrorCode::Io, "cpp: its output cannot be read");
    done += static_cast<std::size_t>(count);
  }
  return text;
}

}  // namespace

std::vector<std::string> preprocessor_arguments(const PreprocessorSettings& settings,
                                                std::string_view folder, std::string_view system,
                                                std::string_view release) {
  using Conformance = PreprocessorSettings::Conformance;
  const auto [major, minor, micro] = kLanguageVersion;
  std::vector<std::string> words{
      "-D__SUNW_D=1",
      fmt::format("-D__SUNW_D_VERSION=0x{:08x}", major << 24 | minor << 12 | micro),
      fmt::format("-D__{}_{}=1", as_identifier(system), as_identifier(release)),
      // Ours by C's old custom, but names of modules and variables in D.
      "-Ulinux",
      "-Uunix",
      // Or the system's headers would be GNU C. Words of it that they use all the same, and the two
      // that hold functions with bodies, go as well.
      "-U__GNUC__",
      "-D__attribute__(x)=",
      "-D__extension__=",
      "-D__signed__=signed",
      "-D__builtin_va_list=void*",
      "-D_BITS_BYTESWAP_H=1",
      "-D_BITS_UINTN_IDENTITY_H=1",
      "-iquote",
      std::string(folder.empty() ? "." : folder),
  };
  if (settings.conformance == Conformance::Strict) words.emplace_back("-std=c99");
  if (settings.conformance == Conformance::Traditional) words.emplace_back("-traditional-cpp");
  if (settings.list_headers) words.emplace_back("-H");
  words.insert(words.end(), settings.definitions.begin(), settings.definitions.end());
  words.insert(words.end(), settings.arguments.begin(), settings.arguments.end());
  words.emplace_back("-");
  return words;
}

Result<std::string> preprocess(std::string_view text, const std::string& file,
                               const PreprocessorSettings& settings) {
  utsname host{};
  uname(&host);
  const std::size_t slash = file.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "." : file.substr(0, slash + 1);
  std::vector<std::string> words =
      preprocessor_arguments(settings, folder, host.sysname, host.release);
  words.insert(words.begin(), settings.path);

  const UniqueFd input = TRY(memory_file(fmt::format("# 1 {}\n{}\n", in_quotes(file), text)));
  const UniqueFd output = TRY(memory_file({}));
  pid_t pid = 0;
  if (const int problem = spawn_program(pid, settings.path, words, input.get(), output.get());
      problem != 0) {
    return fail(ErrorCode::NotFound,
                fmt::format("cannot run the C preprocessor {}: {} (install the package cpp, or "
                            "name another with -x cpppath)",
                            settings.path, std::strerror(problem)));
  }
  const int status = await_child(pid).value_or(0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
    return fail(ErrorCode::NotFound,
                fmt::format("cannot run the C preprocessor {} (install the package cpp, or name "
                            "another with -x cpppath)",
                            settings.path));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return fail(ErrorCode::Compile, "Preprocessor failed to process input program");
  }
  return contents(output.get());
}

}  // namespace ringside::cli
