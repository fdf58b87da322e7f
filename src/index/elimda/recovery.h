// Opening an index. Reads the collecting logs, of which there is a number at most, and what of the
// backup log a log names that was being copied. Segments and the rest of the backup log come back
// later (cold.h): so what an opening does is independent of the number of pairs.
//
// How new pairs come into the index is decided here, for this opening: by collecting logs, or
// without them (Store::straight, volatile caches). What an earlier opening has left in logs is
// drained if they are not used.
#pragma once

#include <perdix/error.h>

#include "index/common/retry.h"
#include "index/elimda/flush.h"
#include "index/elimda/store.h"

namespace perdix::detail::index::elimda {

template <class K>
class Recovery {
 public:
  Recovery(Store<K>& store, Flusher<K>& flusher) : store_(store), flusher_(flusher) {}

  /// Opens the layers. Before other threads use them. Throws corrupt, out_of_space, bad_alloc.
  void run() {
    store_.dram.start();
    if (pm::load(store_.root.log_area) == pm::kNull && collects()) create_logs();
    if (pm::load(store_.root.log_area) != pm::kNull) {
      store_.logs.open();
      finish_copies();
    }
    let_logs_say_copying(store_.pool, store_.root);
    store_.cold.begin(store_.logs.area().depth);
    if (store_.logs.set() != nullptr) use_logs();
  }

 private:
  bool collects() const { return !store_.volatile_caches && !store_.straight; }

  void finish_copies() {
    if (logs_say_copying(store_.root)) return store_.backup.finish_copies(*store_.logs.set());
    store_.backup.read_all();
    store_.backup.finish_all_copies(*store_.logs.set());
  }

  /// If there is no space for logs, pairs come straight in this opening.
  void create_logs() {
    try {
      retry_when_full(store_.pool, [&] { store_.logs.create(store_.dram.segments()); });
    } catch (const Error& error) {
      if (error.code() != Errc::out_of_space) throw;
      pm::on_step("elimda: no space for logs");
      store_.straight = true;
    }
  }

  /// The fingerprints of pairs in collecting logs; or no logs, where they may not be used.
  void use_logs() {
    store_.logs.set()->for_each([&](CollectingLog log) {
      LogLine& line = log.line();
      for (unsigned i = 0; i < line.count; ++i) {
        if (log.dead(i)) continue;
        const Signature signature = store_.words.signature_of(pm::load(log.pairs()[i].key));
        line.set_print(i, LogLine::print_of(signature));
      }
    });
    if (collects() || !drain_logs()) return;
    store_.logs.stop_using();
  }

  /// Returns false if there is no space and the logs may stay: then this opening collects, too.
  bool drain_logs() {
    try {
      retry_when_full(store_.pool, [&] { flusher_.drain_logs(); });
    } catch (const Error& error) {
      if (error.code() != Errc::out_of_space || store_.volatile_caches) throw;
      pm::on_step("elimda: no space to drain the logs");
      store_.straight = false;
    }
    return store_.straight || store_.volatile_caches;
  }

  Store<K>& store_;
  Flusher<K>& flusher_;
};

}  // namespace perdix::detail::index::elimda
