#include "support/workload.h"

#include <numeric>

namespace perdix::test {
namespace {

constexpr std::size_t kWindow = 40;
constexpr std::size_t kHot = 12;

//                                    put insert update erase get contains scan
constexpr std::array<unsigned, kOps> kMixed = {20, 20, 15, 20, 15, 5, 5};
constexpr std::array<unsigned, kOps> kGrow = {30, 50, 5, 3, 8, 2, 2};
constexpr std::array<unsigned, kOps> kShrink = {3, 2, 5, 75, 10, 3, 2};
constexpr std::array<unsigned, kOps> kChange = {20, 0, 60, 0, 15, 0, 5};
constexpr std::array<unsigned, kOps> kInsertOnly = {0, 1, 0, 0, 0, 0, 0};
constexpr std::array<unsigned, kOps> kEraseOnly = {0, 0, 0, 1, 0, 0, 0};
constexpr std::array<unsigned, kOps> kWrites = {30, 25, 15, 30, 0, 0, 0};
constexpr std::array<unsigned, kOps> kWriteGrow = {35, 50, 10, 5, 0, 0, 0};
constexpr std::array<unsigned, kOps> kWriteShrink = {3, 3, 4, 90, 0, 0, 0};

std::vector<Profile> make_profiles() {
  return {
      {"mixed", KeyStyle::mixed, 3000, {{kGrow, Walk::uniform}, {kMixed, Walk::uniform}}},
      {"ascending",
       KeyStyle::dense,
       3000,
       {{kGrow, Walk::ascending}, {kMixed, Walk::ascending}, {kShrink, Walk::ascending}}},
      {"descending",
       KeyStyle::dense,
       3000,
       {{kGrow, Walk::descending}, {kMixed, Walk::window}, {kShrink, Walk::descending}}},
      {"clustered",
       KeyStyle::clustered,
       3000,
       {{kGrow, Walk::window}, {kMixed, Walk::window}, {kChange, Walk::uniform}}},
      {"hot", KeyStyle::mixed, 200, {{kMixed, Walk::hot}, {kChange, Walk::hot}}},
      {"waves",
       KeyStyle::mixed,
       2000,
       {{kInsertOnly, Walk::ascending},
        {kEraseOnly, Walk::ascending},
        {kGrow, Walk::uniform},
        {kEraseOnly, Walk::descending},
        {kInsertOnly, Walk::descending},
        {kShrink, Walk::uniform},
        {kMixed, Walk::window}}},
  };
}

}  // namespace

std::string_view to_string(Op op) {
  constexpr std::array<std::string_view, kOps> kNames = {"put", "insert",   "update", "erase",
                                                         "get", "contains", "scan"};
  return kNames[static_cast<std::size_t>(op)];
}

std::span<const Profile> profiles() {
  static const std::vector<Profile> all = make_profiles();
  return all;
}

const Profile& write_profile() {
  static const Profile profile = {"writes",
                                  KeyStyle::mixed,
                                  800,
                                  {{kWriteGrow, Walk::ascending},
                                   {kWrites, Walk::uniform},
                                   {kWriteShrink, Walk::ascending},
                                   {kWriteGrow, Walk::uniform},
                                   {kWriteShrink, Walk::descending},
                                   {kWrites, Walk::window}}};
  return profile;
}

Workload::Workload(std::uint64_t seed, const Profile& profile, std::size_t keys)
    : rng_(seed), profile_(profile), keys_(keys), phase_(rng_.below(profile.phases.size())) {
  start_phase();
}

Step Workload::next() {
  if (left_ == 0) {
    phase_ = (phase_ + 1) % profile_.phases.size();
    start_phase();
  }
  --left_;
  const Op op = choose_op();
  const std::size_t key = choose_key();
  const std::size_t limit = rng_.once_in(8) ? rng_.below(keys_ + 10) : rng_.below(80);
  return {op, key, limit};
}

void Workload::start_phase() {
  left_ = rng_.between(keys_ / 2 + 1, keys_ * 3 / 2 + 1);
  cursor_ = rng_.below(keys_);
}

std::size_t Workload::choose_key() {
  switch (profile_.phases[phase_].walk) {
    case Walk::uniform: return rng_.below(keys_);
    case Walk::ascending: return cursor_ = (cursor_ + 1) % keys_;
    case Walk::descending: return cursor_ = (cursor_ + keys_ - 1) % keys_;
    case Walk::window:
      if (rng_.once_in(4 * kWindow)) cursor_ = rng_.below(keys_);
      return (cursor_ + rng_.below(kWindow)) % keys_;
    case Walk::hot: return (rng_.below(kHot) * (keys_ / kHot + 1)) % keys_;
  }
  return 0;
}

Op Workload::choose_op() {
  const auto& weights = profile_.phases[phase_].weights;
  std::uint64_t dice = rng_.below(std::accumulate(weights.begin(), weights.end(), 0U));
  std::size_t op = 0;
  while (dice >= weights[op]) dice -= weights[op++];
  return static_cast<Op>(op);
}

}  // namespace perdix::test
