#include "pool/origin.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>
#include <random>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include <perdix/pool.h>

#include "pm/probe.h"
#include "pool/superblock.h"
#include "util/checksum.h"

namespace perdix::detail::pool {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// The name of an inode among all that this run of the machine has had, or 0: it may not be of this
/// run, or the kernel doesn't tell.
std::uint64_t witness(const char* path, int fd) {
  struct statfs system {};
  const bool found = path[0] == '\0' ? ::fstatfs(fd, &system) == 0 : ::statfs(path, &system) == 0;
  if (!found || system.f_type != TMPFS_MAGIC) return 0;
  constexpr std::size_t kMaxHandleBytes = 64;
  alignas(file_handle) std::array<std::byte, sizeof(file_handle) + kMaxHandleBytes> buffer{};
  auto& handle = *new (buffer.data()) file_handle;
  handle.handle_bytes = kMaxHandleBytes;
  int mount = 0;
  if (::name_to_handle_at(fd, path, &handle, &mount, path[0] == '\0' ? AT_EMPTY_PATH : 0) != 0)
    return 0;
  return std::max<std::uint64_t>(util::checksum(handle.f_handle, handle.handle_bytes), 1);
}

/// The file itself if it lies in memory, then directories that most systems have.
std::vector<std::uint64_t> witnesses(const pm::File& file) {
  std::vector<std::uint64_t> found;
  const auto add = [&](std::uint64_t one) {
    if (one != 0) found.push_back(one);
  };
  add(witness("", file.fd()));
  for (const char* path : {"/dev/shm", "/run", "/dev", "/tmp"}) add(witness(path, AT_FDCWD));
  return found;
}

/// A hash of the id of a file system, or 0: it has none.
std::uint32_t name_of(const struct statfs& system) {
  static_assert(sizeof system.f_fsid == sizeof(std::uint64_t));
  std::uint64_t id = 0;
  std::memcpy(&id, &system.f_fsid, sizeof id);
  if (id == 0) return 0;
  return std::max<std::uint32_t>(static_cast<std::uint32_t>(util::checksum(&id, sizeof id)), 1);
}

std::uint32_t file_system_of(const pm::File& file) {
  struct statfs system {};
  return ::fstatfs(file.fd(), &system) == 0 ? name_of(system) : 0;
}

/// A path of /proc/self/mountinfo, where spaces and the like are octal: "\040".
std::string unescaped(const std::string& text) {
  std::string path;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = static_cast<unsigned char>(text[i]);
    if (text[i] == '\\' && std::sscanf(text.c_str() + i + 1, "%3o", &byte) == 1) i += 3;
    path += static_cast<char>(byte);
  }
  return path;
}

/// Whether this process sees a file system of that name mounted as that device.
bool is_mounted(std::uint64_t device, std::uint32_t file_system) {
  const pm::StandardDescriptors taken;
  std::ifstream mounts("/proc/self/mountinfo");
  const std::string wanted = fmt::format("{}:{}", major(device), minor(device));
  for (std::string line; std::getline(mounts, line);) {
    std::string id, parent, number, root, point;
    std::istringstream(line) >> id >> parent >> number >> root >> point;
    struct statfs system {};
    if (number == wanted && ::statfs(unescaped(point).c_str(), &system) == 0 &&
        name_of(system) == file_system)
      return true;
  }
  return false;
}

BootId boot_id_of(const Superblock& superblock) {
  BootId id;
  std::copy(std::begin(superblock.boot_id), std::end(superblock.boot_id), id.begin());
  return id;
}

}  // namespace

BootId current_boot_id() {
  const pm::StandardDescriptors taken;
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string text;
  in >> text;
  BootId id{};
  std::size_t digits = 0;
  for (const char c : text) {
    const int digit = hex_digit(c);
    if (digit < 0) continue;  // the dashes between the groups
    if (digits == 2 * id.size()) return BootId{};
    id[digits / 2] = static_cast<std::uint8_t>(id[digits / 2] * 16 + digit);
    ++digits;
  }
  return digits == 2 * id.size() ? id : BootId{};
}

bool same_boot(const BootId& a, const BootId& b) noexcept { return a == b && a != BootId{}; }

std::array<std::uint8_t, 16> random_uuid() {
  std::random_device device;
  std::array<std::uint8_t, 16> uuid{};
  for (std::uint8_t& byte : uuid) byte = static_cast<std::uint8_t>(pm::on_draw(device()));
  uuid[6] = static_cast<std::uint8_t>((uuid[6] & 0x0f) | 0x40);  // RFC 4122, version 4: random
  uuid[8] = static_cast<std::uint8_t>((uuid[8] & 0x3f) | 0x80);
  return uuid;
}

// While a probe watches, images of a crash lie in other files than the pool that crashed, and runs
// are repeated.
Origin::Origin(const BootId& boot, const pm::File& file)
    : boot_(boot),
      witnesses_(witnesses(file)),
      file_(file.id()),
      file_system_(file_system_of(file)) {
  if (pm::files_have_identity()) return;
  witnesses_.clear();
  file_ = {};
  file_system_ = 0;
}

bool Origin::same_run(const Superblock& superblock) const {
  const BootId before = boot_id_of(superblock);
  if (before != BootId{} && boot_ != BootId{}) return same_boot(before, boot_);
  return superblock.boot_witness != 0 && std::find(witnesses_.begin(), witnesses_.end(),
                                                   superblock.boot_witness) != witnesses_.end();
}

bool Origin::same_file(const Superblock& superblock) const {
  if (file_.inode == 0) return true;
  const bool known_birth = superblock.file_birth != 0 && file_.birth != 0;
  if (superblock.file_inode != file_.inode) return false;
  if (known_birth && superblock.file_birth != file_.birth) return false;
  // A `power` pool may be found after another boot, when devices have other numbers; and a snapshot
  // of its device is what a power failure would have left.
  if (!process_only(superblock) || superblock.file_device == file_.device) return true;
  // Unmounting has written all of a `process` pool, or its pages are still in memory.
  return known_birth && file_system_ != 0 && superblock.file_system == file_system_ &&
         !is_mounted(superblock.file_device, file_system_);
}

void Origin::store(Superblock& superblock) const {
  std::copy(boot_.begin(), boot_.end(), superblock.boot_id);
  superblock.boot_witness = witnesses_.empty() ? 0 : witnesses_.front();
  superblock.file_device = file_.device;
  superblock.file_inode = file_.inode;
  superblock.file_birth = file_.birth;
  superblock.file_system = file_system_;
}

}  // namespace perdix::detail::pool
