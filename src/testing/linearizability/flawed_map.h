// A map that is simple enough to be right, and that can be told to be wrong in one way: what the
// checker and the scheduler must find.
//
// Each key has one line of memory: its value plus one, or 0 if it is absent. One lock protects all.
// Readers take it too, so no thread sees what is not yet durable.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "pm/access.h"
#include "pm/persist.h"
#include "testing/linearizability/map.h"
#include "util/spin_lock.h"

namespace perdix::testing {

enum class Flaw {
  none,
  insert_looks_without_lock,  ///< two threads insert the same key, and both are told that they did
  get_without_lock,           ///< sees a value that a crash takes away again
  put_is_not_flushed,         ///< a crash takes away what was acknowledged
  erase_is_not_fenced,        ///< the same for an erase, until a later fence
  update_returns_too_early,   ///< acknowledges a value before it is stored
  swap_looks_without_lock,    ///< two threads are told that they replaced the same value
  scan_copies_first,          ///< shows a key as it was before the scan
  scan_goes_back,             ///< shows a key twice
  erase_comes_back,           ///< recovery forgets the last erase
};

class FlawedMap final : public Map {
 public:
  static constexpr std::size_t kKeys = 80;

  struct alignas(64) Slot {
    std::uint64_t word = 0;
  };

  FlawedMap(std::vector<Slot>& slots, const detail::pm::Persister& pm, Flaw flaw)
      : slots_(slots), pm_(pm), flaw_(flaw) {}

  std::optional<Value> get(Key key) override {
    if (flaw_ == Flaw::get_without_lock) return read(key);
    const std::lock_guard lock(lock_);
    return read(key);
  }

  void put(Key key, Value value) override {
    const std::lock_guard lock(lock_);
    if (flaw_ == Flaw::put_is_not_flushed) return pm_.store(slots_[key].word, value + 1);
    pm_.publish(slots_[key].word, value + 1);  // the commit
  }

  bool insert(Key key, Value value) override {
    if (flaw_ == Flaw::insert_looks_without_lock) {
      if (read(key)) return false;
      put(key, value);
      return true;
    }
    const std::lock_guard lock(lock_);
    if (read(key)) return false;
    pm_.publish(slots_[key].word, value + 1);  // the commit
    return true;
  }

  bool update(Key key, Value value) override {
    if (flaw_ == Flaw::update_returns_too_early) return update_later(key, value);
    const std::lock_guard lock(lock_);
    if (!read(key)) return false;
    pm_.publish(slots_[key].word, value + 1);  // the commit
    return true;
  }

  bool erase(Key key) override {
    const std::lock_guard lock(lock_);
    if (!read(key)) return false;
    if (flaw_ == Flaw::erase_is_not_fenced) {
      pm_.store(slots_[key].word, 0);
      pm_.flush(&slots_[key], sizeof(Slot));  // the flaw: no fence follows
      return true;
    }
    pm_.publish(slots_[key].word, 0);  // the commit
    return true;
  }

  std::optional<Value> swap(Key key, Value value) override {
    const std::optional<Value> looked =
        flaw_ == Flaw::swap_looks_without_lock ? read(key) : std::nullopt;
    const std::lock_guard lock(lock_);
    const std::optional<Value> before = read(key);
    pm_.publish(slots_[key].word, value + 1);  // the commit
    return flaw_ == Flaw::swap_looks_without_lock ? looked : before;
  }

  std::optional<Value> take(Key key) override {
    const std::lock_guard lock(lock_);
    const std::optional<Value> before = read(key);
    if (before) pm_.publish(slots_[key].word, 0);  // the commit
    return before;
  }

  bool ordered() const override { return true; }

  void scan(Key from, const std::function<bool(Key, Value)>& visit) override {
    const std::vector<Slot> before = copied_;
    if (flaw_ == Flaw::scan_copies_first) copied_ = slots_;
    for (Key key = from; key < kKeys; ++key) {
      const auto value = flaw_ == Flaw::scan_copies_first && !before.empty()
                             ? value_of(before[key].word)
                             : get(key);
      if (!value) continue;
      if (!visit(key, *value)) return;
      if (flaw_ == Flaw::scan_goes_back && !visit(key, *value)) return;
    }
  }

 private:
  static std::optional<Value> value_of(std::uint64_t word) {
    return word == 0 ? std::nullopt : std::optional(word - 1);
  }

  std::optional<Value> read(Key key) { return value_of(detail::pm::load(slots_[key].word)); }

  // Keeps the value back until the next update.
  bool update_later(Key key, Value value) {
    const std::lock_guard lock(lock_);
    if (late_) pm_.publish(slots_[late_->first].word, late_->second + 1);  // the flaw: too late
    late_.reset();
    if (!read(key)) return false;
    late_ = {key, value};
    return true;
  }

  std::vector<Slot>& slots_;
  const detail::pm::Persister& pm_;
  Flaw flaw_;
  detail::util::SpinLock lock_;
  std::optional<std::pair<Key, Value>> late_;
  std::vector<Slot> copied_;
};

class FlawedSystem final : public System {
 public:
  FlawedSystem(detail::pm::Domain domain, Flaw flaw) : pm_(domain), flaw_(flaw) {}

  Map& map() override { return map_; }
  std::span<std::byte> memory() override { return std::as_writable_bytes(std::span(slots_)); }
  bool needs_flushes() const override {
    return pm_.domain() == detail::pm::Domain::memory_controller;
  }

  std::unique_ptr<System> recover(const SparseBytes& image) override {
    auto system = std::make_unique<FlawedSystem>(pm_.domain(), flaw_);
    image.copy_to(system->memory());
    if (flaw_ == Flaw::erase_comes_back) {
      for (FlawedMap::Slot& slot : system->slots_) slot.word += slot.word == 0;
    }
    return system;
  }

 private:
  detail::pm::Persister pm_;
  Flaw flaw_;
  std::vector<FlawedMap::Slot> slots_ = std::vector<FlawedMap::Slot>(FlawedMap::kKeys);
  FlawedMap map_{slots_, pm_, flaw_};
};

}  // namespace perdix::testing
