// A pool's file: opened with the checks that an untrusted path needs, grown with space that is
// really allocated, and created so that its name appears only when it is whole.
//
// Every failure is an Error that names the file and says what to do. So is every use of it after
// the program has closed its descriptor (pm/descriptor.h): io_error, and no other file is touched.
// Not thread-safe; the owner of a pool serialises growth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "pm/descriptor.h"

namespace perdix::detail::pm {

/// Identifies a file among all others, copies of it included. It outlives renaming, and on a
/// disk also the machine's runs, but for `device`, which the kernel numbers anew at each.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;  ///< 0: unknown
  std::uint64_t birth = 0;  ///< nanoseconds; 0: the file system doesn't say. Tells a file from one
                            ///< that had the same inode before it
};

/// Bytes [begin, end) of a file.
struct FileRange {
  std::uint64_t begin;
  std::uint64_t end;
};

class File {
 public:
  /// Opens an existing regular file for reading and writing. Throws not_found, not_a_pool (a
  /// directory, device, pipe or socket), io_error (no permission, a loop of symbolic links, ...),
  /// invalid_argument (the path has a NUL byte).
  static File open(const std::filesystem::path& path);

  /// Makes a new, empty file of mode 0600. Where it can, it has no name before publish(), so a
  /// crash leaves nothing behind; elsewhere it stands at its path from the start. Where the file
  /// system can, stores to it never need new space (btrfs: no copy on write).
  /// Throws already_exists, not_found (no such directory), io_error, invalid_argument as open().
  static File create(const std::filesystem::path& path);

  /// The variant of create() that is used where files can't be nameless: the file system has no
  /// such files, or /proc, which is needed to name them, is not mounted.
  static File create_in_place(const std::filesystem::path& path);

  File(File&& other) noexcept;
  File& operator=(File&&) = delete;

  /// Closes; a created file that was not published is removed.
  ~File() { close(); }

  /// Gives a created file its name, atomically, and makes the name durable. Throws already_exists
  /// or io_error, and then the name is gone again. Needs one more file descriptor for a moment.
  void publish();

  /// Closes early. Only path() may be called afterwards.
  void close() noexcept;

  /// Whether the descriptor still leads to the file. Async-signal-safe.
  bool is_ours() const noexcept { return descriptor_.is_ours(); }

  /// Throws io_error if not.
  void require_ours() const;

  /// Its descriptor, to be used at once. Throws as require_ours().
  int fd() const {
    require_ours();
    return descriptor_.number();
  }

  const Descriptor& descriptor() const noexcept { return descriptor_; }
  const std::filesystem::path& path() const noexcept { return path_; }

  /// Bytes of the file.
  std::uint64_t size() const;

  /// The file's identity.
  FileId id() const;

  /// Makes the file `size` bytes long, every byte with space on the device, so that no later store
  /// can fail; on tmpfs as huge pages, if it gives them and `huge_pages` says so (which costs
  /// milliseconds for each 16 MiB). Throws out_of_space (nothing changed) or io_error.
  void allocate(std::uint64_t size, bool huge_pages = true);

  /// True unless every byte of the file has space on the device: a copy may have skipped zeros.
  bool has_holes() const;

  /// Gives the holes in these ranges their space. Throws as allocate(), and before anything is
  /// filled if the file system has not enough left for all of them.
  void fill_holes(std::span<const FileRange> ranges);

  /// True if a store to a page that has space may need new space all the same, and raise SIGBUS if
  /// there is none: the file system copies on write (btrfs, unless the file is exempt), or another
  /// file shares extents with this one (a reflink copy or a snapshot). Cost: asks for all extents.
  bool may_copy_on_write() const;

  /// Cuts the file off.
  void truncate(std::uint64_t size);

  /// Waits until contents and size are on the device, stores through a mapping included.
  void sync();

  /// Makes this moment the time of the last change, for programs that copy what has changed: stores
  /// through a mapping of tmpfs or DAX leave the times as they are. Advice: a failure is no error.
  void set_times() const noexcept;

  /// Makes the kernel drop its cached pages of the file, once all pages that it knows to be dirty
  /// are on the device: later reads return the content of the device. Without effect on files that
  /// have no device. Throws io_error. Cost: writes what is dirty; the first reads of all pages come
  /// from the device.
  void forget_cached();

  /// Reads up to n bytes at an offset; returns how many there were.
  std::size_t read(std::uint64_t offset, void* to, std::size_t n) const;

  /// True if the contents live in memory anyway (tmpfs, hugetlbfs), so that touching a page costs
  /// no device write.
  bool in_memory() const;

 private:
  enum class State { named, nameless, unpublished };

  File(int fd, std::filesystem::path path, State state)
      : descriptor_(fd), path_(std::move(path)), state_(state) {}

  std::uint64_t allocated() const;
  std::uint64_t available() const;
  void give_name();
  void give_space(std::uint64_t begin, std::uint64_t end);

  Descriptor descriptor_;
  std::filesystem::path path_;
  State state_;
};

}  // namespace perdix::detail::pm
