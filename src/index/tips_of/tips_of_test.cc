// Each tested container: against a model, reopened, taken back, killed, in full pools.
#include "index/tips_of/tips_of.h"

#include <cctype>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "index/tips_of/test_containers.h"
#include "util/random.h"

namespace perdix::detail::index::tips_of {
namespace {

template <class Calls>
class EachContainer : public TipsOfTest {
 protected:
  using C = typename Calls::Container;
  using Opened = TipsOf<C>;

  /// A key with its value, or without one.
  using Change = std::pair<TestNumber, std::optional<TestNumber>>;

  static Change draw(util::Random& random) {
    const TestNumber key = random.below(200);
    if (random.one_in(3)) return {key, std::nullopt};
    return {key, random.below(1'000'000)};
  }
  static void apply(Change change, C& container) {
    const auto [key, value] = change;
    value ? Calls::put(container, key, *value) : Calls::erase(container, key);
  }
  static void apply(Change change, Model& model) {
    const auto [key, value] = change;
    if (value) {
      model[key] = *value;
    } else {
      model.erase(key);
    }
  }
  static void change(util::Random& random, C& container, Model& model) {
    const Change drawn = draw(random);
    apply(drawn, container);
    apply(drawn, model);
  }

  /// Adds elements without end.
  static void fill(C& container) {
    for (TestNumber i = 1000;; ++i) {
      if constexpr (requires { container.push_back(NumberPair()); }) {
        container.push_back({i, i});
      } else {
        Calls::put(container, i, i);
      }
    }
  }

  static void expect_same(const Opened& opened, const Model& model) {
    EXPECT_EQ(contents<Calls>(opened), model);
    EXPECT_EQ(opened.size(), model.size());
    for (TestNumber key = 0; key < 200; key += 7) {
      const auto found = opened.read([&](const C& c) { return Calls::get(c, key); });
      const auto expected = model.find(key);
      EXPECT_EQ(found.has_value(), expected != model.end()) << key;
      if (found && expected != model.end()) {
        EXPECT_EQ(*found, expected->second);
      }
    }
    const CheckReport report = opened.check();
    EXPECT_TRUE(report.ok()) << report.problems.front();
  }
};

template <class Tuple>
struct AsTypes;
template <class... Ts>
struct AsTypes<std::tuple<Ts...>> {
  using Type = ::testing::Types<Ts...>;
};

struct ContainerName {
  template <class Calls>
  static std::string GetName(int) {
    std::string name(Calls::kName);
    for (char& c : name)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    return name;
  }
};

TYPED_TEST_SUITE(EachContainer, AsTypes<TestedContainers>::Type, ContainerName);

TYPED_TEST(EachContainer, EqualsAModelAlsoWhenReopened) {
  util::Random random(11);
  Model model;
  for (unsigned opening = 0; opening < 6; ++opening) {
    const Pool pool = this->open();
    {
      typename TestFixture::Opened opened(pool, "c");
      this->expect_same(opened, model);
      for (unsigned i = 0; i < 60; ++i) {
        const std::uint64_t changes = 1 + random.below(5);
        opened.write([&](auto& container) {
          for (std::uint64_t n = 0; n < changes; ++n) this->change(random, container, model);
        });
      }
      this->expect_same(opened, model);
    }
    this->expect_sound(pool);
  }
}

TYPED_TEST(EachContainer, IsAsBeforeWhenAWriteThrows) {
  util::Random random(12);
  const Pool pool = this->open();
  typename TestFixture::Opened opened(pool, "c");
  Model model;
  for (unsigned i = 0; i < 40; ++i) {
    opened.write([&](auto& container) { this->change(random, container, model); });
    Model lost = model;
    const auto fail = [&](auto& container) {
      for (unsigned n = 0; n < 300; ++n) this->change(random, container, lost);
      throw i;
    };
    EXPECT_THROW(opened.write(fail), unsigned);
    this->expect_same(opened, model);
  }
}

TYPED_TEST(EachContainer, IsAsBeforeWhenTheProcessDiesInAWrite) {
  util::Random random(13);
  Model model;
  for (unsigned i = 0; i < 12; ++i) {
    const auto first = TestFixture::draw(random);
    const std::uint64_t seed = random();
    this->die_after([&](const Pool& pool) {
      typename TestFixture::Opened opened(pool, "c");
      opened.write([&](auto& c) { TestFixture::apply(first, c); });
      opened.write([&](auto& c) {
        util::Random more(seed);
        for (std::uint64_t n = more.below(300); n > 0; --n)
          TestFixture::apply(TestFixture::draw(more), c);
        ::kill(::getpid(), SIGKILL);
      });
    });
    TestFixture::apply(first, model);
    const Pool pool = this->open();
    {
      const typename TestFixture::Opened opened(pool, "c");
      this->expect_same(opened, model);
    }
    this->expect_sound(pool);
  }
}

TYPED_TEST(EachContainer, IsAsBeforeWhenThePoolIsFull) {
  PoolOptions options;
  options.max_size = std::uint64_t{16} << 20;
  const Pool pool = this->open(options);
  {
    util::Random random(14);
    typename TestFixture::Opened opened(pool, "c");
    Model model;
    for (unsigned round = 0; round < 3; ++round) {
      opened.write([&](auto& container) { this->change(random, container, model); });
      EXPECT_EQ(error_of([&] { opened.write([](auto& c) { TestFixture::fill(c); }); }),
                Errc::out_of_space);
      this->expect_same(opened, model);
    }
  }
  this->expect_sound(pool);
}

TYPED_TEST(EachContainer, IsAsBeforeInEachDomainWhenAWriteThrows) {
  for (const DomainChoice domain :
       {DomainChoice::cpu_cache, DomainChoice::memory_controller, DomainChoice::page_cache}) {
    std::filesystem::remove(this->path_);
    PoolOptions options = TestFixture::options();
    options.durability = Durability::power;
    options.domain = domain;
    util::Random random(15);
    Model model;
    for (unsigned opening = 0; opening < 2; ++opening) {
      const Pool pool = this->open(options);
      typename TestFixture::Opened opened(pool, "c");
      for (unsigned i = 0; i < 20; ++i) {
        opened.write([&](auto& container) { this->change(random, container, model); });
        EXPECT_THROW(opened.write([&](auto& container) {
          TestFixture::apply(TestFixture::draw(random), container);
          throw i;
        }),
                     unsigned);
      }
      this->expect_same(opened, model);
    }
  }
}

}  // namespace
}  // namespace perdix::detail::index::tips_of
