// Elf with blocks and segments so small that the explorer's few rows make lists of several blocks,
// and chains of segments.
//
// A row is a key and a value, with a dimension before them that many keys share: so contents are
// pairs, and steps of several threads concern different rows. A build replaces all rows in one
// step; only steps of a single thread are builds.
#pragma once

#include <memory>

#include "pm/domain.h"
#include "testing/subject.h"

namespace perdix::testing {

std::unique_ptr<Subject> make_elf_subject(detail::pm::Domain domain);

}  // namespace perdix::testing
