// Build and compact: both make a generation out of place, while rows come and go, and put it in the
// place of the current one by one store.
#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <perdix/error.h>

#include "index/common/retry.h"
#include "index/elf/turn.h"
#include "index/elf_table/blocks.h"
#include "index/elf_table/elf_table.h"
#include "index/elf_table/owned.h"
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
  const std::uint64_t all = source.rows();
  std::vector<std::uint64_t> cardinalities;
  for (unsigned i = 0; i < schema.size(); ++i) {
    const double width = kShareOfEncoding / static_cast<double>(schema.size());
    const PartOfWork report(progress, i * width, (i + 1) * width);
    ColumnEncoder encoder(schema[i].type, all);
    source.encode(i, encoder, [&](std::uint64_t rows) {
      if (!report(static_cast<double>(rows) / static_cast<double>(all))) throw Cancelled();
    });
    encoder.finish();
    write_column(pool, columns_of(generation)[i], encoder);
    cardinalities.push_back(encoder.cardinality());
  }
  return cardinalities;
}

/// The Elf of a generation whose columns are complete.
void build_elf(Version& version, std::span<const std::span<const std::uint32_t>> codes,
               const Table::Progress& progress) {
  if (version.rows() == 0) return;
  if (!version.elf().build(codes, PartOfWork(progress, kShareOfEncoding, 1))) throw Cancelled();
}

/// Rows that were erased from another generation. Those that were gone when the rows of this one
/// were read have no slot.
void erase_all(Version& version, std::span<const Elf::Tid> tids) {
  for (const Elf::Tid tid : tids) {
    if (const std::optional<Slot> slot = version.slot_of(tid)) version.elf().erase(*slot);
  }
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
  return replace([&] { install(make_version(source, order, options.progress)); });
}

bool Table::compact(const Progress& progress) {
  return replace([&] {
    const elf::ErasedMeanwhile::EndOfNoting noting(erased_meanwhile_, writers_);
    fold(progress);
  });
}

void Table::fold(const Progress& progress) {
  const TableSource source(schema_, version(), seal());
  std::unique_ptr<Pinned> next =
      make_version(source, current_order(), progress, version().shared_inserted());
  catch_up(next->version);
  install(std::move(next));
}

/// From now on erases are noted. Rows that are inserted from now on have this TID or a higher one.
std::uint64_t Table::seal() {
  const std::lock_guard lock(writers_);
  erased_meanwhile_.begin();
  return end_tid();
}

/// Calls work(), which makes a generation, opens it, and puts it in the place of the current one.
/// If that fails, or is cancelled, its blocks are freed.
template <class Work>
bool Table::replace(const Work& work) {
  const elf::Turn turn(building_);
  if (!turn) throw_in_use("is being built or compacted already");
  if (!free_replaced()) throw_in_use("has rows of before its last build that a query still shows");
  return retry_when_full(pool(), [&] {
    try {
      work();
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

/// `inserted`: the tree that the generation is going to take over; null: it gets a new one.
auto Table::make_version(const RowSource& source, std::span<const unsigned> order,
                         const Progress& progress, const std::shared_ptr<InsertedRows>& inserted)
    -> std::unique_ptr<Pinned> {
  const unsigned number = 1 - current_of(*root_);
  GenerationLayout& generation = add_generation(pool(), root_->generations[number], schema_.size());
  const auto cardinalities = write_columns(pool(), generation, schema_, source, progress);
  const std::vector<unsigned> columns = complete_order(order, cardinalities);
  for (unsigned dimension = 0; dimension < columns.size(); ++dimension)
    pool().pm().store(columns_of(generation)[columns[dimension]].dimension, dimension);
  add_array(pool(), generation.numbers, source.numbers());
  pool().pm().store(generation.rows, source.rows());
  pool().pm().store(generation.tids, source.tids());
  // The commit of `current` fences, and until then no caller asks for the generation.
  pool().pm().flush(&generation, sizeof generation + columns.size() * sizeof(ColumnLayout));
  auto next = std::make_unique<Pinned>(*this, number, inserted);
  std::vector<std::span<const std::uint32_t>> codes;
  for (const unsigned column : columns) codes.push_back(next->version.codes(column));
  build_elf(next->version, codes, progress);
  return next;
}

/// Erases what was noted so far, so that little is left for install(). Ends, since each row is
/// erased once.
void Table::catch_up(Version& next) {
  constexpr std::size_t kFew = 64;
  for (;;) {
    std::vector<Tid> erased;
    {
      const std::lock_guard lock(writers_);
      if (erased_meanwhile_.size() <= kFew) return;
      erased = erased_meanwhile_.take();
    }
    erase_all(next, erased);
  }
}

/// The commit of build and compact.
void Table::install(std::unique_ptr<Pinned> next) {
  const std::lock_guard lock(writers_);
  erase_all(next->version, erased_meanwhile_.take());
  if (&next->version.inserted() == &version().inserted()) next->version.take_over(version());
  pool().pm().commit(root_->current, 1 - current_of(*root_));  // fences first: all is durable
  next_tid_.reset();
  inserted_rows_.reset();
  {
    const std::lock_guard pins(pins_);
    replaced_ = std::exchange(current_, std::move(next));
  }
  limit_.follow(version().rows(), shape_.min_delta);
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

/// Frees the generation that a build or compact has replaced, and the rows of the tree that only it
/// needed, when no query reads it any more. False if one shows its rows to a visitor. The caller
/// has building_, and does not hold writers_: a visitor of such a query may insert rows.
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
    version().erase_folded();
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
