// What happens on open: creation with its trial, recovery; destruction.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <perdix/error.h>

#include "alloc/session.h"
#include "index/common/retry.h"
#include "index/tips_of/damage.h"
#include "index/tips_of/demangle.h"
#include "index/tips_of/tips_of.h"
#include "index/tips_of/trial.h"
#include "pm/access.h"
#include "pool/origin.h"

namespace perdix::detail::index::tips_of {
namespace {

Header& header_at(pool::PoolCore& pool, pm::Offset offset) {
  if (!pool.allocator().validate_block(offset, sizeof(Header)))
    throw_damaged_part(pool, "the root");
  Header& header = *pool.at<Header>(offset);
  const bool sound = header.magic == kHeaderMagic && header.bytes <= pool.size() &&
                     header.epoch > 0 && header.name.back() == 0;
  if (!sound) throw_damaged_part(pool, "the header");
  if (header.base != reinterpret_cast<std::uintptr_t>(pool.base()) || !pool.has_fixed_address())
    throw_damaged_part(pool, "the address");
  return header;
}

/// The root word is the commit. The first extent comes later.
void create_header(pool::PoolCore& pool, std::uint64_t& root, const ContainerType& type) {
  pool.fix_address();
  alloc::Session session = pool.allocator().session();
  const pm::Offset offset = session.reserve(sizeof(Header));
  Header header{};
  header.magic = kHeaderMagic;
  const auto random = pool::random_uuid();
  std::memcpy(&header.nonce, random.data(), sizeof header.nonce);
  header.base = reinterpret_cast<std::uintptr_t>(pool.base());
  header.type = type.fingerprint;
  header.bytes = type.bytes;
  header.epoch = 1;
  std::strncpy(header.name.data(), type.name, header.name.size() - 1);
  pool.pm().copy(pool.at<Header>(offset), &header, sizeof header);
  // Durable before the root, by the commit's fence.
  pool.pm().flush(pool.at<Header>(offset), sizeof header);
  session.commit(pm::set_word(root, offset));
}

}  // namespace

Table::Table(pool::IndexHandle handle) : handle_(std::move(handle)) {
  if (pm::load(handle_.root()) != pm::kNull) open();
}

Table::Table(pool::IndexHandle handle, const ContainerType& type, Purpose purpose)
    : handle_(std::move(handle)), type_(type), purpose_(purpose) {
  purpose == Purpose::use ? open_or_create() : open_for_export();
}

void Table::open_or_create() {
  if (pm::load(handle_.root()) == pm::kNull)
    retry_when_full(pool(), [&] { create_header(pool(), handle_.root(), type_); });
  open();
  require_type();
  filter_.emplace(pool_region());
  if (pages_->extents() == 0) pages_->add_extent(first_pages(type_.bytes));
  if (arena().constructed == 0) {
    Trial(*this).run();
    make_container();
  } else {
    require_same_hashes();
  }
}

void Table::open_for_export() {
  if (pm::load(handle_.root()) != pm::kNull) open();
  if (!pages_ || pages_->extents() == 0 || arena().constructed == 0) {
    throw Error(Errc::not_found, fmt::format("{}: there is no container '{}' to export",
                                             pool().path().string(), handle_.name()));
  }
  require_type();
}

Table::~Table() = default;

void Table::open() {
  header_ = &header_at(pool(), pm::load(handle_.root()));
  pages_.emplace(pool(), *header_);
  blocks_.emplace(*pages_);
  if (pages_->extents() == 0) return;  // a crash has ended the creation
  if (head_bytes(header_->bytes) > pages_->bytes(0)) throw_damaged_part(pool(), "the first extent");
  pages_->recover();
}

void Table::require_type() const {
  if (header_->type == type_.fingerprint && header_->bytes == type_.bytes) return;
  throw Error(Errc::wrong_kind,
              fmt::format("{}: the index '{}' holds a container of another type: {}, not {}; if "
                          "the names are the same, a size, the standard library or the version "
                          "that the program gives differs",
                          pool().path().string(), handle_.name(), demangled(header_->name.data()),
                          demangled(type_.name)));
}

/// The remains of the trial are void.
void Table::make_container() {
  WriteScope scope(*this);
  blocks_->format(type_.bytes);
  type_.construct(container());
  arena().constructed = 1;  // durable with the container
  arena().sample = type_.sample(container());
  scope.commit();
}

/// A write that is taken back, since a key may need memory.
void Table::require_same_hashes() {
  const WriteScope scope(*this);
  if (type_.sample(container()) == arena().sample) return;
  throw Error(Errc::wrong_kind,
              fmt::format("{}: a hash function of the container '{}' or of one in its elements "
                          "gives other numbers than when it was created, so elements can't be "
                          "found; it must be the same in each process. Open the container by "
                          "TipsOf::export_only() to copy its elements to another one "
                          "(docs/tips-of.md)",
                          pool().path().string(), handle_.name()));
}

void Table::destroy(pool::PoolCore& pool, std::uint64_t& root) {
  if (pm::load(root) == pm::kNull) return;
  Header& header = header_at(pool, pm::load(root));
  const Pages whole(pool, header);  // throws if the chain is damaged
  DroppedBlocks dropped(pool.allocator());
  whole.walk(root, dropped);
}

}  // namespace perdix::detail::index::tips_of
