// The allocator alone, without pool and engine: blocks that words in the pool's own area link to.
//
// Its contents are the linked blocks, one key per word; its check is that exactly those are
// allocated. Steps go through every way in which an operation can commit: by a word, by the record
// itself, with redo and undo stores, cancelled.
#pragma once

#include <memory>

#include "pm/domain.h"
#include "testing/subject.h"

namespace perdix::testing {

enum class CallocStart {
  any,   ///< up to half full, with any sizes
  full,  ///< all space is in use or in the hands of some class: others must take it back
};

/// Steps of a full one may be refused, so they must be of one thread.
std::unique_ptr<Subject> make_calloc_subject(CallocStart start, detail::pm::Domain domain);

}  // namespace perdix::testing
