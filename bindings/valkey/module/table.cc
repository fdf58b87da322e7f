#include "table.h"

#include <charconv>

namespace perdix::valkey {
namespace {

constexpr std::string_view kPrefix = "table:";

}  // namespace

Index& Table::index() {
  if (Index* open = open_.load(std::memory_order_acquire); open != nullptr) return *open;
  const std::lock_guard lock(mutex_);
  if (!index_) {
    index_ = Index::open_or_create(pool_, info_, options_);
    open_.store(index_.get(), std::memory_order_release);
  }
  return *index_;
}

Index* Table::index_if_open() const { return open_.load(std::memory_order_acquire); }

void Table::close() noexcept {
  const std::lock_guard lock(mutex_);
  open_.store(nullptr, std::memory_order_release);
  index_.reset();
}

void for_each_pair(const Index& index, Visitor<std::string, std::string> visit) {
  if (index.ordered()) {
    index.scan("", visit);
  } else {
    index.for_each(visit);
  }
}

std::string table_name(std::uint64_t id) { return std::string(kPrefix) + std::to_string(id); }

std::uint64_t table_id(std::string_view name) {
  if (!name.starts_with(kPrefix)) return 0;
  name.remove_prefix(kPrefix.size());
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
  return error == std::errc() && end == name.data() + name.size() ? id : 0;
}

}  // namespace perdix::valkey
