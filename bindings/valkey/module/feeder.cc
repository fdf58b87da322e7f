#include "feeder.h"

#include <sys/socket.h>
#include <unistd.h>

#include <tuple>

#include "api.h"
#include "bytes.h"
#include "threads.h"

namespace perdix::valkey {
namespace {

constexpr std::size_t kChunk = std::size_t{256} << 10;

// In place of the size of a chunk.
constexpr std::uint64_t kEnd = 0;
constexpr std::uint64_t kFailed = ~std::uint64_t{0};

void send_chunk(int socket, const std::string& chunk) {
  std::string size;
  append_number(size, static_cast<std::uint64_t>(chunk.size()));
  send_all(socket, size);
  send_all(socket, chunk);
}

void send_mark(int socket, std::uint64_t mark) {
  std::string bytes;
  append_number(bytes, mark);
  send_all(socket, bytes);
}

void send_pairs(int socket, const Index& index) {
  std::string chunk;
  for_each_pair(index, [&](std::string_view key, std::string_view value) {
    append_pair(chunk, key, value);
    if (chunk.size() >= kChunk) {
      send_chunk(socket, chunk);
      chunk.clear();
    }
    return true;
  });
  if (!chunk.empty()) send_chunk(socket, chunk);
}

}  // namespace

Feeder::Feeder(const Tables& tables) : tables_(tables), owner_(getpid()) {
  std::tie(served_, asked_) = packet_sockets();
  thread_ = quiet_thread([this] { run(); });
}

void Feeder::stop() {
  if (served_.get() >= 0) shutdown(served_.get(), SHUT_RDWR);
  if (thread_.joinable()) thread_.join();
  served_.close();
  asked_.close();
}

bool Feeder::in_child() const { return getpid() != owner_; }

void Feeder::freeze(std::vector<std::shared_ptr<Table>> tables) {
  const std::lock_guard lock(mutex_);
  for (auto& table : tables) {
    const std::uint64_t id = table->id();
    frozen_.emplace(id, std::move(table));
  }
}

void Feeder::thaw() {
  const std::lock_guard lock(mutex_);
  frozen_.clear();
}

std::shared_ptr<Table> Feeder::table(std::uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = frozen_.find(id);
    if (found != frozen_.end()) return found->second;
  }
  return tables_.find(id);  // the child was faster than the parent's freeze()
}

void Feeder::run() {
  while (auto request = receive_request(served_.get())) {
    try {
      serve(request->socket.get(), request->number);
    } catch (const std::exception& error) {
      log(nullptr, "warning", std::string("a child was not given a table: ") + error.what());
    }
  }
}

void Feeder::serve(int socket, std::uint64_t id) {
  const std::shared_ptr<Table> found = table(id);
  if (found == nullptr) return send_mark(socket, kFailed);
  try {
    send_pairs(socket, found->index());
  } catch (const Error&) {
    send_mark(socket, kFailed);
    throw;
  }
  send_mark(socket, kEnd);
}

void Feeder::ask(std::uint64_t id, Visitor<std::string, std::string> visit) {
  served_.close();  // the child's copy, which would hide the end of the parent
  auto [mine, theirs] = byte_sockets();
  send_request(asked_.get(), id, theirs.get());
  theirs.close();
  std::string chunk;
  for (;;) {
    std::uint64_t size = 0;
    receive_all(mine.get(), reinterpret_cast<char*>(&size), sizeof size);
    if (size == kEnd) return;
    if (size == kFailed) throw Error(Errc::io_error, "the server could not read the table");
    chunk.resize(size);
    receive_all(mine.get(), chunk.data(), size);
    for_each_pair(chunk, [&](std::string_view key, std::string_view value) { visit(key, value); });
  }
}

}  // namespace perdix::valkey
