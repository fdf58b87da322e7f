#include "index/tips_of/trial.h"

#include <optional>
#include <string>

#include <fmt/format.h>

#include <perdix/error.h>

#include "index/tips_of/demangle.h"
#include "index/tips_of/program_memory.h"

namespace perdix::detail::index::tips_of {
namespace {

constexpr unsigned kTrialElements = 100;

}  // namespace

void Trial::refuse(const std::string& why) const {
  throw Error(Errc::unsupported,
              fmt::format("{}: a container of the type {} can't be made durable, since {} "
                          "(docs/tips-of.md)",
                          table_.pool().path().string(), demangled(table_.type_.name), why));
}

/// What the open write has stored so far. The numbers of a trial are small, so all addresses can be
/// told from them.
void Trial::require_own_addresses() const {
  const AddressFilter all(table_.pool_region(), 0);
  if (const auto found = table_.foreign_address(all)) refuse("it keeps " + *found);
}

/// A write sees only words that it changes. So the container must not find what it will store.
void Trial::clear_addresses() const {
  table_.pages_->for_each_changed_word([&](std::uint64_t* word) {
    if (table_.filter_->may_be_address(*word)) *word = 0;
  });
}

void Trial::fill() {
  WriteScope scope(table_);
  const ContainerType& type = table_.type_;
  table_.blocks_->format(type.bytes);
  type.construct(table_.container());
  type.settle(table_.container());
  type.fill(table_.container(), kTrialElements);
  require_own_addresses();
  scope.commit();
}

/// In a write, so that a store does not end the program.
void Trial::read() {
  WriteScope scope(table_);
  std::uint64_t count = 0;
  if (!table_.type_.count(table_.container(), count))
    refuse("its size() is not the number of elements that it shows");
  if (count == 0) refuse("it has no elements after some were inserted");
  if (table_.pages_->dirty() > 0) refuse("it stores to its memory while it is only read");
}

void Trial::destroy() {
  WriteScope scope(table_);
  const ContainerType& type = table_.type_;
  type.exercise(table_.container());
  std::uint64_t count = 0;
  if (!type.count(table_.container(), count))
    refuse("its size() is not the number of elements that it shows after it was moved");
  type.settle(table_.container());
  require_own_addresses();
  type.clear(table_.container());
  type.destroy(table_.container());
  if (table_.foreign_) refuse("it gives back memory that it did not get from its allocator");
  if (table_.arena().live_blocks != 0) refuse("it does not give back all memory that it took");
  clear_addresses();
  scope.commit();
}

void Trial::run() {
  fill();
  read();
  destroy();
}

}  // namespace perdix::detail::index::tips_of
