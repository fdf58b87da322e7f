// For the tests of pools: small options, and edits of a pool's file behind its back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "pm/test_files.h"
#include "pool/directory.h"
#include "pool/layout.h"
#include "pool/pool_core.h"
#include "pool/superblock.h"

namespace perdix::detail::pool {

/// Few addresses, so that sanitizers can shadow them.
inline PoolOptions small_options() {
  PoolOptions options;
  options.max_size = 8 * kGrowthUnit;
  return options;
}

inline std::vector<char> read_bytes(const std::filesystem::path& path, std::uint64_t offset,
                                    std::size_t n) {
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  std::vector<char> bytes(n);
  in.read(bytes.data(), static_cast<std::streamsize>(n));
  return bytes;
}

inline void write_bytes(const std::filesystem::path& path, std::uint64_t offset, const void* bytes,
                        std::size_t n) {
  std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(static_cast<std::streamoff>(offset));
  out.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(n));
  out.flush();
  ASSERT_TRUE(out.good());
}

template <class T>
T read_struct(const std::filesystem::path& path, std::uint64_t offset) {
  T value;
  std::memcpy(&value, read_bytes(path, offset, sizeof(T)).data(), sizeof(T));
  return value;
}

inline Superblock read_copy(const std::filesystem::path& path, int copy) {
  return read_struct<Superblock>(path, kSuperblockOffset[copy]);
}

/// Changes both copies and makes their checksums right again.
template <class Change>
void edit_superblock(const std::filesystem::path& path, Change change) {
  for (int copy : {0, 1}) {
    Superblock superblock = read_copy(path, copy);
    change(superblock);
    superblock.checksum = checksum_of(superblock);
    write_bytes(path, kSuperblockOffset[copy], &superblock, sizeof(superblock));
  }
}

inline void flip(const std::filesystem::path& path, std::uint64_t offset, std::uint8_t bits) {
  char byte = read_bytes(path, offset, 1)[0];
  byte = static_cast<char>(byte ^ bits);
  write_bytes(path, offset, &byte, 1);
}

inline pm::Offset entry_offset(std::size_t slot) {
  return kDirectoryOffset + slot * sizeof(DirectoryEntry);
}

/// Gives an index a new block in place of the one that its root names, with one word of contents:
/// the smallest crash-atomic operation of an engine.
inline void replace_root_block(const IndexHandle& index, std::uint64_t bytes, std::uint64_t word) {
  PoolCore& core = index.pool();
  alloc::Session session = core.allocator().session();
  const pm::Offset block = session.reserve(bytes);
  core.pm().store(*core.at<std::uint64_t>(block), word);
  core.pm().flush(core.at<std::uint64_t>(block), sizeof(word));  // log() fences
  if (index.root() != pm::kNull) session.free(index.root());
  session.commit_when(index.root(), ~std::uint64_t{0}, block);
  session.log();
  core.pm().publish(index.root(), block);
  session.finish();
}

inline std::vector<pm::Offset> allocated_blocks(PoolCore& core) {
  std::vector<pm::Offset> blocks;
  core.allocator().for_each_allocated(
      [&](pm::Offset block, std::uint64_t) { blocks.push_back(block); });
  return blocks;
}

/// The blocks that indexes reach, as allocated_blocks() should find them.
template <class Handles>
std::vector<pm::Offset> roots_of(const Handles& handles) {
  std::vector<pm::Offset> roots;
  for (const auto& handle : handles) {
    if (handle->root() != pm::kNull) roots.push_back(handle->root());
  }
  std::sort(roots.begin(), roots.end());
  return roots;
}

/// A closed pool with two indexes, "first" and "second".
inline void make_pool(const std::filesystem::path& path) {
  const auto core = PoolCore::create(path, small_options());
  core->open_index("first", "sptree", Kind::u64, Kind::bytes);
  core->open_index("second", "nbtree", Kind::bytes, Kind::u64);
  core->close();
}

}  // namespace perdix::detail::pool
