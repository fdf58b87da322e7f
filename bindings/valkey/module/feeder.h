// How a forked child of the server gets at the content of tables: it asks the parent.
//
// A child has no pool (perdix throws Errc::forked), but BGSAVE and a full synchronisation save from
// a child. So each table that the child saves is shown to it by a thread of the parent, the feeder,
// over a socket:
//
//   child                                   parent
//   makes a pair of sockets, sends one  ->  gets the socket and the table's number
//   reads chunks until the mark of end  <-  scans the table, writes chunks of pairs
//
// 1. The scan begins after the fork. So it shows all that was in the table at the fork, and of what
//    came later any part. A replica gets all that came later as a stream of absolute values, and
//    ends with the same table. The file of a BGSAVE is not of one moment.
// 2. A table that was dropped after the fork is kept until the child has ended: freeze(), thaw().
// 3. A child that ends in the middle closes its socket, and the feeder goes on with the next.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <perdix/index.h>

#include "sockets.h"
#include "tables.h"

namespace perdix::valkey {

class Feeder {
 public:
  explicit Feeder(const Tables& tables);
  ~Feeder() { stop(); }

  /// In the parent: a child was forked, which may ask for these. The child has ended.
  void freeze(std::vector<std::shared_ptr<Table>> tables);
  void thaw();

  /// In the child: shows all pairs of a table. Throws io_error if the parent doesn't answer.
  void ask(std::uint64_t id, Visitor<std::string, std::string> visit);

  /// Whether this process is a child of the one that made the feeder.
  bool in_child() const;

  void stop();

 private:
  void run();
  void serve(int socket, std::uint64_t id);
  std::shared_ptr<Table> table(std::uint64_t id);

  const Tables& tables_;
  int owner_;          // the process
  Descriptor served_;  // where the parent gets requests
  Descriptor asked_;   // where a child sends them
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Table>> frozen_;
  std::thread thread_;
};

}  // namespace perdix::valkey
