// Runs operations on an index and on the reference map. What compares returns a description
// of the differences, or an empty string.
#pragma once

#include <string>
#include <vector>

#include "support/any_index.h"
#include "support/model.h"
#include "support/workload.h"

namespace perdix::test {

/// Makes a put, which returns true, an insert, an update or an erase.
bool make_change(AnyIndex& index, Op op, DatumView key, DatumView value);

/// A report's problems in one string.
std::string problems_of(const CheckReport& report);

std::string compare_scan(const AnyIndex& index, const Model& model, DatumView from,
                         std::size_t limit);

/// All pairs, as for_each() shows them.
std::string compare_pairs(const AnyIndex& index, const Model& model);

/// Runs one operation on both; what they return must be the same. An index without order gets
/// instead of scanning.
std::string compare_step(AnyIndex& index, Model& model, const Step& step, const Datum& key,
                         const Datum& value);

/// Sizes and the index's own check.
std::string compare_summary(const AnyIndex& index, const Model& model);

/// Compares everything: sizes, check(), all pairs, a full scan, and a lookup of each of `keys`,
/// which should hold all keys that may be in the index and some that are not.
std::string compare_all(const AnyIndex& index, const Model& model, const std::vector<Datum>& keys);

}  // namespace perdix::test
