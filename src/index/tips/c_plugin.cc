#include "index/tips/c_plugin.h"

#include <exception>
#include <new>
#include <string>

#include <fmt/format.h>

#include <perdix/error.h>

#include "index/tips/plugins.h"
#include "index/tips/uno.h"

using perdix::detail::index::tips::Uno;

/// What is shown the nodes, as C knows it.
struct perdix_tips_inspector {
  perdix::tips::Inspector& inspector;
  std::exception_ptr failure;
};

namespace perdix::detail::index::tips {
namespace {

static_assert(PERDIX_U64 == static_cast<int>(Kind::u64) &&
              PERDIX_BYTES == static_cast<int>(Kind::bytes));

const perdix_tips_plugin& checked(const perdix_tips_plugin& table) {
  const bool named = table.name != nullptr && table.object_bytes > 0;
  const bool keys = table.keys == PERDIX_U64 || table.keys == PERDIX_BYTES;
  const bool calls = table.create != nullptr && table.put != nullptr && table.erase != nullptr &&
                     table.find != nullptr && table.size != nullptr && table.inspect != nullptr;
  const bool order = table.scan != nullptr ? table.find_last != nullptr : table.walk != nullptr;
  if (named && keys && calls && order) return table;
  throw Error(Errc::invalid_argument,
              fmt::format("the plug-in '{}' of Tips lacks something: it needs a name, a kind of "
                          "keys, an object, all calls but renew_locks, and of these scan and "
                          "find_last, or walk",
                          table.name != nullptr ? table.name : ""));
}

PutTakes takes_of(const perdix_tips_plugin& table) {
  PutTakes takes{};
  for (std::size_t i = 0; i < takes.size(); ++i)
    takes[i] = {table.put_takes[i].bytes, table.put_takes[i].count};
  return takes;
}

/// Shows pairs to the framework, and keeps its exception.
struct Shown {
  void* context;
  ShowPair show;
  std::exception_ptr failure;

  static int pair(void* shown, Word key, Word value) {
    auto& self = *static_cast<Shown*>(shown);
    if (self.failure) return 0;
    try {
      return self.show(self.context, key, value) ? 1 : 0;
    } catch (...) {
      self.failure = std::current_exception();
      return 0;
    }
  }

  void rethrow() const {
    if (failure) std::rethrow_exception(failure);
  }
};

/// What put() or erase() has returned. Throws what kept them from being done.
bool answer(int result) {
  if (result >= 0) return result > 0;
  if (const std::exception_ptr failure = Uno::Scope::current().failure())
    std::rethrow_exception(failure);
  throw Error(Errc::out_of_space, "a plug-in of Tips has failed, and says not why");
}

/// What a plug-in asks of the operation of this thread: 1, or less if it was not available.
template <class Ask>
int ask(const Ask& ask) noexcept {
  try {
    Uno::Scope& scope = Uno::Scope::current();
    try {
      ask(scope.uno());
      return 1;
    } catch (...) {
      scope.set_failure(std::current_exception());
    }
  } catch (const std::exception&) {  // there is no operation
  }
  return PERDIX_FAILED;
}

/// What a plug-in tells the inspector.
template <class Tell>
int tell(perdix_tips_inspector& to, const Tell& tell) noexcept {
  if (to.failure) return 0;
  try {
    return tell(to.inspector) ? 1 : 0;
  } catch (...) {
    to.failure = std::current_exception();
    return 0;
  }
}

}  // namespace

CPlugin::CPlugin(const perdix_tips_plugin& table)
    : Plugin({}, static_cast<Kind>(table.keys), table.scan != nullptr, false, table.object_bytes,
             takes_of(table)),
      full_name_(std::string(kUserPrefix) + (table.name != nullptr ? table.name : "")),
      table_(checked(table)) {
  name = full_name_;
}

void CPlugin::create(void* index) const { table_.create(index); }

void CPlugin::renew_locks(void* index) const {
  if (table_.renew_locks != nullptr) table_.renew_locks(index);
}

bool CPlugin::put(void* index, Word key, Word value, Word* old) const {
  return answer(table_.put(index, key, value, old));
}

bool CPlugin::erase(void* index, Word key, Word* old_key, Word* old_value) const {
  return answer(table_.erase(index, key, old_key, old_value));
}

bool CPlugin::find(const void* index, Word key, Word* value) const {
  return table_.find(index, key, value) != 0;
}

bool CPlugin::find_doubting(const void* index, const Doubting&, Word key, Word* value) const {
  return find(index, key, value);
}

std::uint64_t CPlugin::size(const void* index) const { return table_.size(index); }

void CPlugin::scan(const void* index, const Word* from, void* context, ShowPair show) const {
  Shown shown{context, show, {}};
  table_.scan(index, from, &shown, Shown::pair);
  shown.rethrow();
}

bool CPlugin::find_last(const void* index, Word bound, bool strictly, Word* key,
                        Word* value) const {
  return table_.find_last(index, bound, strictly ? 1 : 0, key, value) != 0;
}

std::uint64_t CPlugin::walk(const void* index, std::uint64_t position, void* context,
                            ShowPair show) const {
  Shown shown{context, show, {}};
  const std::uint64_t next = table_.walk(index, position, &shown, Shown::pair);
  shown.rethrow();
  return next;
}

bool CPlugin::inspect(const void* index, Inspector& inspector) const {
  perdix_tips_inspector told{inspector, {}};
  const bool sound = table_.inspect(index, &told) != 0;
  if (told.failure) std::rethrow_exception(told.failure);
  return sound;
}

}  // namespace perdix::detail::index::tips

using perdix::detail::index::tips::ask;
using perdix::detail::index::tips::tell;
using perdix::tips::IntegerKeys;
using perdix::tips::StringKeys;

void* perdix_tips_alloc(size_t bytes) {
  void* block = nullptr;
  ask([&](Uno& uno) { block = uno.allocate(bytes); });
  return block;
}

int perdix_tips_free(void* block) {
  return ask([&](Uno& uno) { uno.free(block); });
}

int perdix_tips_ulog_add(const void* p, size_t bytes) {
  return ask([&](Uno& uno) { uno.add(p, bytes); });
}

int perdix_tips_compare(perdix_kind keys, uint64_t a, uint64_t b) {
  if (keys == PERDIX_U64) return a < b ? -1 : a > b;
  return StringKeys::view(a).compare(StringKeys::view(b));
}

uint64_t perdix_tips_hash(perdix_kind keys, uint64_t key) {
  return keys == PERDIX_U64 ? IntegerKeys::hash(key) : StringKeys::hash(key);
}

int perdix_tips_node(perdix_tips_inspector* inspector, const void* node, size_t bytes) {
  return tell(*inspector, [&](auto& told) { return told.node(node, bytes); });
}

int perdix_tips_pair(perdix_tips_inspector* inspector, uint64_t key, uint64_t value) {
  return tell(*inspector, [&](auto& told) { return told.pair(key, value); });
}

int perdix_tips_readable(perdix_tips_inspector* inspector, const void* node, size_t bytes) {
  return tell(*inspector, [&](auto& told) { return told.readable(node, bytes); });
}
