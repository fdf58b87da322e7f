// The sockets between the server and its forked child.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace perdix::valkey {

/// A descriptor that is closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const noexcept { return number_; }
  void close() noexcept;

 private:
  int number_;
};

/// Two sockets that are connected: of packets or of bytes. Throws io_error.
std::pair<Descriptor, Descriptor> packet_sockets();
std::pair<Descriptor, Descriptor> byte_sockets();

/// Sends a number with a descriptor as one packet, and receives it. Throws io_error.
void send_request(int socket, std::uint64_t number, int descriptor);

struct Request {
  std::uint64_t number = 0;
  Descriptor socket;
};

/// None if the other side is shut down.
std::optional<Request> receive_request(int socket);

/// Send and receive all bytes. Throw io_error if the other side has gone.
void send_all(int socket, std::string_view bytes);
void receive_all(int socket, char* bytes, std::size_t count);

}  // namespace perdix::valkey
