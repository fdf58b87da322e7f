// The calls of a plug-in as Tips makes them. A plug-in may throw anything; what is no
// std::exception becomes an Error here. So the framework keeps each exception of a replay for the
// call that needs the replay, and none ends a thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string_view>
#include <type_traits>

#include "index/tips/damage.h"
#include "index/tips/plugin.h"

namespace perdix::detail::index::tips {

class Guest {
 public:
  explicit Guest(const Plugin& plugin) : plugin_(plugin) {}

  const Plugin& facts() const { return plugin_; }

  void create(void* index) const {
    translated([&] { plugin_.create(index); });
  }
  void renew_locks(void* index) const {
    translated([&] { plugin_.renew_locks(index); });
  }
  bool put(void* index, Word key, Word value, Word* old) const {
    return translated([&] { return plugin_.put(index, key, value, old); });
  }
  bool erase(void* index, Word key, Word* old_key, Word* old_value) const {
    return translated([&] { return plugin_.erase(index, key, old_key, old_value); });
  }
  bool find(const void* index, Word key, Word* value) const {
    return translated([&] { return plugin_.find(index, key, value); });
  }
  bool find_doubting(const void* index, const Doubting& doubt, Word key, Word* value) const {
    return translated([&] { return plugin_.find_doubting(index, doubt, key, value); });
  }
  std::uint64_t size(const void* index) const {
    return translated([&] { return plugin_.size(index); });
  }
  void scan(const void* index, const Word* from, void* context, ShowPair show) const {
    translated([&] { plugin_.scan(index, from, context, show); });
  }
  bool find_last(const void* index, Word bound, bool strictly, Word* key, Word* value) const {
    return translated([&] { return plugin_.find_last(index, bound, strictly, key, value); });
  }
  std::uint64_t walk(const void* index, std::uint64_t position, void* context,
                     ShowPair show) const {
    return translated([&] { return plugin_.walk(index, position, context, show); });
  }
  bool inspect(const void* index, Inspector& inspector) const {
    return translated([&] { return plugin_.inspect(index, inspector); });
  }

 private:
  template <class Call>
  std::invoke_result_t<Call> translated(const Call& call) const {
    try {
      return call();
    } catch (const std::exception&) {
      throw;
    } catch (...) {
      throw_strange(plugin_.name);
    }
  }

  const Plugin& plugin_;
};

}  // namespace perdix::detail::index::tips
