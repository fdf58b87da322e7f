// perdix: the command-line tool.
#include <signal.h>

#include "perdix/command_line.h"

int main(int argc, char** argv) {
  // Whoever reads our output may stop early; write() tells.
  ::signal(SIGPIPE, SIG_IGN);
  return perdix::tool::run_command_line(argc, argv);
}
