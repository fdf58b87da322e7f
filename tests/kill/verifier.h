// The child that verifies a pool after a kill: the index's own check, every key by get(),
// for_each() and scan(), the second index, the pool's search for leaks, and whether the index still
// works.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <perdix/perdix.h>

#include "kill/plan.h"
#include "kill/process.h"
#include "kill/writer.h"
#include "support/compare.h"
#include "support/engines.h"

namespace perdix::test::kill {

class Verifier {
 public:
  Verifier(const IndexType& type, const Plan& plan, Pool& pool, const Sender& sender)
      : type_(type),
        plan_(plan),
        pool_(pool),
        sender_(sender),
        keys_(plan_keys(type.key_kind, plan, kSpareKeys)) {}

  /// Sends all pairs to the parent. Throws if something is wrong. Leaves the pairs unchanged.
  void run(AnyIndex index) {
    require_sound("check()", index.check());
    send_pairs(index);
    verify_pairs(index);
    if (index.ordered()) verify_scan(index);
    verify_second();
    work(index);
    require_sound("check() after further work", index.check());
    { const AnyIndex closed = std::move(index); }
    require_sound("Pool::check()", pool_.check());
  }

 private:
  static constexpr std::size_t kSpareKeys = 150;  // enough to split and merge leaves

  static void require(bool condition, const std::string& what) {
    if (!condition) throw std::runtime_error(what);
  }

  static void require_sound(const std::string& what, const CheckReport& report) {
    require(report.ok(), what + ": " + problems_of(report));
  }

  void send_pairs(const AnyIndex& index) {
    for (std::size_t i = 0; i < plan_.keys(); ++i) {
      const auto value = index.get(keys_[i]);
      const auto tag = value ? tag_of(*value) : 0;
      require(tag.has_value(), fmt::format("key {} has a damaged value", i));
      require(index.contains(keys_[i]) == value.has_value(),
              fmt::format("get() and contains() disagree on key {}", i));
      sender_.send(Record::Type::pair, 0, static_cast<std::uint32_t>(i), *tag);
      if (value) found_.emplace(keys_[i], *tag);
    }
    require(index.size() == found_.size(),
            fmt::format("size() is {}, but {} keys are there", index.size(), found_.size()));
  }

  void verify_pairs(const AnyIndex& index) {
    std::size_t shown = 0;
    index.for_each([&](DatumView key, DatumView value) {
      const auto found = found_.find(key.copy());
      require(found != found_.end() && tag_of(value) == found->second,
              "for_each() shows " + show(key) + ", which get() does not");
      ++shown;
      return true;
    });
    require(shown == found_.size(),
            fmt::format("for_each() shows {} pairs, but get() finds {}", shown, found_.size()));
  }

  void verify_scan(const AnyIndex& index) {
    auto next = found_.begin();
    index.scan(Datum::least(type_.key_kind), [&](DatumView key, DatumView value) {
      require(next != found_.end() && next->first == key && tag_of(value) == next->second,
              "scan() shows " + show(key) + ", which get() does not");
      ++next;
      return true;
    });
    require(next == found_.end(), "scan() ends before a key that get() finds");
  }

  void verify_second() {
    SecondIndex state = SecondIndex::dropped;
    for (const IndexInfo& info : pool_.indexes()) {
      if (info.name == kSecondName) state = SecondIndex::created;
    }
    if (state == SecondIndex::created) {
      const AnyIndex second = type_.open(pool_, kSecondName);
      require_sound("check() of the second index", second.check());
      Rng rng(plan_.seed);
      const auto keys = make_keys(type_.key_kind, rng, kSecondKeys, KeyStyle::mixed);
      std::size_t there = 0;
      for (; there < keys.size(); ++there) {  // it is filled in this order
        const auto value = second.get(keys[there]);
        if (!value) break;
        require(*value == tagged_value(type_.value_kind, there + 1),
                "a damaged value in the second index");
      }
      require(second.size() == there, "the second index has lost a pair between others");
      if (there == keys.size()) state = SecondIndex::filled;
    }
    sender_.send(Record::Type::second, 0, static_cast<std::uint32_t>(state), 0);
  }

  /// Uses the index as a client would, on keys that no writer has.
  void work(AnyIndex& index) {
    const std::size_t size = index.size();
    for (std::size_t i = plan_.keys(); i < keys_.size(); ++i) {
      require(index.insert(keys_[i], tagged_value(type_.value_kind, i)),
              "insert() of a new key returned false");
      require(!index.insert(keys_[i], tagged_value(type_.value_kind, i)),
              "insert() of a key returned true twice");
      require(index.update(keys_[i], tagged_value(type_.value_kind, i + 1)),
              "update() returned false");
    }
    for (std::size_t i = plan_.keys(); i < keys_.size(); ++i) {
      require(index.get(keys_[i]) == tagged_value(type_.value_kind, i + 1), "get() after update()");
      require(index.erase(keys_[i]), "erase() returned false");
    }
    require(index.size() == size, "size() is not what it was before inserting and erasing");
  }

  const IndexType& type_;
  const Plan& plan_;
  Pool& pool_;
  const Sender& sender_;
  std::vector<Datum> keys_;
  std::map<Datum, std::uint64_t> found_;
};

}  // namespace perdix::test::kill
