// That a reader makes an erased row durable which it sees before the eraser has. Only in the
// instrumented build.
#include "index/elf/dead_rows.h"

#include <cstddef>
#include <cstdint>
#include <optional>

#include <gtest/gtest.h>

#include "pm/persist.h"
#include "pm/probe.h"

namespace perdix::detail::index::elf {
namespace {

/// Reads a bit when it has been stored and not yet flushed, and notes what the reader did until its
/// answer.
class Reader final : public pm::Probe {
 public:
  Reader(const DeadRows& rows, const std::uint64_t& word)
      : rows_(rows), word_(word), before_(pm::install_probe(this)) {}
  ~Reader() override { pm::install_probe(before_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  void on_read(const void*, std::size_t) override {}
  void on_write(const void* p, std::size_t) override {
    if (p != &word_ || answer_) return;
    reads_ = true;
    const bool answer = rows_.is_dead(&word_, 0);
    reads_ = false;
    answer_ = answer;
  }
  bool on_flush(const void* p, std::size_t, const pm::Site&) override {
    if (reads_ && p == &word_) flushed_ = true;
    return true;
  }
  bool on_fence(const pm::Site&) override {
    if (reads_ && flushed_) durable_ = true;
    return true;
  }

  std::optional<bool> answer() const { return answer_; }
  bool durable() const { return durable_; }

 private:
  const DeadRows& rows_;
  const std::uint64_t& word_;
  pm::Probe* const before_;
  std::optional<bool> answer_;
  bool reads_ = false, flushed_ = false, durable_ = false;
};

TEST(DeadRows, AReaderFencesABitThatItsEraserHasNotFlushed) {
  const pm::Persister persister(pm::Domain::memory_controller);
  DeadRows rows(persister);
  alignas(64) std::uint64_t word = 0;
  {
    const Reader reader(rows, word);
    rows.set(&word, 0);
    EXPECT_EQ(reader.answer(), std::optional(true));
    EXPECT_TRUE(reader.durable());
  }
  EXPECT_TRUE(rows.is_dead(&word, 0));
}

}  // namespace
}  // namespace perdix::detail::index::elf
