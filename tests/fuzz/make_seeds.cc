// Writes first inputs for the fuzz targets: make_seeds FOLDER. D programs go to FOLDER/d, what they
// compile to into FOLDER/dof. Fire context: no.
#include <filesystem>
#include <fstream>
#include <string>

#include "dif/d/testing/program_runner.h"
#include "dif/dof.h"

namespace {

constexpr const char* kPrograms[] = {
    "BEGIN { trace(1); exit(0); }",
    "BEGIN { printf(\"%d %s\", pid, execname); }",
    "fbt::vfs_read:entry /execname == \"workload\"/ { @[execname, pid] = count(); }",
    "fbt::vfs_read:entry { @q = quantize(arg0); @l = lquantize(arg2, -10, 10, 2); }",
    "fbt::vfs_read:entry { self->t = timestamp; this->s = stringof(args[1]->comm); }"
    "fbt::vfs_read:return /self->t/ { @ = avg(timestamp - self->t); self->t = 0; }",
    "BEGIN { a[1, \"x\"] = 2; a[2, \"y\"] = a[1, \"x\"] + 1; trace(a[2, \"y\"]); }",
    "BEGIN { s = strjoin(\"ab\", lltostr(7)); trace(substr(s, 1)); trace(strtok(s, \"b\")); }",
    "BEGIN { trace(basename(\"/a/b\")); trace(dirname(\"/a/b\")); trace(cleanpath(\"/a/../b\")); }",
    "BEGIN { trace(json(\"{\\\"a\\\": [1, {\\\"b\\\": \\\"x\\\\u0041\\\"}]}\", \"a[1].b\")); }",
    "BEGIN { p = (int *)alloca(16); *p = 3; p[1] = 4; trace(*p + p[1]); tracemem(p, 8); }",
    "fbt::vfs_read:entry { trace(copyinstr(arg3)); trace(inet_ntoa((unsigned int *)arg1)); }",
    "fbt::vfs_read:entry { trace(args[1]->balance); trace(`number); x += arg0 / arg2; }",
    "BEGIN { x = 3; if (x > 2) { trace(1); } else { trace(\"two\"); } }",
    "BEGIN { for (i = 0; i < 4; i++) { trace(i); } }",
    "BEGIN { @a[1] = sum(2); @b[1] = max(3); printa(@a, @b); clear(@a); trunc(@b, 1); }",
    "BEGIN { id = speculation(); } tick-1s { speculate(id); trace(1); } END { commit(id); }",
    "fbt::vfs_read:entry { stack(); ustack(3); @[stack(4)] = count(); }",
    "BEGIN { trace(strtoll(\"0x1f\", 16)); trace(index(\"abc\", \"c\")); trace(rand() % 2); }",
    "struct s { int a; char b[4]; }; struct s v; BEGIN { v.a = 1; print(v); trace(sizeof(v)); }",
    "BEGIN { *(int *)0; } ERROR { trace(arg4); }",
};

void write(const std::filesystem::path& path, const char* bytes, std::size_t size) {
  std::ofstream(path, std::ios::binary).write(bytes, static_cast<std::streamsize>(size));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace ringside;
  if (argc != 2) return 2;
  const std::filesystem::path folder(argv[1]);
  std::filesystem::create_directories(folder / "d");
  std::filesystem::create_directories(folder / "dof");
  int number = 0;
  for (const std::string source : kPrograms) {
    const std::string name = std::to_string(number++);
    write(folder / "d" / name, source.data(), source.size());
    d::FakeKernel kernel;
    const auto program = d::compile(source, {}, kernel);
    if (!program) continue;
    const auto bytes = dif::write_dof(*program);
    // SAFETY: char may alias.
    write(folder / "dof" / name, reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
}
