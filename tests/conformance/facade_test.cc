// Index, the interface of bytes: it is the same index as the typed class, and numbers are eight
// big-endian bytes.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/contract.h"

namespace perdix::test {
namespace {

TEST(Encoding, NumbersSortAsTheirBytes) {
  Rng rng(seed());
  const auto numbers = make_keys(Kind::u64, rng, 1000, KeyStyle::mixed);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(decode_u64(encoded(numbers[i])), numbers[i].number());
    if (i == 0) continue;
    EXPECT_LT(encoded(numbers[i - 1]), encoded(numbers[i])) << show(numbers[i]);
  }
  EXPECT_EQ(encoded(std::uint64_t{0x0102030405060708}), "\x01\x02\x03\x04\x05\x06\x07\x08");
}

TEST(Encoding, RefusesOtherLengths) {
  for (const std::size_t size : {0, 1, 7, 9, 16}) {
    EXPECT_EQ(error_of([&] { decode_u64(std::string(size, '\0')); }), Errc::invalid_argument);
  }
}

TEST(Encoding, EveryEngineOfTheListHasItsName) {
  const auto names = Index::engines(tips::further_plugins());
  for (const IndexType& type : index_types()) {
    EXPECT_EQ(std::count(names.begin(), names.end(), type.engine), 1) << type.engine;
  }
}

/// get() into a string that is used again, and get_many(), of all keys and one that is not there.
void expect_same_lookups(const Index& index, const Model& model) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : model) keys.push_back(encoded(key));
  std::vector<std::optional<std::string>> values(keys.size());
  index.get_many(std::vector<std::string_view>(keys.begin(), keys.end()), values);
  std::string reused;
  auto next = model.begin();
  for (std::size_t i = 0; i < keys.size(); ++i, ++next) {
    EXPECT_EQ(values[i], encoded(next->second)) << show(next->first);
    ASSERT_TRUE(index.get(keys[i], reused));
    EXPECT_EQ(reused, encoded(next->second)) << show(next->first);
  }
  if (keys.empty()) return;
  std::vector<std::optional<std::string>> too_few(keys.size() - 1);
  EXPECT_EQ(error_of([&] {
              index.get_many(std::vector<std::string_view>(keys.begin(), keys.end()), too_few);
            }),
            Errc::invalid_argument);
}

/// for_each() shows the pairs of the model, each once.
void expect_same_pairs(const Index& index, const Model& model) {
  std::map<std::string, std::string> left;
  for (const auto& [key, value] : model) left.emplace(encoded(key), encoded(value));
  index.for_each([&](std::string_view key, std::string_view value) {
    const auto found = left.find(std::string(key));
    EXPECT_TRUE(found != left.end() && found->second == value) << "pair " << show(key);
    if (found != left.end()) left.erase(found);
    return true;
  });
  EXPECT_TRUE(left.empty()) << left.size() << " pairs were not shown";
}

/// Full contents by the interface of bytes against the model. A scan may start at no bytes, which
/// sort before every number.
void expect_same(const Fixture& fixture, const Index& index, const Model& model) {
  expect_same_lookups(index, model);
  expect_same_pairs(index, model);
  EXPECT_EQ(index.size(), model.size());
  EXPECT_EQ(index.stats().pairs, model.size());
  EXPECT_TRUE(index.check().ok());
  for (const auto& [key, value] : model) {
    EXPECT_TRUE(index.contains(encoded(key))) << show(key);
    EXPECT_EQ(index.get(encoded(key)), encoded(value)) << show(key);
  }
  EXPECT_EQ(index.ordered(), fixture.type().ordered);
  auto next = model.begin();
  const auto scan = [&] {
    index.scan("", [&](std::string_view key, std::string_view value) {
      EXPECT_TRUE(next != model.end() && key == encoded(next->first) &&
                  value == encoded(next->second))
          << "row " << show(key);
      if (next != model.end()) ++next;
      return true;
    });
  };
  if (!fixture.type().ordered) {
    EXPECT_EQ(error_of(scan), Errc::unsupported);
  } else {
    scan();
    EXPECT_TRUE(next == model.end()) << "the scan ended early";
  }
}

const Contract same_index("the_interface_of_bytes_is_the_same_index", [](Fixture& fixture) {
  const auto keys = fixture.keys(100);
  Model model;
  {
    auto typed = fixture.open();
    fill(fixture, typed, model, keys);
    EXPECT_EQ(error_of([&] { Index::open(fixture.pool(), "index"); }), Errc::in_use);
  }
  {
    const auto index = Index::open(fixture.pool(), "index");
    EXPECT_EQ(index->info().name, "index");
    EXPECT_EQ(index->info().engine, fixture.info().engine);
    EXPECT_EQ(index->info().key_kind, fixture.info().key_kind);
    EXPECT_EQ(index->info().value_kind, fixture.info().value_kind);
    expect_same(fixture, *index, model);
    EXPECT_EQ(error_of([&] { fixture.open(); }), Errc::in_use);
  }
  EXPECT_EQ("", compare_all(fixture.open(), model, keys));
});

const Contract same_calls(
    "the_interface_of_bytes_does_what_the_typed_calls_do", [](Fixture& fixture) {
      const auto keys = fixture.keys(100);
      Model model;
      Workload workload(fixture.rng()(), profiles().front(), keys.size());
      {
        const auto index = Index::open_or_create(fixture.pool(), fixture.info());
        for (std::size_t i = 0; i < fixture.count(3000); ++i) {
          const Step step = workload.next();
          const auto& key = keys[step.key];
          const auto value = fixture.small_value();
          switch (step.op) {
            case Op::put:
              index->put(encoded(key), encoded(value));
              model.put(key, value);
              break;
            case Op::insert:
              EXPECT_EQ(index->insert(encoded(key), encoded(value)), model.insert(key, value));
              break;
            case Op::update:
              EXPECT_EQ(index->update(encoded(key), encoded(value)), model.update(key, value));
              break;
            case Op::erase: EXPECT_EQ(index->erase(encoded(key)), model.erase(key)); break;
            default: EXPECT_EQ(index->contains(encoded(key)), model.contains(key)); break;
          }
        }
        expect_same(fixture, *index, model);
      }
      EXPECT_EQ("", compare_all(fixture.open(), model, keys));
    });

const Contract scan_from_number(
    "the_interface_of_bytes_scans_numbers", ordered, [](Fixture& fixture) {
      const auto keys = fixture.keys(200);
      Model model;
      {
        auto typed = fixture.open();
        fill(fixture, typed, model, keys);
      }
      const auto index = Index::open(fixture.pool(), "index");
      if (fixture.key_kind() == Kind::u64) {
        const auto visit = [](std::string_view, std::string_view) { return true; };
        EXPECT_EQ(error_of([&] { index->scan(std::string(9, '\0'), visit); }),
                  Errc::invalid_argument);
      }
      for (std::size_t i = 0; i < keys.size(); i += 11) {
        std::size_t at = i;
        index->scan(encoded(keys[i]), [&](std::string_view key, std::string_view value) {
          EXPECT_EQ(key, encoded(keys[at]));
          EXPECT_EQ(value, encoded(*model.get(keys[at])));
          return ++at < std::min(i + 20, keys.size());
        });
        EXPECT_EQ(at, std::min(i + 20, keys.size()));
      }
    });

const Contract wrong_lengths("the_interface_of_bytes_refuses_other_lengths", [](Fixture& fixture) {
  const auto index = Index::open_or_create(fixture.pool(), fixture.info());
  const std::string number = encoded(std::uint64_t{7});
  for (const std::size_t size : {0, 7, 9}) {
    const std::string odd(size, 'o');
    const auto refused = [&](bool is_number) {
      return is_number ? std::optional(Errc::invalid_argument) : std::nullopt;
    };
    const bool key_is_number = fixture.key_kind() == Kind::u64;
    EXPECT_EQ(error_of([&] { index->put(odd, number); }), refused(key_is_number)) << size;
    EXPECT_EQ(error_of([&] { index->get(odd); }), refused(key_is_number)) << size;
    EXPECT_EQ(error_of([&] { index->erase(odd); }), refused(key_is_number)) << size;
    const bool value_is_number = fixture.value_kind() == Kind::u64;
    EXPECT_EQ(error_of([&] { index->put(number, odd); }), refused(value_is_number)) << size;
    index->erase(number);
  }
  EXPECT_EQ(index->size(), 0U);
});

const Contract wrong_info(
    "the_interface_of_bytes_refuses_other_engines_and_kinds", [](Fixture& fixture) {
      EXPECT_EQ(error_of([&] { Index::open(fixture.pool(), "index"); }), Errc::not_found);
      IndexInfo info = fixture.info();
      info.engine = "no such engine";
      EXPECT_EQ(error_of([&] { Index::open_or_create(fixture.pool(), info); }),
                Errc::invalid_argument);
      EXPECT_TRUE(fixture.pool().indexes().empty());
      Index::open_or_create(fixture.pool(), fixture.info());
      info = fixture.info();
      info.key_kind = info.key_kind == Kind::u64 ? Kind::bytes : Kind::u64;
      EXPECT_EQ(error_of([&] { Index::open_or_create(fixture.pool(), info); }), Errc::wrong_kind);
      info = fixture.info();
      info.value_kind = info.value_kind == Kind::u64 ? Kind::bytes : Kind::u64;
      EXPECT_EQ(error_of([&] { Index::open_or_create(fixture.pool(), info); }), Errc::wrong_kind);
    });

}  // namespace
}  // namespace perdix::test
