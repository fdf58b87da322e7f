#include "index/tips/changes.h"

#include <cstring>
#include <new>
#include <vector>

#include <perdix/error.h>

namespace perdix::detail::index::tips {

/// A new word of the index: an integer, or a copy of a string in memory of the pool.
Word Changes::new_word(std::string_view bytes, Kind kind) {
  Word word = 0;
  if (kind == Kind::u64) {
    std::memcpy(&word, bytes.data(), sizeof word);
    return word;
  }
  void* const block = uno_.allocate(sizeof(Bytes) + bytes.size());
  new (block) Bytes{bytes.size()};
  if (!bytes.empty()) std::memcpy(static_cast<Bytes*>(block) + 1, bytes.data(), bytes.size());
  return reinterpret_cast<Word>(block);
}

void Changes::free_word(Word word, Kind kind) {
  if (kind == Kind::bytes) uno_.free(reinterpret_cast<void*>(word));
}

/// The index gets its own copy of a string key only if the key is new.
void Changes::put(const Entry& entry) {
  const Kinds kinds = guest_.kinds();
  const KeyWord wanted(entry.key(), kinds.key);
  Word old = 0;
  bool there = kinds.key == Kind::bytes && guest_.find(wanted.word(), &old);
  const Word value = new_word(entry.value(), kinds.value);
  Word key = wanted.word();
  try {
    if (!there) key = new_word(entry.key(), kinds.key);
    there = guest_.put(key, value, &old);
  } catch (...) {
    free_word(value, kinds.value);
    if (!there && key != wanted.word()) free_word(key, kinds.key);
    throw;
  }
  if (there) free_word(old, kinds.value);
}

void Changes::take_out(Word wanted) {
  Word key = 0, value = 0;
  if (!guest_.erase(wanted, &key, &value)) return;
  free_word(key, guest_.kinds().key);
  free_word(value, guest_.kinds().value);
}

bool Changes::apply(const Entry& entry, const Need& claimed) {
  try {
    const Uno::Scope scope(uno_, claimed);
    if (entry.operation() == Operation::put)
      put(entry);
    else
      take_out(KeyWord(entry.key(), guest_.kinds().key).word());
    guest_.report();
    return true;
  } catch (const Error& error) {
    guest_.report();
    // A pool that is only read since its file is lost has no more space either.
    const bool only_read = pool_.health().usable() && !pool_.health().writable();
    if ((error.code() != Errc::out_of_space && !only_read) || uno_.is_broken()) throw;
    return false;
  }
}

Need Changes::need_of(const Entry& entry) const {
  if (entry.operation() != Operation::put) return {};
  return need_of_put(entry.key().size(), entry.value().size());
}

/// The sizes are those of strings.
Need Changes::need_of_put(std::size_t key_size, std::size_t value_size) const {
  Need need;
  const Kinds kinds = guest_.kinds();
  if (kinds.key == Kind::bytes) need.add(sizeof(Bytes) + key_size, 1);
  if (kinds.value == Kind::bytes) need.add(sizeof(Bytes) + value_size, 1);
  // A separator has the length of a key and a byte more than the key.
  const std::uint64_t separator = kinds.key == Kind::bytes ? sizeof(Bytes) + key_size + 1 : 0;
  for (const TakenNodes& nodes : guest_.facts().put_takes)
    if (nodes.count > 0) need.add(nodes.bytes + (nodes.with_key ? separator : 0), nodes.count);
  return need;
}

void Changes::erase(Word wanted) {
  const Uno::Scope scope(uno_);
  take_out(wanted);
  guest_.report();
}

void Changes::clear() {
  struct Nodes final : Inspector {
    std::vector<void*> all;
    bool node(const void* node, std::size_t) override {
      all.push_back(const_cast<void*>(node));
      return true;
    }
    bool pair(Word, Word) override { return true; }
  } nodes;
  if (!guest_.inspect(nodes)) throw_damaged_part(pool_, "the plugged-in index");
  {
    const Uno::Scope scope(uno_);
    uno_.add(guest_.object(), guest_.facts().object_bytes);
    guest_.create();
    for (void* node : nodes.all) uno_.free(node);
  }
  guest_.report();
}

}  // namespace perdix::detail::index::tips
