#include "pool/boot_id.h"

#include <fstream>
#include <random>
#include <string>

#include "pm/probe.h"

namespace perdix::pool {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

BootId current_boot_id() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string text;
  in >> text;
  BootId id{};
  std::size_t digits = 0;
  for (const char c : text) {
    const int digit = hex_digit(c);
    if (digit < 0) continue;  // the dashes between the groups
    if (digits == 2 * id.size()) return BootId{};
    id[digits / 2] = static_cast<std::uint8_t>(id[digits / 2] * 16 + digit);
    ++digits;
  }
  return digits == 2 * id.size() ? id : BootId{};
}

bool same_boot(const BootId& a, const BootId& b) noexcept { return a == b && a != BootId{}; }

std::array<std::uint8_t, 16> random_uuid() {
  std::random_device device;
  std::array<std::uint8_t, 16> uuid{};
  for (std::uint8_t& byte : uuid) byte = static_cast<std::uint8_t>(pm::on_draw(device()));
  uuid[6] = static_cast<std::uint8_t>((uuid[6] & 0x0f) | 0x40);  // RFC 4122, version 4: random
  uuid[8] = static_cast<std::uint8_t>((uuid[8] & 0x3f) | 0x80);
  return uuid;
}

}  // namespace perdix::pool
