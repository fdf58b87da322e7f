#include "index/elf_table/blocks.h"

#include <algorithm>
#include <string>

#include "alloc/session.h"
#include "pm/access.h"

namespace perdix::detail::index::elf_table {
namespace {

/// How much is made durable in one step while a block is filled: a journal has room for it.
constexpr std::size_t kPiece = std::size_t{1} << 20;

constexpr std::uint64_t bytes_of_generation(std::uint64_t columns) {
  return sizeof(GenerationLayout) + columns * sizeof(ColumnLayout);
}

/// Fills the block of a generation that nothing leads to yet.
GenerationLayout& write_generation(pool::PoolCore& pool, pm::Offset block, std::uint64_t columns) {
  auto& generation = *pool.at<GenerationLayout>(block);
  pool.pm().zero(&generation, bytes_of_generation(columns));
  for (std::uint64_t i = 0; i < columns; ++i)
    pool.pm().store(columns_of(generation)[i].dimension, i);
  pool.pm().store(generation.magic, kGenerationMagic);
  // The commit fences.
  pool.pm().flush(&generation, bytes_of_generation(columns));
  return generation;
}

}  // namespace

Root& checked_root(const pool::PoolCore& pool, pm::Offset offset) {
  const auto valid = [&](const Root& root) {
    return pm::load(root.magic) == kRootMagic && root.columns >= 1 &&
           root.columns <= ElfTable::kMaxColumns && pm::load(root.current) <= 1 &&
           root.schema_bytes <= pool.size() &&
           pool.contains(offset, sizeof root + root.schema_bytes);
  };
  return pool::checked<Root>(pool, offset, "the root of an ElfTable", valid);
}

Schema schema_of(const pool::PoolCore& pool, const Root& root) {
  const auto* const bytes = reinterpret_cast<const char*>(&root + 1);
  pm::on_read(bytes, root.schema_bytes);
  std::optional<Schema> schema = decode_schema({bytes, root.schema_bytes});
  if (!schema || schema->size() != root.columns)
    pool::throw_corrupt(pool, "the columns of an ElfTable", pool.offset(bytes));
  return *std::move(schema);
}

GenerationLayout& checked_generation(const pool::PoolCore& pool, pm::Offset offset,
                                     std::uint64_t columns) {
  const auto valid = [&](const GenerationLayout& generation) {
    const std::uint64_t magic = pm::load(generation.magic);
    if (magic != kGenerationMagic && magic != kFirstGenerationMagic) return false;
    return pm::load(generation.tids) <= Elf::kMaxRows && rows_of(generation) <= Elf::kMaxRows &&
           pool.contains(offset, bytes_of(generation, columns));
  };
  return pool::checked<GenerationLayout>(pool, offset, "a generation of an ElfTable", valid);
}

void create_root(pool::PoolCore& pool, std::uint64_t& root_word, const Schema& schema) {
  const std::string names = encode_schema(schema);
  alloc::Session session = pool.allocator().session();
  const pm::Offset root_block = session.reserve(sizeof(Root) + names.size());
  const pm::Offset generation = session.reserve(bytes_of_generation(schema.size()));
  write_generation(pool, generation, schema.size());
  const Root root = {.magic = kRootMagic,
                     .columns = schema.size(),
                     .schema_bytes = names.size(),
                     .current = 0,
                     .generations = {generation, pm::kNull}};
  auto* const to = pool.at<Root>(root_block);
  pool.pm().copy(to, &root, sizeof root);
  pool.pm().copy(to + 1, names.data(), names.size());
  pool.pm().flush(to, sizeof root + names.size());  // the commit fences
  session.commit(pm::set_word(root_word, root_block));
}

GenerationLayout& add_generation(pool::PoolCore& pool, std::uint64_t& word, std::uint64_t columns) {
  alloc::Session session = pool.allocator().session();
  const pm::Offset block = session.reserve(bytes_of_generation(columns));
  GenerationLayout& generation = write_generation(pool, block, columns);
  session.commit(pm::set_word(word, block));
  return generation;
}

void add_block(pool::PoolCore& pool, std::uint64_t& word, std::span<const std::byte> contents) {
  if (contents.empty()) return;
  alloc::Session session = pool.allocator().session();
  const pm::Offset block = session.reserve(contents.size());
  std::byte* const to = pool.base() + block;
  for (std::size_t begin = 0; begin < contents.size(); begin += kPiece) {
    const std::size_t bytes = std::min(kPiece, contents.size() - begin);
    pool.pm().copy(to + begin, contents.data() + begin, bytes);
    // Before the commit, in pieces: one sync of all would be too much for a journal.
    pool.pm().persist(to + begin, bytes);
  }
  session.commit(pm::set_word(word, block));
}

}  // namespace perdix::detail::index::elf_table
