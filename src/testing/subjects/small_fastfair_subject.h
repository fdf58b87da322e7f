// FAST&FAIR's tree with nodes of four entries, so that the explorer's few keys make trees of
// several levels and the structure modifications of inner nodes meet crashes, too. Nodes of their
// full size are explored as any engine's.
#pragma once

#include <memory>

#include <perdix/types.h>

#include "pm/domain.h"
#include "testing/subject.h"

namespace perdix::testing {

/// Keys and values are of the same kind.
std::unique_ptr<Subject> make_small_fastfair_subject(Kind key, detail::pm::Domain domain);

}  // namespace perdix::testing
