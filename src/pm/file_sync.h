// Writes of the journal to an ordinary file that do not go through its mapping. A store through a
// mapping makes all of its folio dirty, and a sync writes a dirty folio as a whole: 2 MiB where the
// kernel has chosen to keep the file so. A write by a descriptor concerns what it writes and
// nothing else, however the file is cached.
#pragma once

#include <cstddef>
#include <functional>

#include "pm/descriptor.h"
#include "pm/file.h"
#include "pm/sync_device.h"

namespace perdix::detail::pm {

class FileSync final : public KernelSync {
 public:
  /// `file`, mapped at `base`, must outlive this. Opens it once more for direct writes, if its file
  /// system can do that. `reaches_file()`: whether what is written may reach the file; false before
  /// the mapping shows zeros for a page that its device has lost. It throws nothing.
  FileSync(const File& file, std::byte* base, std::function<bool()> reaches_file) noexcept;
  ~FileSync() override { direct_.close(); }
  FileSync(const FileSync&) = delete;
  FileSync& operator=(const FileSync&) = delete;

  /// Takes the first of these ways that the file system has, and whose descriptor the program has
  /// not closed: a direct write, a buffered write with a sync of just that range, the mapping. That
  /// is also the way of what may not reach the file: it is private then, or will be.
  int write(void* to, const std::byte* from, std::size_t bytes) noexcept override;

 private:
  enum class Way { direct, buffered, mapped };

  int write_by(Way way, std::size_t offset, const std::byte* from,
               std::size_t bytes) const noexcept;

  const File& file_;
  std::byte* const base_;
  const std::function<bool()> reaches_file_;
  Descriptor direct_;
  Way way_;
};

}  // namespace perdix::detail::pm
