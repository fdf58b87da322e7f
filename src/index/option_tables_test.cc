// Each row of each table sets the member that it is named after, and no other row does.
#include <cstddef>
#include <set>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

#include "index/cceh/options.h"
#include "index/elimda/options.h"
#include "index/fastfair/options.h"
#include "index/nbtree/options.h"
#include "index/skiplist/options.h"
#include "index/sptree/options.h"
#include "index/tips/options.h"

namespace perdix::detail::index {
namespace {

/// Expects of a table that texts set members. At its end each row has been looked at.
template <const auto& kTable, class Options>
class Rows {
 public:
  Rows() = default;
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows() { EXPECT_EQ(names_.size(), kTable.size()); }

  template <class T>
  void expect(const std::string& name, const std::string& text, T Options::*member,
              std::type_identity_t<T> value) {
    names_.insert(name);
    EXPECT_NE(Options().*member, value) << name << ": the default tells nothing";
    EXPECT_EQ(options_of(kTable, "engine", {.named = {{name, text}}}).*member, value) << name;
  }

 private:
  std::set<std::string> names_;
};

TEST(OptionTables, OfSpTree) {
  using O = SpTreeOptions;
  Rows<sptree::kOptions, O> rows;
  rows.expect("dram_budget", "64M", &O::dram_budget, 64 << 20);
  rows.expect("resume_in_background", "false", &O::resume_in_background, false);
  rows.expect("scan_budget", "5", &O::scan_budget, 5);
}

TEST(OptionTables, OfNbTree) {
  using O = NbTreeOptions;
  Rows<nbtree::kOptions, O> rows;
  rows.expect("resume_in_background", "false", &O::resume_in_background, false);
  rows.expect("scan_budget", "5", &O::scan_budget, 5);
}

TEST(OptionTables, OfFastFair) {
  using O = FastFairOptions;
  Rows<fastfair::kOptions, O> rows;
  rows.expect("dram_budget", "unlimited", &O::dram_budget, kUnlimited);
  rows.expect("technique", "b", &O::technique, Technique::b);
  rows.expect("resume_in_background", "false", &O::resume_in_background, false);
}

TEST(OptionTables, OfSkipList) {
  using O = SkipListOptions;
  Rows<skiplist::kOptions, O> rows;
  rows.expect("dram_budget", "1K", &O::dram_budget, 1024);
  rows.expect("technique", "boc", &O::technique, Technique::boc);
  rows.expect("resume_in_background", "false", &O::resume_in_background, false);
}

TEST(OptionTables, OfCceh) {
  using O = CcehOptions;
  Rows<cceh::kOptions, O> rows;
  rows.expect("dram_budget", "1K", &O::dram_budget, 1024);
  rows.expect("technique", "bo", &O::technique, Technique::bo);
  rows.expect("resume_in_background", "false", &O::resume_in_background, false);
  rows.expect("segment_bytes", "4K", &O::segment_bytes, 4096);
  rows.expect("lazy_depth", "3", &O::lazy_depth, 3);
}

TEST(OptionTables, OfElimDa) {
  using O = ElimDaOptions;
  Rows<elimda::kOptions, O> rows;
  rows.expect("resume_in_background", "false", &O::resume_in_background, false);
  rows.expect("collecting_logs", "8", &O::collecting_logs, 8);
  rows.expect("media_unit", "4K", &O::media_unit, 4096);
  rows.expect("d_bucket_pairs", "32", &O::d_bucket_pairs, 32);
  rows.expect("p_bucket_pairs", "512", &O::p_bucket_pairs, 512);
  rows.expect("fingerprint_bits", "9", &O::fingerprint_bits, 9);
  rows.expect("reserved_cache_ways", "2", &O::reserved_cache_ways, 2);
  rows.expect("media_units", "never", &O::media_units, MediaUnits::never);
}

TEST(OptionTables, OfTips) {
  using O = TipsOptions;
  Rows<tips::kOptions, O> rows;
  rows.expect("resume_in_background", "false", &O::resume_in_background, false);
  rows.expect("cache_share", "0.5", &O::cache_share, 0.5);
  rows.expect("cached_pairs", "100", &O::cached_pairs, 100);
  rows.expect("chain", "7", &O::chain, 7);
  rows.expect("log_bytes", "1M", &O::log_bytes, 1 << 20);
  rows.expect("undo_records", "320", &O::undo_records, 320);
  rows.expect("min_workers", "256", &O::min_workers, 256);  // on any machine
  rows.expect("max_workers", "3", &O::max_workers, 3);
}

}  // namespace
}  // namespace perdix::detail::index
