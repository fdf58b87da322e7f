#include "samples/points/subject.h"

#include <utility>

#include <fmt/format.h>

#include "pool/pool_core.h"
#include "samples/points/points.h"
#include "testing/subjects/pool_blocks.h"
#include "testing/subjects/pool_medium.h"

namespace perdix::samples::points {
namespace {

using testing::State;
using testing::Step;

constexpr unsigned kMaxRows = 20;  // two blocks are outgrown

std::string key_of(std::uint64_t row) { return fmt::format("{:06}", row); }
std::string text_of(Point point) { return fmt::format("{},{}", point.x, point.y); }

Point point_of(std::string_view text) {
  const auto comma = text.find(',');
  return {std::stoull(std::string(text.substr(0, comma))),
          std::stoull(std::string(text.substr(comma + 1)))};
}

class OpenedPoints final : public testing::Opened {
 public:
  OpenedPoints(testing::Medium& medium, detail::pm::Domain domain)
      : pool_(Pool::open(medium.path(), testing::pool_options(domain))),
        table_(Table::open_or_create(pool_, "points")) {
    testing::settle(*pool_.core());
  }

  State contents() override {
    State state;
    std::uint64_t row = 0;
    for (const Point& point : table_->rows()) state.emplace(key_of(row++), text_of(point));
    return state;
  }
  testing::Problems check() override { return table_->check().problems; }
  testing::StepResult apply(const Step& step) override {
    table_->add(point_of(step.value));
    testing::settle(*pool_.core());
    return testing::StepResult::write(true);
  }
  testing::Problems close() override {
    table_.reset();
    testing::Problems problems = pool_.check().problems;
    pool_.close();
    return problems;
  }

 private:
  Pool pool_;
  std::unique_ptr<Table> table_;
};

class PointsSubject final : public testing::Subject {
 public:
  explicit PointsSubject(detail::pm::Domain domain) : domain_(domain) {}

  std::uint64_t size() const override { return testing::kPoolSize; }
  State create(testing::Medium& medium, detail::util::Random& random) override {
    testing::make_pool(medium, domain_);
    State state;
    OpenedPoints opened(medium, domain_);
    for (std::uint64_t rows = random.below(kMaxRows); state.size() < rows;) {
      const Step step = next_step(random, state, 0, 1);
      testing::apply_effects(effects(step, state), state);
      opened.apply(step);
    }
    opened.close();
    return state;
  }
  std::unique_ptr<testing::Opened> open(testing::Medium& medium) override {
    return std::make_unique<OpenedPoints>(medium, domain_);
  }
  Step next_step(detail::util::Random& random, const State& state, unsigned, unsigned) override {
    return {0, key_of(state.size()), text_of({random(), random()})};
  }
  testing::Effects effects(const Step& step, const State&) const override {
    return {{step.key, step.value}};
  }
  std::string describe(const Step& step) const override {
    return fmt::format("add({})", step.value);
  }

 private:
  detail::pm::Domain domain_;
};

}  // namespace

testing::SubjectEntry subject() {
  return {"sample_points", 1,
          [](detail::pm::Domain domain) { return std::make_unique<PointsSubject>(domain); }};
}

}  // namespace perdix::samples::points
