#include "fuzz/pool_images.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include <perdix/perdix.h>
#include <perdix/tips_indexes.h>

#include "alloc/calloc.h"
#include "alloc/layout.h"
#include "alloc/session.h"
#include "index/elf/elf.h"
#include "index/elf/test_points.h"
#include "pool/claim_image.h"
#include "pool/layout.h"
#include "pool/pool_core.h"
#include "pool/superblock.h"
#include "samples/engines.h"
#include "samples/points/points.h"
#include "util/checksum.h"

namespace perdix::fuzz {
namespace {

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

PoolOptions small() {
  PoolOptions options;
  options.plugins = tips::further_plugins();
  options.durability = Durability::process;
  options.max_size = std::uint64_t{64} << 20;
  return options;
}

/// Those with which few keys have the structure of many.
IndexOptions options_of(const std::string& engine) {
  const detail::index::EngineTraits* traits =
      detail::index::find_traits(engine, samples::AllEngines());
  return traits == nullptr ? IndexOptions{} : detail::index::options_or_defaults(traits->small);
}

/// Enough for several leaves, with gaps that erased pairs left.
void fill(const Pool& pool, const std::string& engine) {
  for (const Kind keys : {Kind::u64, Kind::bytes}) {
    for (const Kind values : {Kind::u64, Kind::bytes}) {
      const std::string name =
          engine + "-" + std::string(to_string(keys)) + "-" + std::string(to_string(values));
      const auto index =
          Index::open_or_create(pool, {name, engine, keys, values}, options_of(engine));
      for (std::uint64_t i = 0; i < 150; ++i) {
        const auto number = encode_u64(i * 1000);
        std::string key(number.begin(), number.end());
        const std::string value = key;
        if (keys == Kind::bytes) key += std::string(i % 40, 'k');
        index->put(key, values == Kind::u64 ? value : value + std::string(i % 90, 'v'));
        if (i % 7 == 0) index->erase(key);
        if (i % 5 == 0) index->insert_ahead(key, value);  // a duplicate, in some engines
      }
    }
  }
}

/// Lists of several blocks, segments, and rows that were erased from both.
void fill_elf(const Pool& pool) {
  IndexInfo info{"elf", std::string(detail::index::elf::kEngineName), Kind::u64, Kind::u64};
  info.model = DataModel::points;
  detail::index::elf::Table table(pool.core()->open_index(info), 3,
                                  detail::index::elf::kSmallShape);
  detail::util::Random random(1);
  std::array<std::vector<std::uint32_t>, 3> columns;
  for (unsigned row = 0; row < 90; ++row) {
    for (auto& column : columns) column.push_back(detail::index::elf::random_value(random));
  }
  const std::array<std::span<const std::uint32_t>, 3> spans = {columns[0], columns[1], columns[2]};
  table.build(spans, nullptr);
  for (unsigned row = 0; row < 10; ++row) table.insert(detail::index::elf::random_row(random, 3));
  for (const unsigned tid : {3, 40, 93}) table.erase(tid);
}

/// Columns with and without a dictionary, and rows beside them.
void fill_elf_table(const Pool& pool) {
  ElfTable table(pool, "elf_table", {{"number", ElfType::int64}, {"word", ElfType::string}});
  std::vector<std::int64_t> numbers;
  std::vector<std::string> words;
  for (int row = 0; row < 30; ++row) {
    numbers.push_back(row % 4 - 1);
    words.push_back(std::string(static_cast<std::size_t>(row % 6), 'w'));
  }
  table.build({std::span<const std::int64_t>(numbers), std::span<const std::string>(words)});
  for (const std::int64_t number : {5, 6, 7}) table.insert({number, "inserted"});
  for (const unsigned tid : {3, 31}) table.erase(tid);
}

std::uint64_t word_at(const std::vector<std::byte>& bytes, std::uint64_t offset) {
  std::uint64_t word = 0;
  std::memcpy(&word, &bytes[offset], sizeof word);
  return word;
}

void set_word(std::vector<std::byte>& bytes, std::uint64_t offset, std::uint64_t word) {
  std::memcpy(&bytes[offset], &word, sizeof word);
}

void repair_superblocks(std::vector<std::byte>& bytes) {
  for (const std::uint64_t offset : detail::pool::kSuperblockOffset) {
    detail::pool::Superblock superblock;
    std::memcpy(&superblock, &bytes[offset], sizeof superblock);
    superblock.checksum = detail::pool::checksum_of(superblock);
    std::memcpy(&bytes[offset], &superblock, sizeof superblock);
  }
}

/// As alloc/record.cc computes it, for records that are there.
void repair_records(std::vector<std::byte>& bytes) {
  for (unsigned lane = 0; lane < detail::alloc::kLanes; ++lane) {
    const std::uint64_t offset =
        detail::alloc::kLanesOffset + lane * sizeof(detail::alloc::LaneLayout);
    std::array<std::uint64_t, detail::alloc::kRecordWords> words;
    std::memcpy(words.data(), &bytes[offset], sizeof words);
    if (words[0] == 0) continue;
    const std::uint64_t shape = words[1] >> detail::alloc::kOffsetBits;
    const std::uint64_t count = detail::alloc::kRecordHeaderWords + (shape & 7) + (shape >> 3 & 7) +
                                2 * (shape >> 6 & 1) + 2 * (shape >> 7 & 1);
    if (count > words.size()) continue;
    words[0] = std::max<std::uint64_t>(detail::util::checksum(&words[1], (count - 1) * 8), 1);
    std::memcpy(&bytes[offset], words.data(), sizeof words);
  }
}

void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw std::runtime_error("can't write " + path.string());
}

}  // namespace

PoolImages::PoolImages(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "base.pool";
  Pool pool = Pool::create(path, small());
  for (const std::string& engine : Index::engines(tips::further_plugins())) fill(pool, engine);
  fill_elf(pool);
  fill_elf_table(pool);
  for (std::uint64_t i = 0; i < 9; ++i)
    samples::points::Table::open_or_create(pool, "points")->add({i, i * i});
  {
    detail::alloc::Session session = pool.core()->allocator().session();
    session.reserve(100);
    session.commit_when(*pool.core()->at<std::uint64_t>(detail::alloc::kLanesOffset + 4088), 1, 1);
    session.log();
    killed_ = base_of(read_file(path));
  }
  pool.close();
  closed_ = base_of(read_file(path));
  std::filesystem::remove(path);
}

PoolImages::Base PoolImages::base_of(std::vector<std::byte> bytes) {
  const std::array<std::uint64_t, 5> ends = {
      detail::pool::kDirectoryOffset, detail::pool::kPoolAreaSize, detail::alloc::kLanesOffset,
      detail::alloc::kLanesEnd, bytes.size()};
  Base base;
  std::uint64_t offset = 0;
  for (const std::uint64_t end : ends) {
    auto& part = base.parts.emplace_back();
    for (; offset < end; offset += 8) {
      if (word_at(bytes, offset) != 0) part.push_back(offset);
    }
    if (part.empty()) part.push_back(end - 8);
  }
  base.bytes = std::move(bytes);
  return base;
}

void PoolImages::change(std::vector<std::byte>& bytes, const Base& base,
                        std::span<const std::uint8_t, 8> how) {
  const auto& part = base.parts[how[1] % base.parts.size()];
  const std::uint64_t offset = part[(how[2] | how[3] << 8) % part.size()];
  std::uint32_t number = 0;
  std::memcpy(&number, &how[4], sizeof number);
  const std::uint64_t word = word_at(bytes, offset);
  switch (how[0] % 7) {
    case 0: return set_word(bytes, offset, number);
    case 1: return set_word(bytes, offset, word ^ std::uint64_t{1} << number % 64);
    case 2: return set_word(bytes, offset, word + static_cast<std::uint64_t>(std::int8_t(number)));
    case 3: return set_word(bytes, offset, word_at(bytes, part[number % part.size()]));
    case 4: return set_word(bytes, offset, ~std::uint64_t{0} << number % 64);
    case 5: return set_word(bytes, offset, number * 0x9e3779b97f4a7c15);
    default: return set_word(bytes, offset / 8 % (bytes.size() / 8) * 8, offset);
  }
}

void PoolImages::write(std::span<const std::uint8_t> input,
                       const std::filesystem::path& path) const {
  const std::uint8_t choice = input.empty() ? 0 : input[0];
  input = input.subspan(std::min<std::size_t>(input.size(), 1));
  if (choice & 4) return write_file(path, std::as_bytes(input));
  const Base& base = choice & 1 ? closed_ : killed_;
  std::vector<std::byte> bytes = base.bytes;
  std::size_t end = bytes.size();
  if (choice & 8 && input.size() >= 2) {
    end = std::min<std::size_t>(end, std::size_t{4096} * (input[0] | input[1] << 8));
    input = input.subspan(2);
  }
  for (; input.size() >= 8; input = input.subspan(8)) change(bytes, base, input.first<8>());
  if (choice & 16) repair_records(bytes);
  if (choice & 2) repair_superblocks(bytes);
  write_file(path, std::span(bytes).first(end));
  detail::pool::claim_image(path);  // else no image of a pool that was open would be looked at
}

}  // namespace perdix::fuzz
