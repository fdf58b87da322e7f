#include "testing/subjects/lost_entries_subject.h"

#include <array>
#include <iterator>
#include <string>

#include <perdix/index.h>

#include "index/common/bytes.h"
#include "index/nbtree/entry.h"
#include "index/nbtree/layout.h"
#include "index/nbtree/ledger.h"
#include "pool/pool_core.h"
#include "testing/subjects/index_keys.h"
#include "testing/subjects/index_subject.h"
#include "testing/subjects/pool_medium.h"

namespace perdix::testing {
namespace {

namespace nbtree = detail::index::nbtree;

constexpr unsigned kMaxLostEntries = 4;
constexpr unsigned kInADropInterval = 4;

/// Adds entries to the leaves of a closed index.
template <class K, class V>
class LostEntries {
 public:
  LostEntries(detail::pool::PoolCore& pool, nbtree::Root& root)
      : pool_(pool), root_(root), keys_(pool), values_(pool), ledger_(pool, root) {}

  /// An entry of the key in the first slot of its leaf that is free, if there is one.
  void add(View<K> key, View<V> value) {
    nbtree::Block& block = block_of(key);
    for (unsigned i = 0; i < nbtree::capacity_of(block); ++i) {
      nbtree::Entry& entry = block.entries[i];
      if (detail::pm::load(entry.key) != nbtree::kEmpty) continue;
      return write(entry, key, value);
    }
  }

 private:
  using Keys = detail::index::Codec<K>;
  using Values = detail::index::Codec<V>;

  nbtree::Block& block_of(View<K> key) const {
    detail::pm::Offset offset = detail::pm::load(root_.first);
    for (;;) {
      nbtree::Block& block = nbtree::checked_block(pool_, nbtree::checked_anchor(pool_, offset));
      offset = detail::pm::load(block.next);
      if (offset == detail::pm::kNull) return block;
      if (key < keys_.view(detail::pm::load(nbtree::checked_anchor(pool_, offset).low)))
        return block;
    }
  }

  void write(nbtree::Entry& entry, View<K> key, View<V> value) {
    detail::index::Word key_word = 0, value_word = 0;
    const auto make = [&](detail::alloc::Session& session) {
      key_word = keys_.write(session, key, Keys::hash16(key));
      value_word = values_.write(session, value);
      std::array<detail::pm::Offset, 4> blocks{};
      unsigned count = 0;
      if (Keys::blobs(key_word) != 0) blocks[count++] = detail::index::blob_offset(key_word);
      if (Values::blobs(value_word) != 0) blocks[count++] = detail::index::blob_offset(value_word);
      return blocks;
    };
    nbtree::Ledger::StripeLease lease(ledger_, nbtree::Ledger::Purpose::operation);
    lease.claim(make);
    pool_.pm().store(entry.value, value_word);
    pool_.pm().store(entry.key, nbtree::EntryLayout<K>::pack(key_word, nbtree::State::pending));
    pool_.pm().persist(&entry, sizeof entry);  // what it lost against is durable, too
    lease.abandon();                           // as the crash does
  }

  detail::pool::PoolCore& pool_;
  nbtree::Root& root_;
  const Keys keys_;
  const Values values_;
  nbtree::Ledger ledger_;
};

template <class K, class V>
class LostEntriesSubject final : public Subject {
 public:
  LostEntriesSubject(const IndexInfo& info, const IndexOptions& options, detail::pm::Domain domain)
      : index_(make_index_subject(info, options, domain)), info_(info), domain_(domain) {}

  std::uint64_t size() const override { return index_->size(); }

  State create(Medium& medium, detail::util::Random& random) override {
    State state = index_->create(medium, random);
    if (state.empty()) return state;
    const auto core = detail::pool::PoolCore::open(medium.path(), pool_options(domain_));
    {
      const detail::pool::IndexHandle handle =
          core->open_index(info_.name, info_.engine, info_.key_kind, info_.value_kind);
      LostEntries<K, V> lost(*core, nbtree::checked_root(*core, handle.root()));
      for (std::uint64_t i = 1 + random.below(kMaxLostEntries); i > 0; --i)
        add_one(lost, state, random);
    }
    if (random.one_in(kInADropInterval)) {
      core->begin_drop(info_.name);
      state.clear();
    }
    core->close();
    return state;
  }

  std::unique_ptr<Opened> open(Medium& medium) override { return index_->open(medium); }

  Step next_step(detail::util::Random& random, const State& state, unsigned thread,
                 unsigned threads) override {
    return index_->next_step(random, state, thread, threads);
  }

  Effects effects(const Step& step, const State& state) const override {
    return index_->effects(step, state);
  }

  std::string describe(const Step& step) const override { return index_->describe(step); }

 private:
  static void add_one(LostEntries<K, V>& lost, const State& state, detail::util::Random& random) {
    const auto pair = std::next(state.begin(), static_cast<long>(random.below(state.size())));
    const std::string value = bytes_of_number(random());
    lost.add(detail::index::Bytes<K>::decode(pair->first), detail::index::Bytes<V>::decode(value));
  }

  std::unique_ptr<Subject> index_;
  const IndexInfo info_;
  detail::pm::Domain domain_;
};

}  // namespace

std::unique_ptr<Subject> make_lost_entries_subject(const IndexInfo& info,
                                                   const IndexOptions& options,
                                                   detail::pm::Domain domain) {
  const auto make = [&]<class K, class V>() -> std::unique_ptr<Subject> {
    return std::make_unique<LostEntriesSubject<K, V>>(info, options, domain);
  };
  if (info.key_kind == Kind::u64) {
    return info.value_kind == Kind::u64 ? make.operator()<std::uint64_t, std::uint64_t>()
                                        : make.operator()<std::uint64_t, std::string>();
  }
  return info.value_kind == Kind::u64 ? make.operator()<std::string, std::uint64_t>()
                                      : make.operator()<std::string, std::string>();
}

}  // namespace perdix::testing
