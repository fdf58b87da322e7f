// Plug-ins that break a rule of docs/tips.md: what Tips says of them, and that the process goes on.
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "alloc/session.h"
#include "index/tips/indexes/btree.h"
#include "index/tips/indexes/hash_table.h"
#include "index/tips/test_tips.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {
namespace {

enum class Fault {
  none,
  finds_other,  // find() does not see some keys
  shows_twice,
  throws_put,
  throws_erase,
  throws_find,
  throws_size,
  throws_show,
  throws_inspect,
  heap,  // announces a change of memory of the heap
};
std::atomic<Fault> fault = Fault::none;  // plug-ins know no context

constexpr U64 kFaulty = 7;  // the key of which a plug-in does something wrong

void throw_int_if(Fault of) {
  if (fault == of) throw 7;
}

template <class Index>
struct Faulty final : PluginOf<Index> {
  using Base = PluginOf<Index>;
  explicit Faulty(std::string_view its_name) : Base(its_name, Kind::u64) {}
  bool put(void* index, Word key, Word value, Word* old) const override {
    if (key == kFaulty) throw_int_if(Fault::throws_put);
    if (key == kFaulty && fault == Fault::heap) undo_log_add(std::make_unique<U64>().get(), 8);
    return Base::put(index, key, value, old);
  }
  bool erase(void* index, Word key, Word* old_key, Word* old_value) const override {
    throw_int_if(Fault::throws_erase);
    return Base::erase(index, key, old_key, old_value);
  }
  bool find(const void* index, Word key, Word* value) const override {
    throw_int_if(Fault::throws_find);
    return !(fault == Fault::finds_other && key == kFaulty) && Base::find(index, key, value);
  }
  std::uint64_t size(const void* index) const override {
    throw_int_if(Fault::throws_size);
    return Base::size(index);
  }
  void scan(const void* index, const Word* from, void* context, ShowPair show) const override {
    throw_int_if(Fault::throws_show);
    Base::scan(index, from, context, show);
    if (fault == Fault::shows_twice) Base::scan(index, nullptr, context, show);
  }
  std::uint64_t walk(const void* index, std::uint64_t position, void* context,
                     ShowPair show) const override {
    throw_int_if(Fault::throws_show);
    if (fault == Fault::shows_twice) Base::walk(index, position, context, show);
    return Base::walk(index, position, context, show);
  }
  bool inspect(const void* index, Inspector& inspector) const override {
    throw_int_if(Fault::throws_inspect);
    return Base::inspect(index, inspector);
  }
};

using OrderedFaulty = Faulty<BTree<Durable, IntegerKeys>>;
using HashedFaulty = Faulty<HashTable<Durable, IntegerKeys>>;

template <class P>
constexpr std::string_view kPluginName = std::is_same_v<P, OrderedFaulty> ? "btree" : "hash";

template <class P>
class PluginRules : public TipsTest {
 protected:
  static constexpr U64 kKeys = 1000;

  void SetUp() override { fault = Fault::none; }
  void TearDown() override { fault = Fault::none; }

  static void write(Core& core, U64 key, Operation operation = Operation::put) {
    const std::string text(Raw<U64>(key).bytes());
    core.write(operation, text, text, nullptr, nullptr);
  }
  static bool has(Core& core, U64 key) {
    const std::string text(Raw<U64>(key).bytes());
    return core.get(text, [](std::string_view) {});
  }

  /// What an Error says that a call throws.
  static std::string message_of(Errc code, const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "nothing";
  }

  std::unique_ptr<Core> open_core() const {
    Settings settings;
    settings.options.min_workers = settings.options.max_workers = 2;
    return std::make_unique<Core>(*pool_.core(), handle_.root(), plugin_,
                                  Kinds{Kind::u64, Kind::u64}, settings);
  }
  std::unique_ptr<Core> filled() const {
    std::unique_ptr<Core> core = open_core();
    for (U64 key = 0; key < kKeys; ++key) write(*core, key);
    core->catch_up();
    return core;
  }

  std::string first_problem(Core& core) const {
    const CheckReport report = core.check();
    return report.ok() ? "none" : report.problems.front();
  }

  const std::string_view name_ = kPluginName<P>;
  const P plugin_{name_};
  const Pool pool_ = open();
  const pool::IndexHandle handle_ =
      pool_.core()->open_index("t", "tips:" + std::string(name_), Kind::u64, Kind::u64);
};
using FaultyPlugins = ::testing::Types<OrderedFaulty, HashedFaulty>;
TYPED_TEST_SUITE(PluginRules, FaultyPlugins);

TYPED_TEST(PluginRules, ACheckLooksUpShownPairs) {
  const auto core = this->filled();
  EXPECT_EQ(this->first_problem(*core), "none");
  EXPECT_EQ(core->check().pairs, TestFixture::kKeys);
  fault = Fault::finds_other;
  EXPECT_EQ(this->first_problem(*core),
            fmt::format("1 pairs that a scan of the plugged-in index '{}' shows are not what a "
                        "lookup of their keys finds",
                        this->name_));
}

TYPED_TEST(PluginRules, ACheckCountsShownPairs) {
  const auto core = this->filled();
  fault = Fault::shows_twice;
  EXPECT_EQ(this->first_problem(*core),
            fmt::format("a scan of the plugged-in index '{}' shows at least {} pairs, {} are "
                        "counted",
                        this->name_, TestFixture::kKeys + 1, TestFixture::kKeys));
}

TYPED_TEST(PluginRules, TurnsOtherExceptionsIntoErrors) {
  const std::string strange = fmt::format(
      "the plug-in '{}' of Tips has thrown something that is no std::exception; "
      "correct it: put() and erase() may throw std::bad_alloc and what "
      "tips::allocate() throws, other calls nothing",
      this->name_);
  const auto core = this->filled();
  const auto expect_strange = [&](Fault with, const std::function<void()>& call) {
    fault = with;
    EXPECT_EQ(TestFixture::message_of(Errc::invalid_argument, call), strange);
    fault = Fault::none;
  };
  expect_strange(Fault::throws_put, [&] {
    TestFixture::write(*core, kFaulty);  // acknowledged, and replayed later
    core->catch_up();
  });
  expect_strange(Fault::throws_erase, [&] {
    TestFixture::write(*core, 1, Operation::erase);
    core->catch_up();
  });
  core->catch_up();
  expect_strange(Fault::throws_find, [&] { TestFixture::has(*core, TestFixture::kKeys); });
  expect_strange(Fault::throws_size, [&] { core->size(); });
  fault = Fault::throws_show;
  EXPECT_EQ(this->first_problem(*core), strange);
  fault = Fault::throws_inspect;
  EXPECT_EQ(this->first_problem(*core), strange);
  fault = Fault::none;
  EXPECT_EQ(core->size(), TestFixture::kKeys - 1);
  EXPECT_EQ(this->first_problem(*core), "none");
}

/// The workers of a replay are threads of their own.
TYPED_TEST(PluginRules, OtherExceptionsEndNoWorker) {
  auto core = this->filled();
  fault = Fault::throws_erase;
  for (U64 key = 0; key < TestFixture::kKeys; ++key)
    TestFixture::write(*core, key, Operation::erase);
  EXPECT_FALSE(core->reclaim_space());
  core.reset();
  fault = Fault::none;
  EXPECT_EQ(this->open_core()->size(), 0U);
}

TYPED_TEST(PluginRules, MemoryOfTheHeapIsNamed) {
  auto core = this->filled();
  fault = Fault::heap;
  TestFixture::write(*core, kFaulty);
  EXPECT_THROW(core->catch_up(), Error);  // says so itself, unless the background was first
  const std::string broken =
      TestFixture::message_of(Errc::invalid_argument, [&] { core->catch_up(); });
  EXPECT_NE(broken.find("the plug-in of a Tips index has freed or changed memory that is not of "
                        "the pool; correct the plug-in, close the index and open it again, which "
                        "takes this change back. If the index leads to such memory since an "
                        "earlier change, it is damaged then: drop it"),
            std::string::npos)
      << broken;
  fault = Fault::none;
  core = this->open_core();
  EXPECT_EQ(core->size(), TestFixture::kKeys);
  EXPECT_EQ(this->first_problem(*core), "none");
}

// --- Large nodes ---------------------------------------------------------------------------------

/// Says that a put may take a block above the largest size class.
struct LargePlugin final : PluginOf<BTree<Durable, IntegerKeys>> {
  LargePlugin() : PluginOf("btree", Kind::u64) { put_takes = {{{132'096, 1}}}; }
};

TEST_F(TipsTest, LargeNodesCostNoReclamationForEachPut) {
  const Pool pool = open();
  const auto handle = pool.core()->open_index("t", "tips:btree", Kind::u64, Kind::u64);
  const LargePlugin plugin;
  Core core(*pool.core(), handle.root(), plugin, {Kind::u64, Kind::u64}, Settings{});
  constexpr U64 kPuts = 400;
  for (U64 key = 0; key < kPuts; ++key) {
    const std::string text(Raw<U64>(key).bytes());
    core.write(Operation::put, text, text, nullptr, nullptr);
  }
  EXPECT_LT(core.stats().tips.reclamations, kPuts / 10);
  EXPECT_EQ(core.size(), kPuts);
}

}  // namespace
}  // namespace perdix::detail::index::tips
