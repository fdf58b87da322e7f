// ElfTable: rows come, go, get words that no dictionary has, and are compacted and built anew.
//
// A row is a key and a value, both strings, with a number before them that many keys share. So
// contents are pairs, and steps of several threads concern different rows. A build replaces all
// rows in one step; only steps of a single thread are builds.
#pragma once

#include <memory>

#include "pm/domain.h"
#include "testing/subject.h"

namespace perdix::testing {

std::unique_ptr<Subject> make_elf_table_subject(detail::pm::Domain domain);

}  // namespace perdix::testing
