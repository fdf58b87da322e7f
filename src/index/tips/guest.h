// The plugged-in index: an object in PM, and the calls of its plug-in as Tips makes them. A plug-in
// may throw anything; what is no std::exception becomes an Error here. So the framework keeps each
// exception of a replay for the call that needs the replay, and none ends a thread.
//
// Thread-safe as the plug-in is. Calls that change the index are made in a Uno::Scope.
#pragma once

#include <cstdint>
#include <exception>
#include <string_view>
#include <type_traits>

#include "index/tips/damage.h"
#include "index/tips/plugin.h"
#include "index/tips/words.h"
#include "pm/access.h"

namespace perdix::detail::index::tips {

class Guest {
 public:
  /// The object lies in PM, and may be one that create() still has to make.
  Guest(const Plugin& plugin, void* object, Kinds kinds)
      : plugin_(plugin), object_(object), kinds_(kinds) {}

  const Plugin& facts() const { return plugin_; }
  Kinds kinds() const { return kinds_; }
  const void* object() const { return object_; }

  void create() {
    translated([&] { plugin_.create(object_); });
  }
  void renew_locks() {
    pm::before_write(object_, plugin_.object_bytes);
    translated([&] { plugin_.renew_locks(object_); });
    report();
  }
  bool put(Word key, Word value, Word* old) {
    return translated([&] { return plugin_.put(object_, key, value, old); });
  }
  bool erase(Word key, Word* old_key, Word* old_value) {
    return translated([&] { return plugin_.erase(object_, key, old_key, old_value); });
  }
  bool find(Word key, Word* value) const {
    return translated([&] { return plugin_.find(object_, key, value); });
  }
  bool find_doubting(const Doubting& doubt, Word key, Word* value) const {
    return translated([&] { return plugin_.find_doubting(object_, doubt, key, value); });
  }
  std::uint64_t size() const {
    return translated([&] { return plugin_.size(object_); });
  }
  void scan(const Word* from, void* context, ShowPair show) const {
    translated([&] { plugin_.scan(object_, from, context, show); });
  }
  bool find_last(Word bound, bool strictly, Word* key, Word* value) const {
    return translated([&] { return plugin_.find_last(object_, bound, strictly, key, value); });
  }
  std::uint64_t walk(std::uint64_t position, void* context, ShowPair show) const {
    return translated([&] { return plugin_.walk(object_, position, context, show); });
  }
  bool inspect(Inspector& inspector) const {
    return translated([&] { return plugin_.inspect(object_, inspector); });
  }

  /// Shows the probe what locks a lookup has changed.
  void report() const {
    pm::before_write(object_, plugin_.object_bytes);
    pm::on_write(object_, plugin_.object_bytes);
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
  void* const object_;
  const Kinds kinds_;
};

}  // namespace perdix::detail::index::tips
