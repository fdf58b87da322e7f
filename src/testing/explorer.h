// The crash-state explorer: runs a session, crashes it at its events, opens what each crash may
// leave, judges it, and does the same to the sessions that open it.
//
// A round is one seed: it decides the first state, the steps, the schedule, the moments and the
// samples. A moment is an event of a session's trace; a place is a path of (event, image) pairs,
// one more for each level of crashes in recovery. Round and place are all that is needed to see one
// state again.
//
// With a flush or fence suppressed, only images are judged that are due to the suppression: a crash
// could leave the others without it too. Of those, some are opened for the crashes of their
// recovery.
//
// Not thread-safe, and one explorer at a time: it owns the process's probe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "pm/domain.h"
#include "testing/crash_model.h"
#include "testing/expectation.h"
#include "testing/image_set.h"
#include "testing/recorder.h"
#include "testing/session.h"
#include "testing/stage.h"
#include "testing/subject.h"

namespace perdix::testing {

/// The crash and the image that it left; then the crash of the session that opened it, and so on.
struct Place {
  std::uint64_t event;
  std::uint64_t image;
};
using Path = std::vector<Place>;

std::string to_string(const Path& path);
/// From "event:image/event:image". Throws invalid_argument.
Path parse_path(const std::string& text);

/// Crashes in recoveries that follow each other: images of this many levels are opened, besides the
/// first.
inline constexpr unsigned kNestedLevels = 3;

struct ExplorerOptions {
  detail::pm::Domain domain = detail::pm::Domain::memory_controller;
  unsigned threads = 1;
  unsigned steps = 16;       ///< of each thread
  unsigned steps_after = 3;  ///< once an image was opened
  /// About this many; moments are drawn until they have that many images. More rounds show more
  /// than more images of one round: the rest of a round costs as much as a dozen images.
  std::uint64_t images_of_round = 100;
  std::uint64_t images_of_nested = 14;  ///< the same for a session that opened an image
  std::uint64_t nested_one_in =
      24;  ///< one session in this many, of those that opened an image, is crashed in turn
  std::uint64_t deep_one_in =
      6;  ///< one round in this many has few images, of whose sessions half are crashed
  ImageLimits limits;
  std::string suppressed_site;  ///< "src/a.cc:1:2", or empty
  Event::Kind suppressed_kind = Event::Kind::flush;
  /// Called before each image is opened; false ends the exploration.
  std::function<bool(std::uint64_t seed, const Path& path)> before_image;
  /// Called with the bytes of an image that failed.
  std::function<void(const std::byte* image, std::uint64_t size)> on_failure;
};

struct Counts {
  std::uint64_t rounds = 0;
  std::uint64_t events = 0;      ///< recorded in workloads
  std::uint64_t moments = 0;     ///< of them, and of nested sessions, whose images were looked at
  std::uint64_t exhaustive = 0;  ///< moments all of whose images were
  std::uint64_t states = 0;      ///< pairs of moment and image
  std::uint64_t opened = 0;      ///< images: once each in a round
  std::uint64_t images = 0;      ///< of them with bytes that no image before had, in any round
  std::array<std::uint64_t, kNestedLevels + 1> by_level{};  ///< of `images`
};

struct Failure {
  std::uint64_t seed;
  Path path;           ///< empty: the workload failed without a crash
  std::string moment;  ///< what happened last, in words
  Problems problems;
};

class Explorer {
 public:
  Explorer(Subject& subject, const ExplorerOptions& options);

  /// Explores one round until its first failure.
  std::optional<Failure> round(std::uint64_t seed);

  /// Opens one state again. Nothing if it is sound now.
  std::optional<Failure> replay(std::uint64_t seed, const Path& path);

  const Counts& counts() const noexcept { return counts_; }
  const Sites& sites() noexcept { return recorder_.sites(); }
  const std::map<std::string, std::uint64_t>& steps() const noexcept { return recorder_.steps(); }

 private:
  struct Verdict {
    std::uint64_t digest;
    bool sound;
  };
  struct Level {
    const Session& session;
    Expectation expected;
    Path path;           // of the image that the session opened
    std::uint64_t hash;  // of that image
  };
  /// What a crash may leave: with the suppression, if there is one, and without it.
  struct Models {
    CrashModel model;
    std::optional<CrashModel> sound;  // only if something is suppressed

    bool apply(const Event& event) {
      if (sound) sound->apply(event);
      return model.apply(event);
    }
    ImageSet images(bool only_new, const ImageLimits& limits, std::uint64_t seed) const {
      return {model, sound ? &*sound : nullptr, only_new, limits, seed};
    }
  };
  struct Moment {
    std::uint64_t event;
    std::uint64_t images;
    std::uint64_t due;      // of the images, to the suppression
    std::uint64_t stretch;  // from one flush or fence to the next
    std::uint64_t turn;     // how many of the same stretch come before it
    bool seen;              // a read has returned that showed a step under way
  };

  std::optional<Failure> start(std::uint64_t seed);
  void explore(Level level);
  Models models();
  std::vector<Moment> moments(const Level& level);
  std::vector<std::uint64_t> choose_moments(const Level& level);
  void look_at(const Level& level, const Models& models, std::uint64_t event, std::uint64_t most);
  void judge(const Level& level, const Image& image, Place place);
  Session open_image(const Path& path, const Expectation* known);
  bool writes_first(const Path& path) const;
  bool crashes_again(const Path& path) const;
  void fail(const Level& level, const Expectation& expected, const Path& path,
            const Session& session);
  void check_for_strays(const Path& path);
  std::uint64_t seed_of(const Path& path) const;
  std::optional<Suppression> suppression();

  Subject& subject_;
  const ExplorerOptions options_;
  Recorder recorder_;
  Stage stage_;
  Counts counts_;
  std::uint64_t seed_ = 0;
  Path wanted_;        // of a replay
  bool deep_ = false;  // this round
  bool stop_ = false;
  std::optional<Failure> failure_;
  std::uint64_t first_hash_ = 0;  // of the first state; hashes of images are relative to it
  std::unordered_map<std::uint64_t, Verdict> verdicts_;  // by hash of the image, of this round
  std::unordered_set<std::uint64_t> seen_;               // content hashes, of all rounds
};

}  // namespace perdix::testing
