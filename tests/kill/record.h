// The records that a child sends to its parent through a pipe. A record has 16 bytes and is written
// by one write(). Records of several threads therefore do not mix, and a killed child leaves no
// partial record.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace perdix::test::kill {

struct Record {
  enum class Type : std::uint16_t {
    opening,   ///< Pool::open() comes next
    opened,    ///< the index is open; payload: nanoseconds since `opening`
    begin,     ///< an operation comes next (mode `together`)
    done,      ///< the operation returned; payload: what
    observed,  ///< a reader saw this tag (payload)
    second,    ///< the second index is at SecondIndex `number`
    pair,      ///< verification: key `number` has the tag in payload
    text,      ///< eight bytes (payload) of a problem's description
    problem,   ///< the description is complete; `number`: its bytes
    finished,  ///< all is well and the child is about to end
  };

  Type type;
  std::uint16_t thread;
  std::uint32_t number;
  std::uint64_t payload;
};

static_assert(sizeof(Record) == 16);

/// Where the second index is, from empty to empty. Verification sends `dropped` or `filled` (whole)
/// or `created` (some pairs).
enum class SecondIndex : std::uint32_t { dropped, creating, created, filled, dropping };

}  // namespace perdix::test::kill
