#include "sockets.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <perdix/index.h>

namespace perdix::valkey {
namespace {

[[noreturn]] void fail(const char* what) {
  throw Error(Errc::io_error, std::string("between the server and its child ") + what + ": " +
                                  std::strerror(errno));
}

std::pair<Descriptor, Descriptor> sockets(int type) {
  int both[2];
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, both) != 0) fail("no sockets could be made");
  return {Descriptor(both[0]), Descriptor(both[1])};
}

/// Room for one descriptor beside a message.
union Control {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

}  // namespace

void Descriptor::close() noexcept {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

std::pair<Descriptor, Descriptor> packet_sockets() { return sockets(SOCK_SEQPACKET); }

std::pair<Descriptor, Descriptor> byte_sockets() { return sockets(SOCK_STREAM); }

void send_request(int socket, std::uint64_t number, int descriptor) {
  Control control{};
  iovec part{&number, sizeof number};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  while (sendmsg(socket, &message, MSG_NOSIGNAL) < 0)
    if (errno != EINTR) fail("a request could not be sent");
}

std::optional<Request> receive_request(int socket) {
  Request request;
  Control control{};
  iovec part{&request.number, sizeof request.number};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  ssize_t size = 0;
  do {
    size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size != sizeof request.number) return std::nullopt;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return std::nullopt;
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  request.socket = Descriptor(descriptor);
  return request;
}

void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) fail("a table could not be sent");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void receive_all(int socket, char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t got = recv(socket, bytes, count, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail("a table broke off");
    bytes += got;
    count -= static_cast<std::size_t>(got);
  }
}

}  // namespace perdix::valkey
