// What a crash may leave: the device of one persistence domain, fed with the events of a trace.
//
// Memory is divided into units, lines of 64 bytes. Each unit has a last persisted version and one
// more for each store since (a prefix of the stores made to it); after a crash it holds any of
// them, independently of other units. A fence makes persistent what the same thread flushed before,
// as it was at the flush. In the cpu_cache domain each store is persistent immediately; in the
// page_cache domain the stores of a commit are.
//
// Versions are hashed word by word and the hashes added, so the hash of an image costs one addition
// per unit that differs, and two images with the same bytes have the same hash whatever their
// history.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "pm/domain.h"
#include "pm/offset.h"
#include "testing/trace.h"

namespace perdix::testing {

/// Of bytes from offset 0 on, such that adding the hash of an image relative to them gives the
/// image's own. `size` is a multiple of a line's. Words of zero add nothing.
std::uint64_t content_hash(const std::byte* bytes, std::uint64_t size);

class CrashModel {
 public:
  struct Unit {
    struct Store {
      std::uint16_t at;  ///< in the unit
      std::uint8_t size;
      std::uint64_t value;
      std::uint64_t hash;  ///< of all stores up to this one, relative to the persisted version
    };
    std::uint64_t offset;
    std::vector<std::byte> persisted;
    std::vector<std::byte> current;
    std::vector<Store> stores;        ///< since the persisted version
    std::uint64_t persisted_version;  ///< stores that the persisted version has seen

    std::size_t versions() const noexcept { return stores.size() + 1; }
    std::uint64_t hash(std::size_t version) const noexcept {
      return version == 0 ? 0 : stores[version - 1].hash;
    }
    /// The unit after its first `version` stores.
    void render(std::size_t version, std::byte* to) const;
  };

  /// `memory` holds what was persistent at the start and, where units have changed since, what
  /// changes() has told of.
  CrashModel(detail::pm::Domain domain, const std::byte* memory,
             std::optional<Suppression> suppressed);

  /// The next event. True if a crash may now leave something that it could not leave before.
  bool apply(const Event& event);

  /// The unit of the last store, if that store made a new version; nullptr otherwise.
  const Unit* newest() const noexcept { return newest_; }

  /// How many stores a unit's persisted version has seen. The unit has been stored to.
  std::uint64_t persisted_version(std::uint64_t offset) const {
    return units_.at(offset)->persisted_version;
  }

  /// Units with more than one version, in ascending order.
  const std::map<std::uint64_t, Unit*>& dirty() const noexcept { return dirty_; }

  /// Units whose persisted version has changed since the last call.
  std::vector<const Unit*> changes();

  /// Of the image in which each unit has its persisted version, relative to the start.
  std::uint64_t hash() const noexcept { return hash_; }

  std::uint64_t unit_size() const noexcept { return unit_size_; }

 private:
  struct Flushed {
    Unit* unit;
    std::uint64_t version;
  };

  Unit& unit_at(std::uint64_t offset);
  bool store(const Event& event);
  void commit(const Event& event);
  void flush(const Event& event);
  void fence(unsigned thread);
  void persist(Unit& unit, std::uint64_t version);

  detail::pm::Domain domain_;
  const std::byte* memory_;
  std::optional<Suppression> suppressed_;
  std::uint64_t unit_size_;
  std::uint64_t hash_ = 0;
  const Unit* newest_ = nullptr;
  std::unordered_map<std::uint64_t, std::unique_ptr<Unit>> units_;
  std::map<std::uint64_t, Unit*> dirty_;
  std::unordered_map<unsigned, std::vector<Flushed>> flushed_;  // by thread, since its last fence
  std::vector<Unit*> changed_;
};

}  // namespace perdix::testing
