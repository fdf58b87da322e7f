// The three uses of a walk, over a list of blocks with strings.
#include "index/common/owned.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/error.h>

#include "pool/test_pool.h"
#include "util/test_directory.h"

namespace perdix::detail::index {
namespace {

using Strings = Codec<std::string>;

struct Element {
  std::uint64_t next;
  Word key;
  Word value;
};

class OwnedTest : public testing::Test {
 protected:
  Element& at(pm::Offset offset) { return *pool_->at<Element>(offset); }

  /// Adds an element before the others.
  pm::Offset add(const std::string& key, const std::string& value) {
    alloc::Session session = pool_->allocator().session();
    const pm::Offset offset = session.reserve(sizeof(Element));
    at(offset) = {root(), Strings(*pool_).write(session, key),
                  values_.write(session, NewValue(value))};
    pool_->pm().flush(&at(offset), sizeof(Element));
    session.commit(pm::set_word(root(), offset));
    return offset;
  }

  /// The rules by an example: the strings of an element, then the element.
  void walk(Owned& owned) {
    walk_list(*pool_, root(), "an element", owned, [&](pm::Offset offset) {
      Element& element = at(offset);
      if (element.key != 0)
        owned.release(pm::set_word(element.key, 0),
                      blobs_of<std::string>(values_, element.key, element.value));
      return ListStep{element.next, {offset, sizeof(Element), "an element"}};
    });
  }

  std::vector<pm::Offset> shown() {
    std::vector<pm::Offset> blocks;
    const pool::BlockVisitor visit = [&](pm::Offset block) { blocks.push_back(block); };
    ShownBlocks shown(visit);
    walk(shown);
    std::sort(blocks.begin(), blocks.end());
    return blocks;
  }

  CheckReport audited() {
    CheckReport report;
    AuditedBlocks audited(pool_->allocator(), report, "T1");
    walk(audited);
    return report;
  }

  std::uint64_t& root() { return handle_.root(); }

  testing_files::TempDirectory directory_;
  std::shared_ptr<pool::PoolCore> pool_ =
      pool::PoolCore::create(directory_.file("owned.pool"), pool::small_options());
  pool::IndexHandle handle_ = pool_->open_index("t", "fastfair", Kind::bytes, Kind::bytes);
  const ValueCodec values_{*pool_, Kind::bytes};
};

TEST_F(OwnedTest, ShowsAndCountsJustTheBlocksThatAreAllocated) {
  EXPECT_TRUE(shown().empty());
  add("one", "1");
  add("two", "");  // an empty string has no block
  EXPECT_EQ(shown(), pool::allocated_blocks(*pool_));
  EXPECT_EQ(audited().blocks, 5u);
  EXPECT_TRUE(audited().problems.empty());
}

TEST_F(OwnedTest, DropsAllBlocksAndTheirRoot) {
  add("one", "1");
  add("two", "2");
  DroppedBlocks dropped(pool_->allocator());
  walk(dropped);
  EXPECT_EQ(root(), pm::kNull);
  EXPECT_TRUE(pool::allocated_blocks(*pool_).empty());
}

/// Drops until a release before which it is stopped.
class Interrupted final : public Owned {
 public:
  Interrupted(alloc::Calloc& allocator, unsigned releases)
      : Owned(true), dropped_(allocator), left_(releases) {}

  void release(const pm::Change& change, std::span<const OwnedBlock> blocks) override {
    if (left_-- == 0) throw Error(Errc::io_error, "stopped");
    dropped_.release(change, blocks);
  }

 private:
  DroppedBlocks dropped_;
  unsigned left_;
};

TEST_F(OwnedTest, GoesOnWithADropThatWasInterrupted) {
  for (unsigned releases = 0; releases < 6; ++releases) {
    for (const char* key : {"one", "two", "three"}) add(key, "value");
    Interrupted interrupted(pool_->allocator(), releases);
    EXPECT_THROW(walk(interrupted), Error);
    EXPECT_EQ(shown(), pool::allocated_blocks(*pool_)) << "after " << releases;
    DroppedBlocks dropped(pool_->allocator());
    walk(dropped);
    EXPECT_TRUE(pool::allocated_blocks(*pool_).empty()) << "after " << releases;
  }
}

TEST_F(OwnedTest, FindsABlockThatIsFree) {
  add("one", "1");
  at(root()).value = 64 * 1024;
  const CheckReport report = audited();
  EXPECT_EQ(report.problems,
            std::vector<std::string>{"a string at 0x10000 lies in free memory (T1)"});
  EXPECT_EQ(report.blocks, 3u);
}

TEST_F(OwnedTest, EndsInACircle) {
  const pm::Offset last = add("one", "1");
  for (const char* key : {"two", "three", "four", "five"}) add(key, "value");
  for (const pm::Offset to : {last, root(), at(root()).next, at(at(root()).next).next}) {
    at(last).next = to;
    EXPECT_THROW(shown(), Error);
    EXPECT_THROW(audited(), Error);
  }
}

}  // namespace
}  // namespace perdix::detail::index
