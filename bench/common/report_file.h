// Files that reports are written to.
#pragma once

#include <filesystem>
#include <fstream>
#include <ostream>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::bench {

/// Calls write(stream) for the file at `path`; nothing if that is empty. Throws io_error.
template <class Write>
void write_file(const std::filesystem::path& path, Write write) {
  if (path.empty()) return;
  std::ofstream file(path);
  write(file);
  file.flush();
  if (!file)
    throw Error(Errc::io_error,
                fmt::format("can't write {}; check the path and the space", path.string()));
}

/// A run takes minutes, so unwritable paths are reported before it starts.
inline void require_writable(const std::filesystem::path& path) {
  write_file(path, [](std::ostream&) {});
}

}  // namespace perdix::bench
