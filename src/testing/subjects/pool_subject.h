// A pool without engines: its creation, its directory, closing and opening.
//
// It begins with a blank medium. Whatever a crash of the creation leaves is either refused as no
// pool, and then the file tells that it was meant to become one (or is still blank), or opens as a
// whole one. Contents are the pool's size and its indexes, with the words that engines have as
// their roots.
#pragma once

#include <memory>

#include "pm/domain.h"
#include "testing/subject.h"

namespace perdix::testing {

std::unique_ptr<Subject> make_pool_subject(detail::pm::Domain domain);

}  // namespace perdix::testing
