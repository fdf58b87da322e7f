// Any engine behind perdix::Index, in a pool, as users have it.
//
// Contents are the pairs of the index, read by scan and by get; its checks are Index::check() and,
// after the index is closed, Pool::check(), which compares the allocated blocks with the reachable
// ones.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <perdix/pool.h>

#include "index/common/engine_traits.h"
#include "pm/domain.h"
#include "testing/subject.h"

namespace perdix::testing {

/// Steps of one thread, for a subject that has this one inside. A put's value is drawn.
Step erase_step(std::string key);
Step put_step(std::string key, Kind value_kind, detail::util::Random& random);

std::unique_ptr<Subject> make_index_subject(const IndexInfo& info, const IndexOptions& options,
                                            detail::pm::Domain domain);

/// A subject that begins where caches are persistent, and with other options: the first opening in
/// other domains, or with these options, moves what the ones before have kept.
std::unique_ptr<Subject> make_moved_index_subject(const IndexInfo& info, const IndexOptions& first,
                                                  const IndexOptions& options,
                                                  detail::pm::Domain domain);

/// A subject in a pool that is full, but for a few blocks: steps may be refused.
std::unique_ptr<Subject> make_full_index_subject(const IndexInfo& info, const IndexOptions& options,
                                                 detail::pm::Domain domain);

/// An index that is plugged into Tips by the pool's opening, so that no list of engines has it.
struct PluggedIndex {
  IndexInfo info;
  const detail::index::EngineTraits* traits;
  std::vector<const tips::Plugin*> plugins;
};

/// A subject of a plugged index, in a pool that has room or is full.
std::unique_ptr<Subject> make_plugged_index_subject(const PluggedIndex& index, bool full,
                                                    detail::pm::Domain domain);

}  // namespace perdix::testing
