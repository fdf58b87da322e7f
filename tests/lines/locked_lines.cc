#include "lines/locked_lines.h"

#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <optional>
#include <stdexcept>

#include "util/stripe.h"

namespace perdix::test {
namespace {

/// Addresses that a watched call has written; without allocation, since it is filled by the
/// handler.
struct Record {
  std::array<std::uintptr_t, 4096> addresses;
  std::size_t count = 0;
};
thread_local Record* watched = nullptr;

/// An instruction, as far as its operand in memory needs it.
struct Instruction {
  bool locked = false;
  bool two_bytes = false;  ///< of the opcode
  std::uint8_t opcode = 0;
  std::uint8_t rex = 0;
  const std::uint8_t* modrm = nullptr;

  bool exchanges() const { return !two_bytes && (opcode == 0x86 || opcode == 0x87); }
  bool in_memory() const { return *modrm >> 6 != 3; }
  std::size_t immediate() const {
    if (two_bytes) return opcode == 0xba ? 1 : 0;
    return opcode == 0x80 || opcode == 0x83 ? 1 : opcode == 0x81 ? 4 : 0;
  }
};

Instruction decoded(const std::uint8_t* at) {
  Instruction found;
  constexpr std::array<std::uint8_t, 10> kPrefixes = {0x66, 0xf2, 0xf3, 0x2e, 0x36,
                                                      0x3e, 0x26, 0x64, 0x65, 0xf0};
  for (; std::ranges::find(kPrefixes, *at) != kPrefixes.end(); ++at) found.locked |= *at == 0xf0;
  if (*at >> 4 == 4) found.rex = *at++;
  found.two_bytes = *at == 0x0f;
  at += found.two_bytes ? 1 : 0;
  found.opcode = *at++;
  found.modrm = at;
  return found;
}

std::uintptr_t value_of(unsigned number, const gregset_t& registers) {
  constexpr std::array kPlaces = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<std::uintptr_t>(registers[kPlaces[number]]);
}

template <class Number>
Number number_at(const std::uint8_t* at) {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

std::uintptr_t address_of(const Instruction& in, const gregset_t& registers) {
  const unsigned mode = *in.modrm >> 6, low = *in.modrm & 7;
  const std::uint8_t* at = in.modrm + 1;
  std::uintptr_t address = 0;
  bool far = mode == 2;  // a displacement of four bytes
  if (low == 4) {
    const unsigned base = *at & 7, index = (*at >> 3 & 7) + (in.rex & 2) * 4, scale = *at >> 6;
    ++at;
    if (index != 4) address += value_of(index, registers) << scale;
    if (base == 5 && mode == 0) {
      far = true;
    } else {
      address += value_of(base + (in.rex & 1) * 8, registers);
    }
  } else if (low == 5 && mode == 0) {  // from the next instruction on
    return reinterpret_cast<std::uintptr_t>(at) + 4 + in.immediate() +
           static_cast<std::uintptr_t>(std::intptr_t{number_at<std::int32_t>(at)});
  } else {
    address = value_of(low + (in.rex & 1) * 8, registers);
  }
  if (far) return address + static_cast<std::uintptr_t>(std::intptr_t{number_at<std::int32_t>(at)});
  if (mode == 1) address += static_cast<std::uintptr_t>(std::intptr_t{number_at<std::int8_t>(at)});
  return address;
}

void on_trap(int, siginfo_t*, void* context) {
  if (watched == nullptr) return;
  const gregset_t& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const Instruction next = decoded(reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]));
  if (!next.locked && !next.exchanges()) return;
  if (!next.in_memory() || watched->count == watched->addresses.size()) return;
  watched->addresses[watched->count++] = address_of(next, registers);
}

// Below the red zone of the caller.
void set_trap_flag() {
  asm volatile(
      "lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
          : "memory", "cc");
}
void clear_trap_flag() {
  asm volatile(
      "lea -128(%%rsp), %%rsp\n pushfq\n andq $~0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
          : "memory", "cc");
}

}  // namespace

Lines locked_lines(const std::function<void()>& work) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, &before);
  Record record;
  watched = &record;
  set_trap_flag();
  work();
  clear_trap_flag();
  watched = nullptr;
  sigaction(SIGTRAP, &before, nullptr);
  if (record.count == record.addresses.size())
    throw std::length_error("a call has more locked instructions than a record");
  Lines lines;
  for (std::size_t i = 0; i < record.count; ++i)
    lines.insert(record.addresses[i] / detail::util::kCacheLine);
  return lines;
}

Lines common_lines(const Lines& a, const Lines& b) {
  Lines both;
  std::ranges::set_intersection(a, b, std::inserter(both, both.end()));
  return both;
}

}  // namespace perdix::test
