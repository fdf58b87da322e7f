// tkrzw's HashDBM: a hash table in a file that is mapped, updated in place.
//
// tkrzw does not grow its array of buckets, and its documentation asks for more buckets than
// records. It is therefore always told the number of records. Values are read in place.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <tkrzw_dbm_hash.h>
#include <tkrzw_lib_common.h>

#include <perdix/error.h>

#include "systems/stored_bytes.h"
#include "systems/systems.h"
#include "ycsb/worker.h"

namespace perdix::bench {
namespace {

// One and a half for each record; at least tkrzw's default.
std::int64_t buckets(const Setup& setup) {
  return static_cast<std::int64_t>(
      std::max<std::uint64_t>(tkrzw::HashDBM::DEFAULT_NUM_BUCKETS, setup.max_records * 3 / 2));
}

bool succeeded(const tkrzw::Status& status, tkrzw::Status::Code benign, const char* what) {
  if (status == tkrzw::Status::SUCCESS) return true;
  if (status == benign) return false;
  throw Error(Errc::io_error, fmt::format("tkrzw failed to {}: {}", what, tkrzw::ToString(status)));
}

void require(const tkrzw::Status& status, const char* what) {
  succeeded(status, tkrzw::Status::SUCCESS, what);
}

class ShowValue final : public tkrzw::DBM::RecordProcessor {
 public:
  explicit ShowValue(Sink& sink) : sink_(sink) {}

  std::string_view ProcessFull(std::string_view, std::string_view value) override {
    sink_.take(value);
    found_ = true;
    return NOOP;
  }
  bool found() const { return found_; }

 private:
  Sink& sink_;
  bool found_ = false;
};

template <class K, class V>
class TkrzwMap {
 public:
  explicit TkrzwMap(const Setup& setup) : synced_(setup.synced()) {
    tkrzw::HashDBM::TuningParameters tuning;
    tuning.num_buckets = buckets(setup);
    require(table_.OpenAdvanced((setup.directory / "bench.tkh").string(), true,
                                tkrzw::File::OPEN_DEFAULT, tuning),
            "open");
  }
  ~TkrzwMap() { table_.Close(); }
  TkrzwMap(const TkrzwMap&) = delete;
  TkrzwMap& operator=(const TkrzwMap&) = delete;

  class Client {
   public:
    explicit Client(TkrzwMap& map) : table_(map.table_), synced_(map.synced_) {}

    bool get(View<K> key, Sink& sink) {
      ShowValue show(sink);
      require(table_.Process(StoredBytes(key).view(), &show, false), "get");
      return show.found();
    }
    bool insert(View<K> key, View<V> value) {
      return changed(set(key, value, false), tkrzw::Status::DUPLICATION_ERROR, "insert");
    }
    bool update(View<K> key, View<V> value) {
      return changed(set(key, value, true), tkrzw::Status::SUCCESS, "update");
    }
    bool erase(View<K> key) {
      return changed(table_.Remove(StoredBytes(key).view()), tkrzw::Status::NOT_FOUND_ERROR,
                     "erase");
    }

   private:
    tkrzw::Status set(View<K> key, View<V> value, bool overwrite) {
      return table_.Set(StoredBytes(key).view(), StoredBytes(value).view(), overwrite);
    }

    bool changed(const tkrzw::Status& status, tkrzw::Status::Code benign, const char* what) {
      if (!succeeded(status, benign, what)) return false;
      if (synced_) require(table_.Synchronize(true), "synchronize");
      return true;
    }

    tkrzw::HashDBM& table_;
    bool synced_;
  };

  Client client() { return Client(*this); }

  OwnFootprint footprint() const {
    std::int64_t size = 0;
    require(table_.GetFileSize(&size), "tell its size");
    return {std::nullopt, static_cast<std::uint64_t>(size)};
  }

 private:
  mutable tkrzw::HashDBM table_;
  bool synced_;
};

std::string tkrzw_settings(const Setup& setup) {
  return fmt::format("tkrzw {}, mapped file, updated in place, {} buckets, blind updates{}",
                     tkrzw::PACKAGE_VERSION, buckets(setup),
                     setup.synced() ? ", synchronized after each write" : "");
}

}  // namespace

std::vector<System> tkrzw_systems() {
  return {{"tkrzw", "tkrzw::HashDBM, hash table in a file", true, open_store<TkrzwMap>,
           tkrzw_settings, calls_of<TkrzwMap>()}};
}

}  // namespace perdix::bench
