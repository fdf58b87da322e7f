#include "index/tips_of/tips_of.h"

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::detail::index::tips_of {
namespace {

// The container whose write() this thread is in; null: none. A TipsAllocator has to find it here,
// since the code that makes allocators knows no container.
thread_local Table* current_table = nullptr;

[[noreturn]] void throw_outside() {
  throw Error(
      Errc::invalid_argument,
      "a TipsAllocator has memory inside of TipsOf::write() only, on the thread that called "
      "it; look keys up by a type without memory of its own, as std::string_view");
}

}  // namespace

void* allocate(std::size_t bytes) {
  if (current_table == nullptr) throw_outside();
  return current_table->allocate(bytes);
}

/// Outside of a write nothing can be freed: the object has outlived the write that made it, and its
/// block stays allocated.
void deallocate(void* block, std::size_t bytes) noexcept {
  if (current_table != nullptr) current_table->free(block, bytes);
}

void forget(void* object, std::size_t bytes) noexcept {
  if (current_table != nullptr) current_table->forget(object, bytes);
}

void* Table::allocate(std::uint64_t bytes) { return blocks_->allocate(bytes); }

void Table::free(void* block, std::uint64_t bytes) noexcept {
  if (!blocks_->free(block, bytes)) foreign_ = true;
}

void Table::begin_write() {
  if (current_table != nullptr) {
    throw Error(Errc::invalid_argument,
                "a write() of a TipsOf can't be called inside of another one's, or its own");
  }
  mutex_.lock();
  try {
    pool().require_writable();
    require_not_exported();
    pages_->begin();
  } catch (...) {
    mutex_.unlock();
    throw;
  }
  foreign_ = false;
  faults_.emplace(*pages_);
  current_table = this;
}

void Table::require_not_exported() const {
  if (purpose_ == Purpose::use) return;
  throw Error(Errc::unsupported,
              fmt::format("{}: the container '{}' is open for export, which changes nothing; open "
                          "it by the constructor of TipsOf to write to it",
                          pool().path().string(), handle_.name()));
}

void Table::end_write() noexcept {
  current_table = nullptr;
  faults_.reset();
  mutex_.unlock();
}

void Table::prepare_commit() {
  pool().require_usable();  // the callable may have forked, and this may be the child
  if (foreign_) {
    throw Error(Errc::invalid_argument,
                fmt::format("{}: a write() of the container '{}' gave back memory that is not the "
                            "container's own; objects with a TipsAllocator must not come from "
                            "elsewhere",
                            pool().path().string(), handle_.name()));
  }
  if (pages_->dirty() == 0 || arena().constructed == 0) return;
  settle();
  if (const std::optional<std::string> found = foreign_address(*filter_)) {
    throw Error(
        Errc::unsupported,
        fmt::format("{}: a write() was taken back, since the container '{}' would keep {}; when "
                    "the pool is opened again, that memory lies elsewhere. Give a container that "
                    "is empty memory before the write() ends, by reserve(1), and keep no pointers "
                    "to what lies outside of the pool (docs/tips-of.md)",
                    pool().path().string(), handle_.name(), *found));
  }
}

void Table::commit() {
  pages_->commit();
  end_write();
  pool().require_usable();  // throws if the device has failed to make the write durable
}

void Table::begin_read() const {
  if (current_table == this) {
    throw Error(Errc::invalid_argument,
                "a read() of a TipsOf can't be called inside of its write()");
  }
  mutex_.lock_shared();
}

void Table::abandon() noexcept {
  current_table = nullptr;
  faults_.reset();
}

void Table::roll_back() noexcept {
  pages_->roll_back();
  end_write();
}

}  // namespace perdix::detail::index::tips_of
