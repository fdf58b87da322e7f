// The allocators that figure "allocator" compares. Each does what a structure modification of
// NbTree needs of one: the blocks of one or two new leaves, in place of that of an old one.
//
// What a provider gives out is told apart by a number, and is not written to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <perdix/pool.h>

namespace perdix::bench::figures {

/// A structure modification of an index into which keys are only inserted.
struct Replacement {
  std::array<std::size_t, 2> fresh{};  ///< bytes of the new blocks; 0: there is one only
  std::size_t old = 0;                 ///< bytes of the one that goes
  bool split() const { return fresh[1] != 0; }
};

class Provider {
 public:
  using BlockId = std::uint64_t;

  virtual ~Provider() = default;
  virtual std::string name() const = 0;

  /// A block that is there before anything is measured.
  virtual BlockId allocate(std::size_t bytes) = 0;

  /// Allocates what is new and frees `old`.
  virtual std::array<BlockId, 2> replace(const Replacement& replacement, BlockId old) = 0;
};

/// How many blocks a provider may have to give out, and how large they are at most.
struct Capacity {
  std::uint64_t blocks = 0;
  std::size_t bytes = 0;

  /// Of a pool that never has to grow, which would cost each allocator the same.
  std::uint64_t pool_bytes() const { return (64 << 20) + blocks * (bytes + 128); }
};

/// Calloc in a separate pool, with NbTree's ledger: what the index itself does.
std::unique_ptr<Provider> calloc_provider(const std::filesystem::path& directory, Capacity capacity,
                                          DomainChoice domain);

/// Addresses one after the other, and nothing is freed or remembered: the paper's naive allocator.
std::unique_ptr<Provider> naive_provider();

/// libpmemobj. Null where it is not installed.
std::unique_ptr<Provider> pmemobj_provider(const std::filesystem::path& directory,
                                           Capacity capacity);

/// What libpmemobj does in this process, which was decided before main(): writes lines back if the
/// environment has PMEM_NO_FLUSH=0.
DomainChoice pmemobj_domain();

}  // namespace perdix::bench::figures
