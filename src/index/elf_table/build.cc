// Build and compact: both make a generation out of place, and put it in the place of the current
// one by one store.
#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <perdix/error.h>

#include "index/common/retry.h"
#include "index/elf_table/blocks.h"
#include "index/elf_table/elf_table.h"
#include "index/elf_table/row_source.h"
#include "pm/access.h"

namespace perdix::detail::index::elf_table {
namespace {

class Cancelled {};

/// Tells a caller's function the share of a part of the work, from `begin` to `end`.
class PartOfWork {
 public:
  PartOfWork(const Table::Progress& progress, double begin, double end)
      : progress_(progress), begin_(begin), end_(end) {}

  bool operator()(double share) const {
    return !progress_ || progress_(begin_ + share * (end_ - begin_));
  }

 private:
  const Table::Progress& progress_;
  const double begin_;
  const double end_;
};

constexpr double kShareOfEncoding = 0.5;

template <class T>
void add_array(pool::PoolCore& pool, std::uint64_t& word, const T& elements) {
  add_block(pool, word, std::as_bytes(std::span(elements)));
}

/// Codes and dictionary of one column, into a generation that does not count yet.
void write_column(pool::PoolCore& pool, ColumnLayout& column, const ColumnEncoder& encoder) {
  add_array(pool, column.codes, encoder.codes());
  pool.pm().store(column.words, encoder.keys().size());
  add_array(pool, column.keys, encoder.keys());
  add_array(pool, column.bytes, encoder.bytes());
}

/// Which column each dimension has: those of `order`, then the others, those with the fewest
/// different values first.
std::vector<unsigned> complete_order(std::span<const unsigned> order,
                                     std::span<const std::uint64_t> cardinalities) {
  std::vector<unsigned> columns(order.begin(), order.end());
  std::vector<unsigned> others;
  for (unsigned i = 0; i < cardinalities.size(); ++i) {
    if (std::find(order.begin(), order.end(), i) == order.end()) others.push_back(i);
  }
  std::stable_sort(others.begin(), others.end(),
                   [&](unsigned a, unsigned b) { return cardinalities[a] < cardinalities[b]; });
  columns.insert(columns.end(), others.begin(), others.end());
  return columns;
}

/// Encodes all columns, one after the other, and writes them. Returns their cardinalities.
std::vector<std::uint64_t> write_columns(pool::PoolCore& pool, GenerationLayout& generation,
                                         const Schema& schema, const RowSource& source,
                                         const Table::Progress& progress) {
  const std::uint64_t tids = source.tids();
  std::vector<std::uint64_t> cardinalities;
  for (unsigned i = 0; i < schema.size(); ++i) {
    const double width = kShareOfEncoding / static_cast<double>(schema.size());
    const PartOfWork report(progress, i * width, (i + 1) * width);
    ColumnEncoder encoder(schema[i].type, tids);
    source.encode(i, encoder, [&](std::uint64_t rows) {
      if (!report(static_cast<double>(rows) / static_cast<double>(tids))) throw Cancelled();
    });
    encoder.finish();
    write_column(pool, columns_of(generation)[i], encoder);
    cardinalities.push_back(encoder.cardinality());
  }
  return cardinalities;
}

/// The Elf of a generation whose columns are complete. Rows that were erased get in, since a row's
/// TID is its place in the columns, and out again.
void build_elf(Version& version, std::span<const std::span<const std::uint32_t>> codes,
               const RowSource& source, const Table::Progress& progress) {
  const std::vector<Elf::Tid> erased = source.erased();
  const double built = erased.empty() ? 1 : (1 + kShareOfEncoding) / 2;
  if (version.tids() == 0) return;
  if (!version.elf().build(codes, PartOfWork(progress, kShareOfEncoding, built))) throw Cancelled();
  if (erased.empty()) return;
  for (const Elf::Tid tid : erased) version.elf().erase(tid);
  if (!version.elf().compact(PartOfWork(progress, built, 1))) throw Cancelled();
}

}  // namespace

bool Table::build(std::span<const ElfColumnData> columns, const ElfBuildOptions& options) {
  ColumnSource source(schema_, columns);
  std::vector<unsigned> order;
  for (const std::string& name : options.order) {
    const unsigned column = column_number(schema_, name);
    if (std::find(order.begin(), order.end(), column) != order.end()) {
      throw Error(Errc::invalid_argument,
                  fmt::format("column '{}' is twice in the order of columns", name));
    }
    order.push_back(column);
  }
  return replace([&] { return make_version(source, order, options.progress); });
}

bool Table::compact(const Progress& progress) {
  return replace(
      [&] { return make_version(TableSource(schema_, version()), current_order(), progress); });
}

/// Calls make(), which makes a generation and opens it, and puts it in the place of the current
/// one. If that fails, or is cancelled, its blocks are freed.
template <class Make>
bool Table::replace(const Make& make) {
  const std::unique_lock building(building_, std::try_to_lock);
  if (!building) throw_in_use("is being built or compacted already");
  if (!free_replaced()) throw_in_use("has rows of before its last build that a query still shows");
  return retry_when_full(pool(), [&] {
    try {
      const std::lock_guard lock(writers_);
      install(make());
    } catch (const Cancelled&) {
      free_spare(pool(), *root_);
      return false;
    } catch (...) {
      free_spare(pool(), *root_);
      throw;
    }
    cache_again();
    free_replaced();
    return true;
  });
}

void Table::throw_in_use(std::string_view why) const {
  throw Error(Errc::in_use,
              fmt::format("index '{}' {}; call again when that has ended", handle_.name(), why));
}

/// The caller holds writers_.
auto Table::make_version(const RowSource& source, std::span<const unsigned> order,
                         const Progress& progress) -> std::unique_ptr<Pinned> {
  const unsigned number = 1 - current_of(*root_);
  GenerationLayout& generation = add_generation(pool(), root_->generations[number], schema_.size());
  const auto cardinalities = write_columns(pool(), generation, schema_, source, progress);
  const std::vector<unsigned> columns = complete_order(order, cardinalities);
  for (unsigned dimension = 0; dimension < columns.size(); ++dimension)
    pool().pm().store(columns_of(generation)[columns[dimension]].dimension, dimension);
  pool().pm().store(generation.tids, source.tids());
  // The commit of `current` fences, and until then no caller asks for the generation.
  pool().pm().flush(&generation, sizeof generation + columns.size() * sizeof(ColumnLayout));
  auto next = std::make_unique<Pinned>(*this, number);
  std::vector<std::span<const std::uint32_t>> codes;
  for (const unsigned column : columns) codes.push_back(next->version.codes(column));
  build_elf(next->version, codes, source, progress);
  return next;
}

/// The commit of build and compact. The caller holds writers_.
void Table::install(std::unique_ptr<Pinned> next) {
  pool().pm().commit(root_->current, 1 - current_of(*root_));  // fences first: all is durable
  next_tid_.reset();
  inserted_rows_.reset();
  {
    const std::lock_guard lock(pins_);
    replaced_ = std::exchange(current_, std::move(next));
  }
  limit_.follow(version().tids(), shape_.least_delta);
}

/// The policy in force goes over to the Elf that a build or compact has made. Queries need no
/// cache, so what keeps it from being made is no error.
void Table::cache_again() noexcept {
  try {
    const std::lock_guard lock(caching_);
    Pin(*this).elf().cache(policy_);
  } catch (const std::exception&) {  // no memory
  }
}

/// Frees the generation that a build or compact has replaced, when no query reads it any more.
/// False if one shows its rows to a visitor. The caller holds building_, and not writers_: a
/// visitor of such a query may insert rows.
bool Table::free_replaced() {
  std::unique_ptr<Pinned> replaced;
  {
    std::unique_lock lock(pins_);
    if (replaced_ == nullptr) return true;
    unpinned_.wait(lock, [&] { return replaced_->pins == replaced_->visitors; });
    if (replaced_->visitors != 0) return false;
    replaced = std::move(replaced_);
  }
  replaced.reset();
  try {
    free_spare(pool(), *root_);
  } catch (const std::exception&) {  // damaged: it stays where it is
  }
  return true;
}

/// The columns in the order of dimensions.
std::vector<unsigned> Table::current_order() const {
  std::vector<unsigned> order;
  for (unsigned dimension = 0; dimension < schema_.size(); ++dimension)
    order.push_back(version().column(dimension));
  return order;
}

}  // namespace perdix::detail::index::elf_table
