// The module: its parts, made when the server loads it. The server calls back without an argument
// of ours, so there is one for the process.
#pragma once

#include "api.h"
#include "catalogue.h"
#include "feeder.h"
#include "pool_file.h"
#include "reaper.h"
#include "refusal.h"
#include "restorer.h"
#include "settings.h"
#include "stream_watch.h"
#include "tables.h"
#include "write_through.h"

namespace perdix::valkey {

class Module {
 public:
  /// Opens the pool. Throws what Pool::open_or_create() throws. The settings must outlive it.
  explicit Module(const Settings& settings);

  const Settings& settings() const noexcept { return settings_; }
  const Pool& pool() const noexcept { return pool_; }
  const PoolFile& pool_file() const noexcept { return pool_file_; }
  Catalogue& catalogue() noexcept { return catalogue_; }
  Tables& tables() noexcept { return tables_; }
  Reaper& reaper() noexcept { return reaper_; }
  Feeder& feeder() noexcept { return feeder_; }
  Refusal& refusal() noexcept { return refusal_; }
  WriteThrough& write_through() noexcept { return write_through_; }
  StreamWatch& stream_watch() noexcept { return stream_watch_; }
  Restorer& restorer() noexcept { return restorer_; }

  /// Closes the pool, for the end of the server: the next start finds it clean.
  void close(Context* context);

 private:
  const Settings& settings_;
  Pool pool_;
  PoolFile pool_file_;
  Catalogue catalogue_;
  Reaper reaper_;
  Tables tables_;
  Feeder feeder_;
  Refusal refusal_;
  WriteThrough write_through_;
  StreamWatch stream_watch_;
  Restorer restorer_;
};

/// The one of this process. There is none before the start, and after one that failed.
Module& module();
bool has_module();

}  // namespace perdix::valkey
