// The child that works until it is killed. Its writers acknowledge each operation when it has
// returned. Mode `apart` adds a reader and a thread that creates and drops a second index.
#pragma once

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <perdix/perdix.h>

#include "kill/plan.h"
#include "kill/process.h"
#include "support/compare.h"
#include "support/engines.h"
#include "support/keys.h"
#include "support/values.h"

namespace perdix::test::kill {

/// The keys of the main index followed by those that only verification uses, in no order.
inline std::vector<Datum> plan_keys(Kind kind, const Plan& plan, std::size_t spare = 0) {
  Rng rng(plan.seed);
  auto keys = make_keys(kind, rng, plan.keys(), write_profile().style);
  const auto others = make_keys(kind, rng, spare + edge_keys(kind).size(), KeyStyle::mixed);
  for (const Datum& key : others) {
    if (!std::binary_search(keys.begin(), keys.begin() + plan.keys(), key)) keys.push_back(key);
  }
  return keys;
}

class Writer {
 public:
  Writer(const IndexType& type, const Plan& plan, unsigned round, const Pool& pool, AnyIndex& index,
         const Sender& sender)
      : type_(type),
        plan_(plan),
        round_(round),
        pool_(pool),
        index_(index),
        sender_(sender),
        keys_(plan_keys(type.key_kind, plan)) {}

  /// Runs until the process is killed. An exception is reported as a problem.
  void run() {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < plan_.threads; ++i) {
      threads.emplace_back([this, i] { guarded([&] { write(i); }); });
    }
    if (plan_.mode == Mode::apart) {
      threads.emplace_back([this] { guarded([&] { read(); }); });
      threads.emplace_back([this] { guarded([&] { create_and_drop(); }); });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  template <class F>
  void guarded(F&& body) {
    try {
      body();
    } catch (const std::exception& error) {
      const std::lock_guard lock(problem_mutex_);
      sender_.problem(std::string("write process: ") + error.what());
      ::_exit(1);
    }
  }

  [[noreturn]] void write(unsigned thread) {
    Stream stream(plan_, round_, thread);
    const bool together = plan_.mode == Mode::together;
    for (std::uint32_t number = 0;; ++number) {
      const Command command = stream.next();
      if (together) sender_.send(Record::Type::begin, thread, number, 0);
      const bool result = execute(command);
      sender_.send(Record::Type::done, thread, number, result ? 1 : 0);
    }
  }

  /// Half of them by update_with(), which looks first.
  bool execute(const Command& command) {
    if (command.tag % 2 == 0) return execute_by_change(command);
    return make_change(index_, command.op, keys_[command.key],
                       tagged_value(type_.value_kind, command.tag));
  }

  bool execute_by_change(const Command& command) {
    bool there = false;
    index_.update_with(keys_[command.key], [&](const std::optional<DatumView>& before) {
      there = before.has_value();
      const bool stores = command.op == Op::put || (command.op == Op::insert && !there) ||
                          (command.op == Op::update && there);
      if (stores) return std::optional(tagged_value(type_.value_kind, command.tag));
      return there && command.op != Op::erase ? std::optional(before->copy()) : std::nullopt;
    });
    return command.op == Op::put || (command.op == Op::insert) != there;
  }

  /// Tells the parent of every value of this round that it sees: from then on it must survive.
  [[noreturn]] void read() {
    Rng rng(plan_.seed + round_);
    for (;;) {
      const std::size_t key = rng.below(plan_.keys());
      const auto value = index_.get(keys_[key]);
      if (!value) continue;
      const auto tag = tag_of(*value);
      if (!tag) throw std::runtime_error("a reader saw a damaged value");
      if (Tag::unpack(*tag).round != round_) continue;
      sender_.send(Record::Type::observed, 0, static_cast<std::uint32_t>(key), *tag);
    }
  }

  [[noreturn]] void create_and_drop() {
    Rng rng(plan_.seed);
    const auto keys = make_keys(type_.key_kind, rng, kSecondKeys, KeyStyle::mixed);
    Pool pool = pool_;
    bool exists = false;  // what an earlier kill left is dropped first
    for (const IndexInfo& info : pool.indexes()) exists = exists || info.name == kSecondName;
    for (;; exists = false) {
      if (!exists) create(pool, keys);
      tell(SecondIndex::dropping);
      pool.drop(kSecondName);
      tell(SecondIndex::dropped);
    }
  }

  void create(const Pool& pool, const std::vector<Datum>& keys) {
    tell(SecondIndex::creating);
    AnyIndex index = type_.open(pool, kSecondName);
    tell(SecondIndex::created);
    for (std::size_t i = 0; i < keys.size(); ++i)
      index.put(keys[i], tagged_value(type_.value_kind, i + 1));
    tell(SecondIndex::filled);
  }

  void tell(SecondIndex state) {
    sender_.send(Record::Type::second, 0, static_cast<std::uint32_t>(state), 0);
  }

  const IndexType& type_;
  const Plan& plan_;
  unsigned round_;
  const Pool& pool_;
  AnyIndex& index_;
  const Sender& sender_;
  std::vector<Datum> keys_;
  std::mutex problem_mutex_;
};

}  // namespace perdix::test::kill
